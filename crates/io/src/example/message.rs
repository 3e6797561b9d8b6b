//! Example and SequenceExample messages as values of a program.

use super::json::delimited;
use super::reading::{self, Entry, Feature};
use bytes::Bytes;
use prost::encoding::{encode_varint, encoded_len_varint};
use status::{Result, invalid};
use std::collections::BTreeMap;
use tensor::DType;

/// The values of a feature. Numbers, texts and vectors of them convert into it.
///
/// # Examples
///
/// ```
/// use flowgrid_io::example::Values;
///
/// assert_eq!(Values::from(vec![0.5, 1.0]), Values::Floats(vec![0.5, 1.0]));
/// assert_eq!(Values::from(3), Values::Ints(vec![3]));
/// assert_eq!(Values::from("cat").len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Strings of bytes.
    Bytes(Vec<Bytes>),
    /// 32-bit floats.
    Floats(Vec<f32>),
    /// 64-bit integers.
    Ints(Vec<i64>),
}

impl Values {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Bytes(values) => values.len(),
            Values::Floats(values) => values.len(),
            Values::Ints(values) => values.len(),
        }
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a Feature message; numbers are packed.
    fn encode(&self) -> Vec<u8> {
        let (mut list, mut message) = (Vec::new(), Vec::new());
        let number = match self {
            Values::Bytes(values) => {
                values.iter().for_each(|value| delimited(&mut list, 1, value));
                1
            }
            Values::Floats(values) => {
                let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                delimited(&mut list, 1, &packed);
                2
            }
            Values::Ints(values) => {
                let mut packed = Vec::with_capacity(values.iter().map(|&v| encoded_len_varint(v as u64)).sum());
                values.iter().for_each(|&value| encode_varint(value as u64, &mut packed));
                delimited(&mut list, 1, &packed);
                3
            }
        };
        delimited(&mut message, number, &list);
        message
    }

    fn decode(feature: &[u8], message: &Bytes, name: &str) -> Result<Option<Values>> {
        let (dtype, list) = match reading::feature(feature) {
            Feature::Nothing => return Ok(None),
            Feature::List(dtype, list) => (dtype, list),
            Feature::Unsupported => return Err(invalid!("Feature {name} has values of an unknown kind")),
        };
        let values = match dtype {
            DType::F32 => read(list, reading::floats).map(Values::Floats),
            DType::I64 => read(list, reading::integers).map(Values::Ints),
            _ => read(list, |list, values| reading::bytes(list, message, values)).map(Values::Bytes),
        };
        values.map(Some).ok_or_else(|| invalid!("The values of feature {name} cannot be read"))
    }
}

impl From<Vec<f32>> for Values {
    fn from(values: Vec<f32>) -> Values {
        Values::Floats(values)
    }
}

impl From<Vec<i64>> for Values {
    fn from(values: Vec<i64>) -> Values {
        Values::Ints(values)
    }
}

impl From<Vec<Bytes>> for Values {
    fn from(values: Vec<Bytes>) -> Values {
        Values::Bytes(values)
    }
}

impl From<f32> for Values {
    fn from(value: f32) -> Values {
        Values::Floats(vec![value])
    }
}

impl From<i64> for Values {
    fn from(value: i64) -> Values {
        Values::Ints(vec![value])
    }
}

impl From<&str> for Values {
    fn from(value: &str) -> Values {
        Values::Bytes(vec![Bytes::copy_from_slice(value.as_bytes())])
    }
}

fn read<T>(list: &[u8], read: impl FnOnce(&[u8], &mut Vec<T>) -> Option<()>) -> Option<Vec<T>> {
    let mut values = Vec::new();
    read(list, &mut values).map(|()| values)
}

/// Named features: what a record of training data usually is.
///
/// # Examples
///
/// ```
/// use flowgrid_io::example::Example;
///
/// let example = Example::new().with("label", 3).with("x", vec![0.5, 1.0]);
/// let message = example.encode();
/// assert_eq!(Example::decode(&message)?, example);
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example {
    /// The values of each feature, by name.
    pub features: BTreeMap<String, Values>,
}

impl Example {
    /// An example without features.
    pub fn new() -> Example {
        Example::default()
    }

