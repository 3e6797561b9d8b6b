//! The state of a lookup table: static, mutable, or mutable with open buckets.

use super::dense::Dense;
use super::map::{Map, rows_of};
use op::Resource;
use parking_lot::RwLock;
use status::{Result, aborted, failed_precondition, invalid, unimplemented_op};
use tensor::{DType, Shape, Tensor};

/// A table of keys and values, each of one type and shape.
pub(crate) struct Table {
    pub key_dtype: DType,
    pub value_dtype: DType,
    key_shape: Shape,
    value_shape: Shape,
    body: RwLock<Body>,
}

impl Resource for Table {
    const TYPE_NAME: &'static str = "N10tensorflow6lookup15LookupInterfaceE";
}

/// How a table stores its entries.
pub(crate) enum Body {
    /// Initialized once, as a whole.
    Static { map: Map, initialized: bool },
    /// Changed at any time.
    Mutable(Map),
    /// Changed at any time, with open buckets.
    Dense(Box<Dense>),
}

impl Table {
    /// A table with this content.
    pub fn new((key_dtype, value_dtype): (DType, DType), value_shape: Shape, body: Body) -> Table {
        let key_shape = match &body {
            Body::Dense(dense) => dense.key_shape().clone(),
            _ => Shape::scalar(),
        };
        Table { key_dtype, value_dtype, key_shape, value_shape, body: RwLock::new(body) }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        match &*self.body.read() {
            Body::Static { initialized: false, .. } => 0,
            Body::Static { map, .. } | Body::Mutable(map) => map.len(),
            Body::Dense(dense) => dense.len(),
        }
    }

    /// Whether it is written once, whole.
    pub fn is_initializable(&self) -> bool {
        matches!(&*self.body.read(), Body::Static { .. })
    }

    /// The op that makes such a table, and the shape of its values if the op has to know it; none for tables with open
    /// buckets.
    pub fn maker(&self) -> Option<(&'static str, Option<Shape>)> {
        match &*self.body.read() {
            Body::Static { .. } => Some(("HashTableV2", None)),
            Body::Mutable(_) if self.value_shape.rank() == 0 => Some(("MutableHashTableV2", None)),
            Body::Mutable(_) => Some(("MutableHashTableOfTensorsV2", Some(self.value_shape.clone()))),
            Body::Dense(_) => None,
        }
    }

    /// The shape of the values of this many keys.
    fn values_shape(&self, keys: &Tensor) -> Result<Shape> {
        let shape = keys.shape();
        if !shape.ends_with(&self.key_shape) {
            return Err(invalid!("Input key shape {shape} must end with the table's key shape {}", self.key_shape));
        }
        let outer = &shape[..shape.rank() - self.key_shape.rank()];
        Ok(outer.iter().chain(self.value_shape.iter()).copied().collect())
    }

    fn check_values(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let expected = self.values_shape(keys)?;
        match values.shape() == &expected {
            true => Ok(()),
            false => Err(invalid!("Expected shape {expected} for value, got {}", values.shape())),
        }
    }

    /// The values of keys; `default` where there is none.
    pub fn find(&self, keys: &Tensor, default: &Tensor) -> Result<Tensor> {
        let shape = self.values_shape(keys)?;
        if default.shape() != &self.value_shape && default.shape() != &shape {
            return Err(invalid!(
                "Expected shape {} or {shape} for default value, got {}",
                self.value_shape,
                default.shape()
            ));
        }
        let out = Tensor::zeros_of(self.value_dtype, shape)?;
        match &*self.body.read() {
            Body::Static { initialized: false, .. } => Err(failed_precondition!("Table not initialized.")),
            Body::Static { map, .. } | Body::Mutable(map) => map.find(keys, default, out),
            Body::Dense(dense) => dense.find(keys, default, out),
        }
    }

    /// Inserts values under keys.
    pub fn insert(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.check_values(keys, values)?;
        match &mut *self.body.write() {
            Body::Static { .. } => Err(not_supported("Insert")),
            Body::Mutable(map) => map.insert(keys, values),
            Body::Dense(dense) => dense.insert(keys, values),
        }
    }

