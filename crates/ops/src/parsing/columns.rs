//! Reads the requested features of examples, message by message, into a column each.

use super::spec::{Dense, Spec};
use super::values::Values;
use io::example::{Feature, entries, feature};
use math::Pool;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result, invalid};
use tensor::{Bytes, DType};

/// The values of a feature in several examples.
pub(super) struct Column {
    pub values: Values,
    /// The number of values up to the end of each example.
    pub ends: Vec<usize>,
}

impl Column {
    fn new(dtype: DType) -> Result<Column> {
        Ok(Column { values: Values::empty(dtype)?, ends: Vec::new() })
    }

    /// The most values of an example.
    pub fn widest(&self) -> usize {
        let starts = std::iter::once(&0).chain(&self.ends);
        self.ends.iter().zip(starts).map(|(end, start)| end - start).max().unwrap_or(0)
    }

    fn append(&mut self, other: Column) -> Result<()> {
        let offset = self.values.len();
        self.ends.extend(other.ends.iter().map(|end| end + offset));
        self.values.append(other.values)
    }
}

/// The position of an example as errors print it.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// It is the only one.
    Single,
    /// The index in a batch, and the name if there is one.
    Batch(usize, Option<&'a Bytes>),
}

/// Reads all examples of a batch into columns: dense features first, then sparse ones, then ragged ones.
pub(super) fn read_batch(pool: &Pool, spec: &Spec, messages: &[Bytes], names: &[Bytes]) -> Result<Vec<Column>> {
    /// The number of bytes for which another thread pays off.
    const WORTHWHILE: usize = 16 << 10;
    let keys = spec.keys();
    let bytes: usize = messages.iter().map(Bytes::len).sum();
    let most = messages.len().min(pool.threads() * 4).max(1);
    let pieces = (bytes / WORTHWHILE).clamp(1, most);
    let results: Vec<Mutex<Option<Result<Vec<Column>>>>> = (0..pieces).map(|_| Mutex::default()).collect();
    pool.run(pieces, &|piece| {
        let start = |piece: usize| messages.len() * piece / pieces;
        let range = start(piece)..start(piece + 1);
        *results[piece].lock() = Some(read_range(spec, &keys, messages, names, range));
    });
    let mut columns = spec.columns()?;
    for result in results {
        let read = result.into_inner().unwrap_or_else(|| spec.columns())?;
        columns.iter_mut().zip(read).try_for_each(|(column, more)| column.append(more))?;
    }
    Ok(columns)
}

fn read_range(
    spec: &Spec,
    keys: &FxHashMap<&[u8], usize>,
    messages: &[Bytes],
    names: &[Bytes],
    range: std::ops::Range<usize>,
) -> Result<Vec<Column>> {
    let mut columns = spec.columns()?;
    for index in range {
        let place = Place::Batch(index, names.get(index));
        spec.read(keys, &messages[index], place, &mut columns)?;
    }
    Ok(columns)
}

/// Reads one example.
pub(super) fn read_single(spec: &Spec, message: &Bytes) -> Result<Vec<Column>> {
    let mut columns = spec.columns()?;
    spec.read(&spec.keys(), message, Place::Single, &mut columns)?;
    Ok(columns)
}

impl Spec {
    /// Columns by name.
    fn keys(&self) -> FxHashMap<&[u8], usize> {
        let dense = self.dense.iter().map(|feature| &feature.key);
        let sparse = self.sparse.iter().map(|feature| &feature.key);
        let ragged = self.ragged.iter().map(|feature| &feature.key);
        dense.chain(sparse).chain(ragged).enumerate().map(|(column, key)| (&**key, column)).collect()
    }

    fn columns(&self) -> Result<Vec<Column>> {
        let dense = self.dense.iter().map(|feature| feature.form.dtype);
        let sparse = self.sparse.iter().map(|feature| feature.dtype);
        let ragged = self.ragged.iter().map(|feature| feature.dtype);
        dense.chain(sparse).chain(ragged).map(Column::new).collect()
    }

    /// The dense feature of a column, and the type of its values.
    fn feature(&self, column: usize) -> (Option<&Dense>, DType) {
        if let Some(dense) = self.dense.get(column) {
            return (Some(dense), dense.form.dtype);
        }
        let column = column - self.dense.len();
        match self.sparse.get(column) {
            Some(sparse) => (None, sparse.dtype),
            None => (None, self.ragged[column - self.sparse.len()].dtype),
        }
    }

