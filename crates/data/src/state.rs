//! The state of the iterators of a pipeline, in the form in which TensorFlow saves it.
//!
//! Each iterator writes values under its prefix (`Iterator::Root::Batch`) and a key. On the wire and in checkpoints the
//! values of one prefix are one variant: its metadata is the prefix and the keys, separated by `@@`.

use crate::compress::{compress, uncompress};
use crate::dataset::Handle;
use crate::graphs::{GraphReader, graph_of};
use graph::wire::write_graph;
use op::Ctx;
use rustc_hash::{FxHashMap, FxHashSet};
use status::{Code, Error, Result, internal, invalid, not_found};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{Bytes, Shape, Tensor, Variant, VariantData, VariantObject};

/// The type name of a saved state in serialized variants.
const TYPE_NAME: &str = "tensorflow::Iterator";
/// Ends the keys of values that say that the value under the rest of the key is the graph of a dataset.
const IS_DATASET: &str = ".is_dataset";
/// Ends the keys of the names of the nodes that return datasets.
const OUTPUT: &str = ".output_node";
/// Separates the parts of a key.
const DELIMITER: &str = "@@";
/// What TensorFlow puts in front of keys that include their prefix.
const FULL_NAME_MARK: &str = "60d899aa0d8ce4351e7c3b419e92d25b";

/// The key of a value in the older form, which includes the prefix.
pub fn full_name(prefix: &str, key: &str) -> String {
    format!("{FULL_NAME_MARK}|{prefix}:{key}")
}

/// Collects the state of the iterators of a pipeline.
#[derive(Default)]
pub struct StateWriter {
    values: BTreeMap<String, Vec<(String, Tensor)>>,
}

impl StateWriter {
    /// Writes a tensor.
    pub fn tensor(&mut self, prefix: &str, key: &str, value: Tensor) {
        self.values.entry(prefix.to_string()).or_default().push((key.to_string(), value));
    }

    /// Writes an integer.
    pub fn int(&mut self, prefix: &str, key: &str, value: i64) {
        self.tensor(prefix, key, Tensor::scalar(value));
    }

    /// Writes a string.
    pub fn string(&mut self, prefix: &str, key: &str, value: impl Into<Bytes>) {
        self.tensor(prefix, key, Tensor::string(value));
    }

    /// Writes the components of an element: their number under `num_components`, then each.
    pub fn element(&mut self, prefix: &str, element: &[Tensor]) {
        self.int(prefix, "num_components", element.len() as i64);
        for (index, component) in element.iter().enumerate() {
            self.tensor(prefix, &format!("component[{index}]"), component.clone());
        }
    }

    /// Writes the code of a result under one key, and the message of an error under another.
    pub fn status<T>(&mut self, prefix: &str, code: &str, message: &str, result: &Result<T>) {
        let error = result.as_ref().err();
        self.int(prefix, code, error.map_or(0, |error| error.code as i64));
        if let Some(error) = error {
            self.string(prefix, message, error.message.clone());
        }
    }

    /// The state as a vector of variants, one for each prefix.
    pub fn finish(self) -> Result<Tensor> {
        let variants: Vec<Variant> = self.values.into_iter().map(saved).collect();
        Tensor::from_variants([variants.len()], variants)
    }
}

fn saved((prefix, values): (String, Vec<(String, Tensor)>)) -> Variant {
    let mut metadata = prefix;
    for (key, _) in &values {
        metadata += DELIMITER;
        metadata += key;
    }
    let tensors = values.into_iter().map(|(_, tensor)| tensor).collect();
    Variant::Object(Arc::new(Saved { metadata, tensors }))
}

/// The values of one prefix.
#[derive(Debug)]
struct Saved {
    metadata: String,
    tensors: Vec<Tensor>,
}

