//! The dataset: an output of a graph with the types and shapes of its elements, and the datasets made of values.

use crate::Structure;
use graph::{AttrList, AttrValue, Output, Scope};
use status::{Result, invalid};
use std::ops::Range;
use tensor::{DType, PartialShape, Tensor};

/// A sequence of elements, described by ops of a graph.
///
/// Nothing is read when a dataset is built. Functions of the pipeline may use outputs of the graph around them: their values
/// at the time when the iterator is initialized are captured. A mistake, such as a function with the wrong number of
/// arguments, is a building error of the graph, which `Graph::check` and sessions return.
///
/// # Examples
///
/// ```
/// use flowgrid_input::Dataset;
/// use graph::{Graph, Output};
///
/// let graph = Graph::with_ops(data::registry());
/// let squares = Dataset::range(&graph.root(), 0..10).map(|x: Output| &x * &x).batch(4);
/// assert_eq!(squares.types(), [tensor::DType::I64]);
/// assert_eq!(squares.shapes()[0].to_string(), "[?]");
/// ```
#[derive(Clone, Debug)]
pub struct Dataset {
    handle: Output,
    types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

impl Dataset {
    /// A dataset that another op returned, with the types and shapes of its elements.
    pub fn from_output(handle: Output, types: Vec<DType>, shapes: Vec<PartialShape>) -> Dataset {
        Dataset { handle, types, shapes }
    }

    /// The integers of a range.
    pub fn range(scope: &Scope, range: Range<i64>) -> Dataset {
        Dataset::range_by(scope, range, 1)
    }

    /// The integers of a range with a step, which may be negative: `range_by(scope, 5..0, -2)` is 5, 3, 1.
    pub fn range_by(scope: &Scope, range: Range<i64>, step: i64) -> Dataset {
        let number = |value: i64| ops::array::constant(scope, Tensor::scalar(value));
        let (start, stop, step) = (number(range.start), number(range.end), number(step));
        Dataset::build(scope, "RangeDataset", vec![DType::I64], vec![PartialShape::scalar()], |op| {
            op.input(&start).input(&stop).input(&step)
        })
    }

    /// One element with these components.
    ///
    /// # Panics
    ///
    /// Panics if there are no components, because they say to which graph the dataset belongs.
    pub fn from_tensors(components: impl Structure) -> Dataset {
        let components = components.unpack();
        let shapes = components.iter().map(Output::shape).collect();
        Dataset::of_components("TensorDataset", "Toutput_types", &components, shapes)
    }

    /// One element for each row: the components are sliced along their first dimension.
    ///
    /// # Panics
    ///
    /// Panics if there are no components, because they say to which graph the dataset belongs.
    pub fn from_slices(components: impl Structure) -> Dataset {
        let components = components.unpack();
        let shapes = components.iter().map(|component| crate::shapes::without_first(&component.shape())).collect();
        Dataset::of_components("TensorSliceDataset", "Toutput_types", &components, shapes)
    }

    /// The values of an iterator of the program. They become a part of the graph, so use files for what is large.
    pub fn from_iterator<T: Into<Tensor>>(scope: &Scope, values: impl IntoIterator<Item = T>) -> Dataset {
        let tensors: Vec<Tensor> = values.into_iter().map(Into::into).collect();
        let constants: Vec<Output> = tensors.iter().map(|tensor| ops::array::constant(scope, tensor.clone())).collect();
        let Some(first) = tensors.first() else {
            scope.graph().fail(invalid!("A dataset of an iterator needs at least one value, which says its type"));
            return Dataset::range(scope, 0..0);
        };
        if let Some(other) = tensors.iter().find(|other| other.dtype() != first.dtype()) {
            let (first, other) = (first.dtype(), other.dtype());
            scope.graph().fail(invalid!("The values of a dataset must have one type, but are {first} and {other}"));
        }
        let shape = crate::shapes::common(tensors.iter().map(|tensor| PartialShape::from(tensor.shape())));
        Dataset::build(scope, "ListDataset", vec![first.dtype()], vec![shape], |op| op.inputs(&constants))
    }

    /// The handle of the dataset, a scalar variant.
    pub fn handle(&self) -> &Output {
        &self.handle
    }

    /// The types of the components.
    pub fn types(&self) -> &[DType] {
        &self.types
    }

    /// The shapes of the components.
    pub fn shapes(&self) -> &[PartialShape] {
        &self.shapes
    }

    /// The scope in which the ops of the pipeline are built.
    pub fn scope(&self) -> &Scope {
        self.handle.scope()
    }

    fn of_components(op: &str, attr: &str, components: &[Output], shapes: Vec<PartialShape>) -> Dataset {
        let types: Vec<DType> = components.iter().map(Output::dtype).collect();
        let Some(first) = components.first() else { panic!("a dataset needs at least one component") };
        let list = AttrList { shapes: shapes.clone(), ..AttrList::default() };
        let built = first.scope().op(op).inputs(components).attr("output_shapes", AttrValue::from(list));
        let handle = built.attr(attr, type_list(&types)).output();
        Dataset { handle, types, shapes }
    }

    /// Builds an op with `output_types` and `output_shapes`.
    pub(crate) fn build(
        scope: &Scope,
        op: &str,
        types: Vec<DType>,
        shapes: Vec<PartialShape>,
        complete: impl FnOnce(graph::OpBuilder) -> graph::OpBuilder,
    ) -> Dataset {
        let list = AttrList { shapes: shapes.clone(), ..AttrList::default() };
        let built = complete(scope.op(op)).attr("output_types", type_list(&types));
        let handle = built.attr("output_shapes", AttrValue::from(list)).output();
        Dataset { handle, types, shapes }
    }

    /// An op that keeps the types and shapes of the elements, with this dataset as its first input.
    pub(crate) fn same(&self, op: &str, complete: impl FnOnce(graph::OpBuilder) -> graph::OpBuilder) -> Dataset {
        self.with_shapes(op, self.shapes.clone(), complete)
    }

    /// An op that keeps the types of the elements, with this dataset as its first input.
    pub(crate) fn with_shapes(
        &self,
        op: &str,
        shapes: Vec<PartialShape>,
        complete: impl FnOnce(graph::OpBuilder) -> graph::OpBuilder,
    ) -> Dataset {
        Dataset::build(self.scope(), op, self.types.clone(), shapes, |built| complete(built.input(&self.handle)))
    }

    /// A constant of the pipeline.
    pub(crate) fn number(&self, value: i64) -> Output {
        self.constant(Tensor::scalar(value))
    }

    /// A constant of the pipeline.
    pub(crate) fn constant(&self, value: Tensor) -> Output {
        ops::array::constant(self.scope(), value)
    }

    /// Records a building error and returns this dataset, so that a chain of calls goes on.
    pub(crate) fn failed(&self, error: status::Error) -> Dataset {
        self.scope().graph().fail(error);
        self.clone()
    }

    /// This dataset, or the building error.
    pub(crate) fn or_failed(&self, result: Result<Dataset>) -> Dataset {
        result.unwrap_or_else(|error| self.failed(error))
    }
}

/// A list of types as an attribute.
pub(crate) fn type_list(types: &[DType]) -> AttrValue {
    AttrValue::from(AttrList { types: types.to_vec(), ..AttrList::default() })
}