    /// Removes keys.
    pub fn remove(&self, keys: &Tensor) -> Result<()> {
        self.values_shape(keys)?;
        match &mut *self.body.write() {
            Body::Static { .. } => Err(not_supported("Remove")),
            Body::Mutable(map) => map.remove(keys),
            Body::Dense(dense) => dense.remove(keys),
        }
    }

    /// All keys and values.
    pub fn export(&self) -> Result<(Tensor, Tensor)> {
        match &*self.body.read() {
            Body::Static { initialized: false, .. } => Err(aborted!("HashTable is not initialized.")),
            Body::Static { map, .. } | Body::Mutable(map) => map.export(self.key_dtype),
            Body::Dense(dense) => Ok(dense.export()),
        }
    }

    /// Replaces all keys and values.
    pub fn import(&self, keys: Tensor, values: Tensor) -> Result<()> {
        match &mut *self.body.write() {
            Body::Static { map, initialized } => {
                self.check_pairs(&keys, &values)?;
                initialize(map, initialized, &keys, &values)
            }
            Body::Mutable(map) => {
                self.check_values(&keys, &values)?;
                map.clear();
                map.insert(&keys, &values)
            }
            Body::Dense(dense) => {
                self.check_buckets(&keys, &values)?;
                dense.import(keys, values)
            }
        }
    }

    fn check_pairs(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        if keys.shape() != values.shape() {
            return Err(invalid!(
                "keys and values should have the same dimension.{} vs {}",
                keys.shape(),
                values.shape()
            ));
        }
        if keys.elements() == 0 {
            return Err(invalid!("keys and values cannot be empty tensors."));
        }
        self.check_values(keys, values)
    }

    /// Buckets are rows, even where keys and values are single numbers.
    fn check_buckets(&self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.values_shape(keys)?;
        let buckets = keys.shape().first().copied().unwrap_or(0);
        let expected = rows_of(buckets, &Shape::new(&[self.value_shape.elements()]));
        match values.shape() == &expected {
            true => Ok(()),
            false => Err(invalid!("Expected shape {expected} for value, got {}", values.shape())),
        }
    }
}

/// Initializes a static table. Doing it again is no error if the number of keys is the same.
fn initialize(map: &mut Map, initialized: &mut bool, keys: &Tensor, values: &Tensor) -> Result<()> {
    if *initialized {
        return match map.len() == keys.elements() {
            true => Ok(()),
            false => Err(failed_precondition!("Table was already initialized with different data.")),
        };
    }
    let filled = fill(map, keys, values);
    if filled.is_err() {
        map.clear();
    }
    *initialized = filled.is_ok();
    filled
}

fn fill(map: &mut Map, keys: &Tensor, values: &Tensor) -> Result<()> {
    map.insert(keys, values)?;
    if map.len() == keys.elements() {
        return Ok(());
    }
    // A repeated key is accepted if its value is the same.
    let found = texts(&map.find(keys, values, Tensor::zeros_of(values.dtype(), values.shape())?)?)?;
    let values = texts(values)?;
    match found.iter().zip(&values).position(|(last, value)| last != value) {
        None => Ok(()),
        Some(i) => Err(failed_precondition!(
            "HashTable has different value for same key. Key {} has {} and trying to add value {}",
            texts(keys)?[i],
            values[i],
            found[i]
        )),
    }
}

/// The elements, as they stand in messages.
fn texts(tensor: &Tensor) -> Result<Vec<String>> {
    fn all<T>(values: &[T], text: impl Fn(&T) -> String) -> Vec<String> {
        values.iter().map(text).collect()
    }
    Ok(match tensor.dtype() {
        DType::F32 => all(tensor.values::<f32>()?, f32::to_string),
        DType::F64 => all(tensor.values::<f64>()?, f64::to_string),
        DType::BOOL => all(tensor.values::<bool>()?, |&value| u8::from(value).to_string()),
        DType::STRING => all(tensor.strings()?, |value| String::from_utf8_lossy(value).into_owned()),
        _ => all(&op::shapes::integers(tensor)?, i64::to_string),
    })
}

fn not_supported(what: &str) -> status::Error {
    unimplemented_op!("{what} not supported by InitializableLookupTable implementations")
}