impl VariantObject for Saved {
    fn encode(&self) -> Result<VariantData> {
        let (metadata, tensors) = self.with_graphs()?;
        let tensors = vec![Tensor::from_variants(Shape::scalar(), vec![compress(&tensors)?])?];
        Ok(VariantData { type_name: TYPE_NAME.to_string(), metadata: metadata.into(), tensors })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Saved {
    /// The metadata and the values with the graphs of datasets in place of them, as TensorFlow saves datasets.
    fn with_graphs(&self) -> Result<(String, Vec<Tensor>)> {
        let mut parts = self.metadata.split(DELIMITER);
        let (mut metadata, mut tensors) = (parts.next().unwrap_or_default().to_string(), Vec::new());
        for (key, tensor) in parts.zip(&self.tensors) {
            if tensor.shape().rank() != 0 || Handle::of(tensor).is_err() {
                metadata += &format!("{DELIMITER}{key}");
                tensors.push(tensor.clone());
                continue;
            }
            let graph = graph_of(tensor)?;
            let output = graph.nodes.last().and_then(|node| node.inputs.first()).cloned().unwrap_or_default();
            metadata += &format!("{DELIMITER}{key}{IS_DATASET}{DELIMITER}{key}{OUTPUT}{DELIMITER}{key}");
            tensors.extend([Tensor::string(""), Tensor::string(output), Tensor::string(write_graph(&graph))]);
        }
        Ok((metadata, tensors))
    }
}

/// The saved state of the iterators of a pipeline.
#[derive(Default)]
pub struct StateReader {
    values: FxHashMap<String, FxHashMap<String, Tensor>>,
}

impl StateReader {
    /// Reads a vector of variants that `StateWriter::finish` or TensorFlow wrote.
    pub fn new(serialized: &Tensor) -> Result<StateReader> {
        let mut values = FxHashMap::default();
        for variant in serialized.variants()? {
            let (metadata, tensors) = contents(variant)?;
            let mut keys = metadata.split(DELIMITER).filter(|part| !part.is_empty());
            let prefix = keys.next().ok_or_else(|| invalid!("The state of an iterator has no prefix"))?;
            let found = keys.map(str::to_string).zip(tensors).collect();
            values.insert(prefix.to_string(), found);
        }
        Ok(StateReader { values })
    }

    /// Replaces datasets in their serialised form.
    pub(crate) fn read_datasets(&mut self, ctx: &Ctx<'_>, reader: &GraphReader) -> Result<()> {
        for values in self.values.values_mut() {
            let datasets: FxHashSet<String> =
                values.keys().filter_map(|key| key.strip_suffix(IS_DATASET)).map(str::to_string).collect();
            for (key, value) in values.iter_mut() {
                let read = match datasets.contains(key) {
                    true => Some(reader.read(ctx, &value.to_string_scalar()?)?),
                    false => reader.read_tensor(ctx, value)?,
                };
                if let Some(read) = read {
                    *value = read;
                }
            }
        }
        Ok(())
    }

    /// True if there is a value.
    pub fn contains(&self, prefix: &str, key: &str) -> bool {
        self.tensor(prefix, key).is_ok()
    }

    /// A tensor. The key may be stored with or without its prefix.
    pub fn tensor(&self, prefix: &str, key: &str) -> Result<Tensor> {
        let values = self.values.get(prefix).ok_or_else(|| not_found!("{prefix}"))?;
        let found = values.get(key).or_else(|| values.get(&full_name(prefix, key)));
        found.cloned().ok_or_else(|| not_found!("{prefix}:{key}"))
    }

    /// An integer.
    pub fn int(&self, prefix: &str, key: &str) -> Result<i64> {
        self.tensor(prefix, key)?.to_scalar()
    }

    /// An integer that is used as a count or an index; an error if it is negative.
    pub fn count(&self, prefix: &str, key: &str) -> Result<usize> {
        let value = self.int(prefix, key)?;
        usize::try_from(value).map_err(|_| invalid!("{prefix}:{key} is {value}, which is negative"))
    }

    /// A string.
    pub fn string(&self, prefix: &str, key: &str) -> Result<Bytes> {
        self.tensor(prefix, key)?.to_string_scalar()
    }

    /// The result that `StateWriter::status` wrote.
    pub fn status(&self, prefix: &str, code: &str, message: &str) -> Result<Result<()>> {
        let code = i32::try_from(self.int(prefix, code)?).unwrap_or(-1);
        if code == 0 {
            return Ok(Ok(()));
        }
        let message = String::from_utf8_lossy(&self.string(prefix, message)?).into_owned();
        Ok(Err(Error::new(Code::from_number(code), message)))
    }

    /// Tensors under numbered keys.
    pub fn tensors(&self, prefix: &str, count: usize, key: impl Fn(usize) -> String) -> Result<crate::Element> {
        (0..count).map(|index| self.tensor(prefix, &key(index))).collect()
    }

    /// The components of an element that `StateWriter::element` wrote.
    pub fn element(&self, prefix: &str) -> Result<crate::Element> {
        let count = self.count(prefix, "num_components")?;
        (0..count).map(|index| self.tensor(prefix, &format!("component[{index}]"))).collect()
    }
}

fn contents(variant: &Variant) -> Result<(String, Vec<Tensor>)> {
    if let Some(saved) = variant.object::<Saved>() {
        return Ok((saved.metadata.clone(), saved.tensors.clone()));
    }
    match variant {
        Variant::Data(data) if data.type_name == TYPE_NAME => {
            let metadata = String::from_utf8_lossy(&data.metadata).into_owned();
            Ok((metadata, saved_tensors(data)?))
        }
        other => Err(internal!(
            "Cannot initialize an iterator from tensor {other:?}. Expected a variant tensor of type IteratorStateVariant"
        )),
    }
}

/// The values of one prefix, which are one compressed element unless TensorFlow could not compress them.
fn saved_tensors(data: &VariantData) -> Result<Vec<Tensor>> {
    let compressed = match &data.tensors[..] {
        [tensor] => tensor.variants().ok().and_then(|variants| uncompress(variants.first()?)),
        _ => None,
    };
    compressed.map_or(Ok(data.tensors.clone()), |element| Ok(element?.into_vec()))
}
