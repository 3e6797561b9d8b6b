//! Datasets: immutable descriptions of sequences of elements, as values on the edges of a graph.

use crate::graphs::{ENCODED, Origin, graph_from};
use crate::limits::{check_stages, stages_of};
use crate::transformations::window_op;
use crate::{Cardinality, Element, Function, Input, Iterate, Pipeline, PollContext, Spec};
use graph::wire::write_graph;
use rustc_hash::FxHashMap;
use status::{Result, failed_precondition, invalid, unimplemented_op};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use tensor::{DType, Shape, Tensor, Variant, VariantData, VariantObject};

/// A shared dataset.
pub type DatasetRef = Arc<dyn Dataset>;

/// An element that is being computed.
pub type PendingElement = Box<dyn FnMut(&mut PollContext<'_>) -> Poll<Result<Element>> + Send>;

/// A sequence of elements: a source, or a transformation of other datasets.
pub trait Dataset: Any + Send + Sync {
    /// The type in TensorFlow's terms, without the suffix `Dataset`: `Batch`. It is a part of the prefix of iterators.
    fn kind(&self) -> &'static str;

    /// Types and shapes of the elements.
    fn spec(&self) -> &Spec;

    /// The datasets that it reads.
    fn inputs(&self) -> Vec<DatasetRef> {
        Vec::new()
    }

    /// The same transformation of other datasets, which are as many as `inputs`. None for sources, and for
    /// transformations whose inputs must not be divided between workers.
    fn with_inputs(&self, _inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        None
    }

    /// The same transformation of datasets with the same elements as its inputs, in the same order. None for sources.
    fn with_rewritten(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        self.with_inputs(inputs)
    }

    /// The functions that return its elements, or the datasets of its elements.
    fn functions(&self) -> Vec<&Function> {
        Vec::new()
    }

    /// A new iterator.
    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>>;

    /// The number of its elements.
    fn cardinality(&self) -> Cardinality;

    /// Its elements, if it holds them: such a dataset may be an element in the saved state of an iterator.
    fn held(&self) -> Option<&[Element]> {
        None
    }

    /// The serialised options (`tensorflow.data.Options`) that the user set for it, beside those of its inputs.
    fn options(&self) -> Option<tensor::Bytes> {
        None
    }

    /// The first dimension of all components of its elements, if it makes batches of one size.
    fn batch_size(&self) -> Option<i64> {
        None
    }

    /// How deep variants are inside each other in the elements that it was given, beside the inputs of its node.
    fn nesting(&self) -> usize {
        0
    }

    /// An error unless a global shuffle can choose the order of the elements. `inputs` has the results for the inputs.
    fn check_random_indexing(&self, _inputs: Vec<Result<()>>) -> Result<()> {
        Err(failed_precondition!("{} does not support random access.", op_name(self.kind())))
    }

    /// The element at a position, for datasets that can compute it alone.
    fn element_at(&self, _pipeline: &Arc<Pipeline>, _index: usize) -> Result<PendingElement> {
        Err(unimplemented_op!("Random access is not implemented for this dataset."))
    }
}

/// The op of a kind of datasets: `BatchDatasetV2` for `BatchV2`.
pub(crate) fn op_name(kind: &str) -> String {
    let base = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    let base = base.strip_suffix('V').filter(|_| base.len() < kind.len()).unwrap_or(kind);
    format!("{base}Dataset{}", &kind[base.len()..])
}

/// The only one of the inputs that `with_inputs` gets.
pub(crate) fn only(mut inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
    inputs.pop().filter(|_| inputs.is_empty())
}

/// Where an iterator is in its pipeline.
#[derive(Clone)]
pub struct Place {
    /// The pipeline.
    pub pipeline: Arc<Pipeline>,
    /// The name of the iterator: `Iterator::Root::Batch`. Its state is saved under it, and errors name it.
    pub prefix: Arc<str>,
}

impl Place {
    /// The place of the outermost iterator of a dataset.
    pub fn root(pipeline: &Arc<Pipeline>, prefix: &str, dataset: &DatasetRef) -> Place {
        Place { pipeline: pipeline.clone(), prefix: format!("{prefix}::{}", dataset.kind()).into() }
    }

    /// An iterator at this place.
    pub fn begin(&self, dataset: &DatasetRef) -> Result<Input> {
        let counted = self.pipeline.iterators().count(&self.prefix)?;
        Ok(Input::new(dataset.clone().iterate(self)?, self.prefix.clone()).counted(counted))
    }

    /// An iterator of the only input of this one.
    pub fn input(&self, dataset: &DatasetRef) -> Result<Input> {
        self.input_named(dataset, &self.prefix)
    }

    /// An iterator of an input of this one, where there are several.
    pub fn input_at(&self, dataset: &DatasetRef, index: usize) -> Result<Input> {
        self.input_named(dataset, &format!("{}[{index}]", self.prefix))
    }

    /// An iterator of an input, whose name begins with `prefix`.
    pub fn input_named(&self, dataset: &DatasetRef, prefix: &str) -> Result<Input> {
        Place::root(&self.pipeline, prefix, dataset).begin(dataset)
    }
}

/// Computes a value for a dataset from the values for its inputs, once for each dataset however often it is read.
pub fn fold<T: Clone>(dataset: &DatasetRef, f: &mut dyn FnMut(&DatasetRef, Vec<T>) -> T) -> T {
    fn visit<T: Clone>(
        dataset: &DatasetRef,
        known: &mut FxHashMap<*const (), T>,
        f: &mut dyn FnMut(&DatasetRef, Vec<T>) -> T,
    ) -> T {
        let key = Arc::as_ptr(dataset).cast::<()>();
        if let Some(value) = known.get(&key) {
            return value.clone();
        }
        let inputs = dataset.inputs().iter().map(|input| visit(input, known, f)).collect();
        let value = f(dataset, inputs);
        known.insert(key, value.clone());
        value
    }
    visit(dataset, &mut FxHashMap::default(), f)
}

/// A dataset as an element of a variant tensor.
pub(crate) struct Handle {
    pub(crate) dataset: DatasetRef,
    /// The number of datasets in a row that read each other.
    stages: usize,
    /// Counts the values that it captured too, which may be datasets.
    nesting: usize,
    /// As `nesting`, in the serialised form: a graph, in which datasets are beside each other.
    encoded_nesting: usize,
    pub(crate) origin: Option<Origin>,
    /// Computed once: a dataset can be reached on very many paths.
    fingerprint: OnceLock<Option<u64>>,
}

impl Handle {
    /// The dataset in a scalar tensor.
    pub(crate) fn of(tensor: &Tensor) -> Result<&Handle> {
        let found = tensor.variants().ok().and_then(|variants| variants.first()).and_then(Variant::object);
        found.ok_or_else(|| invalid!("Tensor must be a Dataset object."))
    }

    /// The datasets in a tensor.
    pub(crate) fn all_in(tensor: &Tensor) -> impl Iterator<Item = &Handle> {
        tensor.variants().unwrap_or_default().iter().filter_map(Variant::object)
    }

    /// The tensors that the graph of the dataset has beside it.
    pub(crate) fn written_inputs(&self) -> impl Iterator<Item = &Tensor> {
        let inputs = self.origin.as_ref().map_or(&[][..], |origin| &origin.inputs);
        let held = self.dataset.held().filter(|_| self.origin.is_none()).unwrap_or_default();
        inputs.iter().chain(held.iter().flatten())
    }

    /// Datasets are beside each other in the graph; other variants are inside of it.
    fn with_encoded_nesting(mut self) -> Handle {
        let one = |variant: &Variant| match variant.object::<Handle>() {
            Some(handle) => handle.encoded_nesting,
            None => 1 + variant.encoded_nesting(),
        };
        let variants = self.written_inputs().flat_map(|tensor| tensor.variants().unwrap_or_default());
        self.encoded_nesting = variants.map(one).max().unwrap_or(1);
        self
    }
}

impl VariantObject for Handle {
    fn encode(&self) -> Result<VariantData> {
        let holds_datasets = self.written_inputs().any(|tensor| tensor.dtype() == DType::VARIANT);
        if let (Some(elements), false) = (self.dataset.held(), holds_datasets) {
            return Ok(window_op::saved(&*self.dataset, elements));
        }
        let graph = Tensor::string(write_graph(&graph_from(self)?));
        Ok(VariantData { type_name: ENCODED.to_string(), tensors: vec![graph], ..VariantData::default() })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn nesting(&self) -> usize {
        self.nesting
    }

    fn encoded_nesting(&self) -> usize {
        self.encoded_nesting
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatasetVariant<{}DatasetOp::Dataset>", self.dataset.kind())
    }
}

/// A dataset as a scalar tensor.
pub fn dataset_tensor(dataset: DatasetRef) -> Result<Tensor> {
    dataset_tensor_from(dataset, None, 0)
}

/// As `dataset_tensor`, with what is known about where the dataset comes from, and with how deep variants are inside each
/// other in the inputs of its node.
pub fn dataset_tensor_from(dataset: DatasetRef, origin: Option<Origin>, inputs: usize) -> Result<Tensor> {
    let stages = stages_of(&dataset);
    check_stages(stages)?;
    let nesting = stages.max(1 + inputs.max(dataset.nesting()));
    let handle = Handle { dataset, stages, nesting, encoded_nesting: 1, origin, fingerprint: OnceLock::new() };
    let handle = handle.with_encoded_nesting();
    Tensor::from_variants(Shape::scalar(), vec![Variant::Object(Arc::new(handle))])
}

/// A number that is the same for equal datasets, also in other processes; none if it is not known how the dataset was
/// made, or if it captured a resource with values, such as a variable or a table.
pub fn fingerprint_of(tensor: &Tensor) -> Option<u64> {
    if let Ok(variants) = tensor.variants() {
        let [variant] = variants else { return None };
        let handle = variant.object::<Handle>()?;
        return *handle.fingerprint.get_or_init(|| handle.origin.as_ref()?.fingerprint());
    }
    if let Ok(handles) = tensor.handles() {
        return handles.iter().all(|handle| is_of_one_run(&handle.type_name)).then_some(0);
    }
    tensor::wire::tensor_to_bytes(tensor).ok().map(|bytes| graph::hash64(&bytes))
}

/// True for resources that datasets have for themselves: caches and counters of random numbers.
fn is_of_one_run(type_name: &str) -> bool {
    type_name.starts_with("N10tensorflow4data")
        && (type_name.contains("MemoryCache") || type_name.contains("SeedGenerator"))
}

impl Origin {
    fn fingerprint(&self) -> Option<u64> {
        let mut inputs = self.compared().map(fingerprint_of);
        inputs.try_fold(self.maker.fingerprint?, |sum, input| Some(combined(sum, input?)))
    }
}

fn combined(first: u64, second: u64) -> u64 {
    graph::hash64(&[first.to_le_bytes(), second.to_le_bytes()].concat())
}

/// The dataset in a scalar tensor.
pub fn dataset_of(tensor: &Tensor) -> Result<DatasetRef> {
    dataset_and_stages(tensor).map(|(dataset, _)| dataset)
}

/// The dataset in a scalar tensor, and the number of datasets in a row that read each other.
pub(crate) fn dataset_and_stages(tensor: &Tensor) -> Result<(DatasetRef, usize)> {
    let (Ok([variant]), 0) = (tensor.variants(), tensor.shape().rank()) else {
        return Err(invalid!("Dataset tensor must be a scalar of dtype DT_VARIANT."));
    };
    if let Variant::Data(data) = variant
        && let Some(window) = window_op::restored(data)
    {
        return Ok((window?, 1));
    }
    variant
        .object::<Handle>()
        .map(|handle| (handle.dataset.clone(), handle.stages))
        .ok_or_else(|| invalid!("Tensor must be a Dataset object."))
}