    /// Adds one example to all columns.
    fn read(
        &self,
        keys: &FxHashMap<&[u8], usize>,
        message: &Bytes,
        place: Place<'_>,
        columns: &mut [Column],
    ) -> Result<()> {
        let found = entries(message)
            .ok_or_else(|| invalid!("Could not parse example input, value: '{}'", String::from_utf8_lossy(message)))?;
        let done = columns.first().map_or(0, |column| column.ends.len());
        // As in any protobuf map, the last of several entries with one key counts.
        for (key, value) in found.into_iter().rev() {
            let Some(&column) = keys.get(key) else { continue };
            if columns[column].ends.len() > done {
                continue;
            }
            let (dense, dtype) = self.feature(column);
            let list = match feature(value) {
                Feature::Nothing => continue,
                Feature::Unsupported => return Err(invalid!("Unsupported datatype.")),
                Feature::List(found, _) if found != dtype => return Err(place.wrong_type(key, dense, found, dtype)),
                Feature::List(_, list) => list,
            };
            let column = &mut columns[column];
            let count = column.values.read(list, message).ok_or_else(|| place.unreadable(key, dtype))?;
            dense.map_or(Ok(()), |dense| place.check_count(dense, count))?;
            column.ends.push(column.values.len());
        }
        self.fill(done, place, columns)
    }

    /// Fills in a feature that the example does not have.
    fn fill(&self, done: usize, place: Place<'_>, columns: &mut [Column]) -> Result<()> {
        for (index, column) in columns.iter_mut().enumerate().filter(|(_, column)| column.ends.len() == done) {
            if let Some(dense) = self.dense.get(index).filter(|dense| !dense.form.is_variable) {
                if dense.default.elements() == 0 {
                    return Err(place.missing(dense));
                }
                column.values.extend(&dense.default)?;
            }
            column.ends.push(column.values.len());
        }
        Ok(())
    }
}

impl Place<'_> {
    fn name(&self) -> String {
        match self {
            Place::Batch(_, Some(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => "<unknown>".to_string(),
        }
    }

    fn error(&self, key: &[u8], what: String) -> Error {
        let key = String::from_utf8_lossy(key);
        match self {
            Place::Single => invalid!("Key: {key}.  {what}"),
            Place::Batch(index, _) => invalid!("Name: {}, Key: {key}, Index: {index}.  {what}", self.name()),
        }
    }

    fn wrong_type(&self, key: &[u8], dense: Option<&Dense>, found: DType, wanted: DType) -> Error {
        let what = match dense {
            Some(_) => format!("Data types don't match. Data type: {found} but expected type: {wanted}"),
            None => format!("Data types don't match. Expected type: {wanted}, Actual type: {found}"),
        };
        self.error(key, what)
    }

    fn unreadable(&self, key: &[u8], dtype: DType) -> Error {
        let what = match self {
            Place::Single => format!("Can't parse serialized Example: Parsing {}_list failed.", list_name(dtype)),
            Place::Batch(..) => "Can't parse serialized Example.".to_string(),
        };
        self.error(key, what)
    }

    fn missing(&self, dense: &Dense) -> Error {
        let (key, dtype) = (String::from_utf8_lossy(&dense.key), dense.form.dtype);
        let what = format!("Feature: {key} (data type: {dtype}) is required but could not be found.");
        match self {
            Place::Single => invalid!("{what}"),
            Place::Batch(..) => invalid!("Name: {}, {what}", self.name()),
        }
    }

    /// An error if a dense feature has not as many values as it should.
    fn check_count(&self, dense: &Dense, count: usize) -> Result<()> {
        let (form, name) = (&dense.form, list_name(dense.form.dtype));
        let fits = match form.is_variable {
            true => count.is_multiple_of(form.stride.max(1)),
            false => count == form.stride,
        };
        if fits {
            return Ok(());
        }
        let (shape, stride) = (&form.shape, form.stride);
        let what = match (self, form.is_variable) {
            (Place::Single, true) => {
                let key = String::from_utf8_lossy(&dense.key);
                return Err(invalid!(
                    "Error while parsing feature with key {key}: number of elements should be divisible by {stride}, \
                     found {count} instead"
                ));
            }
            (Place::Single, false) => {
                format!("Can't parse serialized Example: Some {name}_list slice was not parsed.")
            }
            (Place::Batch(..), true) => format!(
                "Number of {name} values is not a multiple of stride length. Saw {count} values but output shape is: \
                 {shape}"
            ),
            (Place::Batch(..), false) if form.dtype == DType::STRING && count > stride => {
                "Can't parse serialized Example.".to_string()
            }
            (Place::Batch(..), false) => {
                format!("Number of {name} values != expected.  Values size: {count} but output shape: {shape}")
            }
        };
        Err(self.error(&dense.key, what))
    }
}

/// How a message calls its list of values of this type.
fn list_name(dtype: DType) -> &'static str {
    match dtype {
        DType::STRING => "bytes",
        DType::F32 => "float",
        _ => "int64",
    }
}