    /// The same example with another feature.
    pub fn with(mut self, name: &str, values: impl Into<Values>) -> Example {
        self.features.insert(name.to_string(), values.into());
        self
    }

    /// The message. Features are in the order of their names, so equal examples have equal bytes.
    pub fn encode(&self) -> Bytes {
        let mut message = Vec::new();
        delimited(&mut message, 1, &encode_features(&self.features));
        message.into()
    }

    /// Reads a message. Features without values are left out.
    pub fn decode(message: &Bytes) -> Result<Example> {
        let entries = reading::entries(message).ok_or_else(|| invalid!("These bytes are not an Example message"))?;
        Ok(Example { features: decode_features(&entries, message)? })
    }
}

/// Features of a whole sequence, and lists of features with one entry for each of its steps.
///
/// # Examples
///
/// ```
/// use flowgrid_io::example::{SequenceExample, Values};
///
/// let words = vec![Values::Ints(vec![1]), Values::Ints(vec![2, 3])];
/// let example = SequenceExample::new().with("label", Values::Ints(vec![0])).with_list("words", words);
/// assert_eq!(SequenceExample::decode(&example.encode())?, example);
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SequenceExample {
    /// The features of the whole sequence, by name.
    pub context: BTreeMap<String, Values>,
    /// The values of each step, by name.
    pub lists: BTreeMap<String, Vec<Values>>,
}

impl SequenceExample {
    /// A sequence without features.
    pub fn new() -> SequenceExample {
        SequenceExample::default()
    }

    /// The same sequence with another feature of the whole.
    pub fn with(mut self, name: &str, values: impl Into<Values>) -> SequenceExample {
        self.context.insert(name.to_string(), values.into());
        self
    }

    /// The same sequence with another feature of its steps.
    pub fn with_list(mut self, name: &str, steps: Vec<Values>) -> SequenceExample {
        self.lists.insert(name.to_string(), steps);
        self
    }

    /// The message.
    pub fn encode(&self) -> Bytes {
        let (mut message, mut lists) = (Vec::new(), Vec::new());
        delimited(&mut message, 1, &encode_features(&self.context));
        for (name, steps) in &self.lists {
            let mut list = Vec::new();
            steps.iter().for_each(|step| delimited(&mut list, 1, &step.encode()));
            entry(&mut lists, name, &list);
        }
        delimited(&mut message, 2, &lists);
        message.into()
    }

    /// Reads a message. Steps without values have no bytes.
    pub fn decode(message: &Bytes) -> Result<SequenceExample> {
        let read = reading::sequence_entries(message);
        let (context, entries) = read.ok_or_else(|| invalid!("These bytes are not a SequenceExample message"))?;
        let mut lists = BTreeMap::new();
        for (name, list) in entries {
            let name = text(name)?;
            let rows = reading::rows(list).ok_or_else(|| invalid!("The steps of feature {name} cannot be read"))?;
            let steps = rows.into_iter().map(|step| Values::decode(step, message, &name));
            let steps = steps.map(|step| Ok(step?.unwrap_or(Values::Bytes(Vec::new())))).collect::<Result<_>>()?;
            lists.insert(name, steps);
        }
        Ok(SequenceExample { context: decode_features(&context, message)?, lists })
    }
}

fn encode_features(features: &BTreeMap<String, Values>) -> Vec<u8> {
    let mut message = Vec::new();
    features.iter().for_each(|(name, values)| entry(&mut message, name, &values.encode()));
    message
}

/// An entry of a map from names to messages.
fn entry(message: &mut Vec<u8>, name: &str, value: &[u8]) {
    let mut entry = Vec::with_capacity(name.len() + value.len() + 8);
    delimited(&mut entry, 1, name.as_bytes());
    delimited(&mut entry, 2, value);
    delimited(message, 1, &entry);
}

fn decode_features(entries: &[Entry<'_>], message: &Bytes) -> Result<BTreeMap<String, Values>> {
    let mut features = BTreeMap::new();
    for (name, feature) in entries {
        let name = text(name)?;
        if let Some(values) = Values::decode(feature, message, &name)? {
            features.insert(name, values);
        }
    }
    Ok(features)
}

fn text(name: &[u8]) -> Result<String> {
    String::from_utf8(name.to_vec()).map_err(|_| invalid!("The name of a feature is not UTF-8: {name:?}"))
}
