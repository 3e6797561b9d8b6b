//! Reads the requested features of sequence examples into columns, and converts columns to tensors.

use super::example::splits;
use super::spec::{Dense, Ragged, Sparse};
use super::values::Values;
use io::example::{Feature, feature, rows, sequence_entries};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::{Bytes, DType, PartialShape, Shape, Tensor};

/// The examples that are read.
pub(super) struct Batch<'a> {
    pub messages: &'a [Bytes],
    /// The names of the examples; may be empty.
    pub names: &'a [Bytes],
    /// Outputs have an axis for examples.
    pub is_batch: bool,
}

/// The values of some keys in each example.
pub(super) type Found<'a> = Vec<Vec<Option<&'a [u8]>>>;

impl<'a> Batch<'a> {
    pub fn name(&self, example: usize) -> String {
        self.names.get(example).map_or("<unknown>".into(), |name| String::from_utf8_lossy(name).into_owned())
    }

    /// The positions of the features of contexts and of the feature lists with these keys.
    pub fn find(&self, context: &[&Bytes], lists: &[&Bytes]) -> Result<(Found<'a>, Found<'a>)> {
        let places = |keys: &[&'_ Bytes]| -> FxHashMap<Vec<u8>, usize> {
            keys.iter().enumerate().map(|(index, key)| (key.to_vec(), index)).collect()
        };
        let (context_places, list_places) = (places(context), places(lists));
        let mut found =
            (vec![vec![None; self.messages.len()]; context.len()], vec![vec![None; self.messages.len()]; lists.len()]);
        for (example, message) in self.messages.iter().enumerate() {
            let (context, lists) = sequence_entries(message)
                .ok_or_else(|| invalid!("Invalid protocol message input, example id: {}", self.name(example)))?;
            for (key, value) in context {
                if let Some(&place) = context_places.get(key) {
                    found.0[place][example] = Some(value);
                }
            }
            for (key, value) in lists {
                if let Some(&place) = list_places.get(key) {
                    found.1[place][example] = Some(value);
                }
            }
        }
        Ok(found)
    }

    fn with_axis(&self, dims: &[usize]) -> Vec<usize> {
        let examples = [self.messages.len()];
        [if self.is_batch { &examples[..] } else { &[] }, dims].concat()
    }

    /// The row splits of examples, or a zero if there is no axis for them.
    fn example_splits(&self, dtype: DType, ends: &[usize]) -> Result<Tensor> {
        if self.is_batch { splits(dtype, ends) } else { Tensor::zeros_of(dtype, Shape::scalar()) }
    }
}

/// The values of a feature of the context, example by example.
pub(super) struct Context {
    values: Values,
    ends: Vec<usize>,
}

impl Context {
    pub fn read(batch: &Batch<'_>, key: &[u8], dtype: DType, found: &[Option<&[u8]>]) -> Result<Context> {
        let mut column = Context { values: Values::empty(dtype)?, ends: Vec::new() };
        for (example, value) in found.iter().enumerate() {
            let count = match value.map_or(Feature::Nothing, feature) {
                Feature::Nothing => Some(0),
                Feature::List(found, list) if found == dtype => column.values.read(list, &batch.messages[example]),
                _ => None,
            };
            count.ok_or_else(|| {
                let (name, key) = (batch.name(example), String::from_utf8_lossy(key));
                invalid!("Name: {name}, Context feature: {key}.  Data types don't match. Expected type: {dtype}")
            })?;
            column.ends.push(column.values.len());
        }
        Ok(column)
    }

    fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.ends.iter().zip(std::iter::once(&0).chain(&self.ends)).map(|(end, start)| end - start)
    }

    /// All values; missing ones are replaced by the default.
    pub fn dense(self, batch: &Batch<'_>, dense: &Dense, found: &[Option<&[u8]>]) -> Result<Tensor> {
        let (form, key) = (&dense.form, String::from_utf8_lossy(&dense.key));
        let most = self.counts().max().unwrap_or(0).max(dense.default.elements());
        let expected = if form.is_variable { 0 } else { form.stride };
        if form.is_variable || most != expected {
            return Err(invalid!(
                "Inconsistent max number of elements for feature {key}: expected {expected}, but found {most}"
            ));
        }
        for (example, count) in self.counts().enumerate() {
            if found[example].is_none() && dense.default.elements() == 0 {
                let dtype = form.dtype;
                return Err(invalid!("Feature: {key} (data type: {dtype}) is required but could not be found."));
            }
            if found[example].is_some() && count != most {
                return Err(invalid!("Unexpected number of elements in example {}", batch.name(example)));
            }
        }
        let mut values = Values::empty(form.dtype)?;
        if found.iter().all(Option::is_some) {
            values = self.values;
        } else {
            let given = self.values.tensor([self.ends.last().copied().unwrap_or(0)])?;
            let mut start = 0;
            for (value, &end) in found.iter().zip(&self.ends) {
                match value {
                    Some(_) => values.extend(&given.slice_elements(start, [end - start])?)?,
                    None => values.extend(&dense.default)?,
                }
                start = end;
            }
        }
        values.tensor(batch.with_axis(&form.dims()))
    }

    /// Indices, values and shape.
    pub fn sparse(self, batch: &Batch<'_>) -> Result<[Tensor; 3]> {
        let widest = self.counts().max().unwrap_or(0);
        let mut indices = Vec::new();
        for (example, count) in self.counts().enumerate() {
            for place in 0..count {
                let index = [example as i64, place as i64];
                indices.extend_from_slice(&index[usize::from(!batch.is_batch)..]);
            }
        }
        let count = self.values.len();
        let shape: Vec<i64> = batch.with_axis(&[widest]).iter().map(|&dim| dim as i64).collect();
        Ok([Tensor::from_slice([count, shape.len()], &indices)?, self.values.tensor([count])?, Tensor::vector(&shape)])
    }

    /// The values and row splits.
    pub fn ragged(self, batch: &Batch<'_>, ragged: &Ragged) -> Result<[Tensor; 2]> {
        let count = self.values.len();
        Ok([self.values.tensor([count])?, batch.example_splits(ragged.splits, &self.ends)?])
    }
}

/// The values of a feature list, row by row.
pub(super) struct Lists {
    values: Values,
    /// The number of values up to the end of each row.
    row_ends: Vec<usize>,
    /// The number of rows up to the end of each example.
    example_ends: Vec<usize>,
}

impl Lists {
    pub fn read(batch: &Batch<'_>, key: &[u8], dtype: DType, found: &[Option<&[u8]>]) -> Result<Lists> {
        let (row_ends, example_ends) = (Vec::new(), Vec::new());
        let mut lists = Lists { values: Values::empty(dtype)?, row_ends, example_ends };
        let key = String::from_utf8_lossy(key);
        for (example, value) in found.iter().enumerate() {
            let wrong = || invalid!("Error in sequence feature {key} in example {}", batch.name(example));
            let found = rows(value.unwrap_or_default()).ok_or_else(wrong)?;
            for (index, row) in found.into_iter().enumerate() {
                let count = match feature(row) {
                    Feature::Nothing => Some(0),
                    Feature::List(found, list) if found == dtype => lists.values.read(list, &batch.messages[example]),
                    _ => None,
                };
                count.ok_or_else(|| {
                    invalid!(
                        "Name: {}, Feature list: {key}, Index: {index}.  Data types don't match. Expected type: {dtype}",
                        batch.name(example)
                    )
                })?;
                lists.row_ends.push(lists.values.len());
            }
            lists.example_ends.push(lists.row_ends.len());
        }
        Ok(lists)
    }

