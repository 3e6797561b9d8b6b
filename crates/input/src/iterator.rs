//! Iterators of datasets in a graph.

use crate::dataset::type_list;
use crate::{Dataset, Structure};
use graph::builtin_ops::PLACEHOLDER;
use graph::{AttrList, AttrValue, Function, Node, Output, Scope, copied_function};
use std::collections::BTreeMap;
use tensor::{DType, PartialShape};

/// An iterator of a dataset in a graph: each run of its outputs takes the next element.
///
/// At the end of the dataset the step fails with the code OutOfRange, which ends the loops of monitored sessions.
///
/// # Examples
///
/// ```
/// use flowgrid_input::Dataset;
/// use graph::{Graph, Output};
/// use session::Session;
///
/// let graph = Graph::with_ops(data::registry());
/// let iterator = Dataset::range(&graph.root(), 0..2).make_initializable_iterator();
/// let next = iterator.next::<Output>()?;
/// let session = Session::local(&graph);
/// session.execute(iterator.initializer().unwrap())?;
/// assert_eq!((session.run::<i64>(&next)?, session.run::<i64>(&next)?), (0, 1));
/// assert_eq!(session.run::<i64>(&next).unwrap_err().code, status::Code::OutOfRange);
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DatasetIterator {
    handle: Output,
    initializer: Option<Node>,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

impl Dataset {
    /// An iterator that a session begins, and may begin anew, by running its initializer.
    pub fn make_initializable_iterator(&self) -> DatasetIterator {
        let iterator = DatasetIterator::unbound(self.scope(), self.types(), self.shapes());
        let initializer = iterator.initializer_for(self);
        DatasetIterator { initializer: Some(initializer), ..iterator }
    }

    /// An iterator that needs no initializer and runs once. The pipeline must not depend on placeholders or variables.
    pub fn make_one_shot_iterator(&self) -> DatasetIterator {
        let graph = self.scope().graph();
        let name = format!("make_dataset_{}", self.handle().node().name().replace('/', "_"));
        let factory = copied_function(graph, &name, &[("dataset".to_string(), self.handle().clone())]);
        match factory {
            Ok(function) => graph.add_function(function),
            Err(error) => graph.fail(error),
        }
        let function = Function { name, attrs: BTreeMap::new() };
        let built = self.scope().op("OneShotIterator").attr("dataset_factory", function);
        let built =
            built.attr("output_types", type_list(self.types())).attr("output_shapes", shape_list(self.shapes()));
        DatasetIterator {
            handle: built.output(),
            initializer: None,
            types: self.types().to_vec(),
            shapes: self.shapes().to_vec(),
        }
    }
}

impl DatasetIterator {
    /// An iterator without a dataset, for all datasets of these types and shapes: each begins it with
    /// [`DatasetIterator::initializer_for`].
    pub fn unbound(scope: &Scope, types: &[DType], shapes: &[PartialShape]) -> DatasetIterator {
        let built = scope.op("IteratorV2").attr("shared_name", "").attr("container", "");
        let built = built.attr("output_types", type_list(types)).attr("output_shapes", shape_list(shapes));
        DatasetIterator { handle: built.output(), initializer: None, types: types.to_vec(), shapes: shapes.to_vec() }
    }

    /// The node that begins this iterator with a dataset.
    pub fn initializer_for(&self, dataset: &Dataset) -> Node {
        self.handle.scope().op("MakeIterator").input(dataset.handle()).input(&self.handle).node()
    }

    /// The node that begins the iterator; none for one that needs no initializer.
    pub fn initializer(&self) -> Option<&Node> {
        self.initializer.as_ref()
    }

    /// The handle of the iterator, a resource.
    pub fn handle(&self) -> &Output {
        &self.handle
    }

    /// The name of the state in checkpoints: that of TensorFlow's `make_saveable_from_iterator`.
    pub fn state_name(&self) -> String {
        format!("{}_STATE", self.handle.name())
    }

    /// The state of the iterator, which says what its next element is. Savers write it to checkpoints.
    pub fn state(&self) -> Output {
        let built = self.handle.scope().beside(self.handle.node()).op("SerializeIterator").input(&self.handle);
        built.attr("external_state_policy", FAIL).output()
    }

    /// The node that continues the iterator from a state of an equal pipeline. The initializer runs before it, unless it
    /// depends on placeholders: then it must have been run.
    pub fn restore(&self, scope: &Scope, state: &Output) -> Node {
        let built = scope.beside(self.handle.node()).op("DeserializeIterator");
        let built = built.input(&self.handle).input(state);
        match self.initializer.as_ref().filter(|initializer| !is_fed(initializer)) {
            Some(initializer) => built.after(initializer).node(),
            None => built.node(),
        }
    }

    /// The components of the next element.
    pub fn next<A: Structure>(&self) -> status::Result<A> {
        let built = self.handle.scope().op("IteratorGetNext").input(&self.handle);
        let built = built.attr("output_types", type_list(&self.types)).attr("output_shapes", shape_list(&self.shapes));
        A::pack(built.outputs())
    }
}

/// TensorFlow's number for: a pipeline with state that is not saved is an error.
const FAIL: i64 = 2;

fn is_fed(node: &Node) -> bool {
    node.with_ancestors().iter().any(|node| node.op() == PLACEHOLDER)
}

fn shape_list(shapes: &[PartialShape]) -> AttrValue {
    AttrValue::from(AttrList { shapes: shapes.to_vec(), ..AttrList::default() })
}