    /// The numbers of values in the rows of each example.
    fn examples(&self) -> impl Iterator<Item = Vec<usize>> + '_ {
        let starts = std::iter::once(&0).chain(&self.example_ends);
        self.example_ends.iter().zip(starts).map(|(&end, &start)| {
            let before = |row: usize| if row == 0 { 0 } else { self.row_ends[row - 1] };
            (start..end).map(|row| self.row_ends[row] - before(row)).collect()
        })
    }

    /// All values, with short lists padded, and the original lengths.
    pub fn dense(
        self,
        batch: &Batch<'_>,
        dense: &Dense,
        may_miss: bool,
        found: &[Option<&[u8]>],
    ) -> Result<[Tensor; 2]> {
        let (form, key) = (&dense.form, String::from_utf8_lossy(&dense.key));
        let most = self.examples().map(|rows| rows.iter().sum()).max().unwrap_or(0);
        if form.is_variable || most % form.stride.max(1) != 0 {
            let dims = if form.is_variable { &[] } else { form.shape.dims().unwrap_or_default() };
            let shape = PartialShape::new(&[&[-1], dims].concat());
            return Err(invalid!(
                "Feature list '{key}' has an unexpected number of values.  Total values size: {most} is not consistent \
                 with output shape: {shape}"
            ));
        }
        for (example, rows) in self.examples().enumerate() {
            let name = batch.name(example);
            if found[example].is_none() && !may_miss {
                return Err(required(&name, &key));
            }
            if let Some((index, count)) = rows.iter().enumerate().find(|&(_, &count)| count != form.stride) {
                return Err(invalid!(
                    "Name: {name}, Key: {key}, Index: {index}.  Number of values != expected.  values size: {count} but \
                     output shape: {}",
                    form.shape
                ));
            }
        }
        let lengths: Vec<i64> = self.examples().map(|rows| rows.len() as i64).collect();
        let ends: Vec<usize> = self.example_ends.iter().map(|end| end * form.stride).collect();
        let height = most.checked_div(form.stride).unwrap_or(0);
        let shape = batch.with_axis(&[&[height], &form.dims()[..]].concat());
        let values = self.values.padded(&ends, most, None)?.tensor(shape)?;
        Ok([values, Tensor::from_slice(batch.with_axis(&[]), &lengths)?])
    }

    /// Indices, values and shape.
    pub fn sparse(self, batch: &Batch<'_>) -> Result<[Tensor; 3]> {
        let (mut indices, mut tallest, mut widest) = (Vec::new(), 0, 0);
        for (example, rows) in self.examples().enumerate() {
            tallest = tallest.max(rows.len());
            for (row, count) in rows.into_iter().enumerate() {
                widest = widest.max(count);
                for place in 0..count {
                    let index = [example as i64, row as i64, place as i64];
                    indices.extend_from_slice(&index[usize::from(!batch.is_batch)..]);
                }
            }
        }
        let count = self.values.len();
        let shape: Vec<i64> = batch.with_axis(&[tallest, widest]).iter().map(|&dim| dim as i64).collect();
        Ok([Tensor::from_slice([count, shape.len()], &indices)?, self.values.tensor([count])?, Tensor::vector(&shape)])
    }

    /// Values, splits of examples, splits of rows.
    pub fn ragged(self, batch: &Batch<'_>, ragged: &Ragged) -> Result<[Tensor; 3]> {
        let count = self.values.len();
        Ok([
            self.values.tensor([count])?,
            batch.example_splits(ragged.splits, &self.example_ends)?,
            splits(ragged.splits, &self.row_ends)?,
        ])
    }
}

/// The error for a feature list that is not there.
pub(super) fn required(name: &str, key: &str) -> status::Error {
    invalid!(
        "Name: {name}, Feature list '{key}' is required but could not be found.  Did you mean to include it in \
         feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?"
    )
}

/// The keys of features of all three forms.
pub(super) fn keys<'a>(dense: &'a [Dense], sparse: &'a [Sparse], ragged: &'a [Ragged]) -> Vec<&'a Bytes> {
    let dense = dense.iter().map(|feature| &feature.key);
    let sparse = sparse.iter().map(|feature| &feature.key);
    dense.chain(sparse).chain(ragged.iter().map(|feature| &feature.key)).collect()
}
