//! RaggedCross: all combinations of the features in the rows of ragged, sparse and dense matrices.

use super::cross::{Column, Rows, advance};
use super::ragged_variant::{check_splits, split_tensor};
use crate::hashing::fingerprint_cat64;
use op::shapes::integers;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use std::ops::Range;
use tensor::{Bytes, DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RaggedCross(ragged_values: [ragged_values_types], ragged_row_splits: [ragged_splits_types], \
          sparse_indices: Nsparse * int64, sparse_values: [sparse_values_types], sparse_shape: Nsparse * int64, \
          dense_inputs: [dense_types]) -> output_values: out_values_type, output_row_splits: out_row_splits_type; \
          Nsparse: int >= 0; input_order: string; hashed_output: bool; num_buckets: int >= 0; hash_key: int; \
          ragged_values_types: list({int64, string}) >= 0; ragged_splits_types: list({int32, int64}) >= 0; \
          sparse_values_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0; \
          out_values_type: {int64, string}; out_row_splits_type: {int32, int64}",
    shape: vectors,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn vectors(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1); query.outputs])
}

/// The attributes of a node.
struct Form {
    ragged: usize,
    sparse: usize,
    dense: usize,
    order: Bytes,
    buckets: i64,
    key: u64,
    values: DType,
    splits: DType,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let form = Form {
        ragged: setup.types("ragged_values_types")?.len(),
        sparse: setup.types("sparse_values_types")?.len(),
        dense: setup.types("dense_types")?.len(),
        order: setup.bytes("input_order")?,
        buckets: setup.int("num_buckets")?,
        key: setup.int("hash_key")? as u64,
        values: setup.dtype("out_values_type")?,
        splits: setup.dtype("out_row_splits_type")?,
    };
    if setup.types("ragged_splits_types")?.len() != form.ragged {
        return Err(invalid!("ragged values and splits must have the same length"));
    }
    if setup.int("Nsparse")? != form.sparse as i64 {
        return Err(invalid!("sparse indices and values must have the same length"));
    }
    if form.ragged + form.sparse + form.dense != form.order.len() {
        return Err(invalid!("Invalid length for input_order"));
    }
    Ok(many(move |_, mut inputs| run(&form, &mut inputs)).heavy())
}

fn run(form: &Form, inputs: &mut Inputs) -> Result<Outputs> {
    let sources = Sources::take(form, inputs)?;
    let rows = sources.rows()?;
    // Before anything else is made for each row: the number may come from a sparse shape.
    let mut ends = Tensor::zeros::<i64>([rows + 1])?;
    let columns = sources.columns(&form.order, rows)?;
    let ends = ends.values_mut::<i64>()?;
    for row in 0..rows {
        let product = columns
            .iter()
            .try_fold(1i64, |product, column| product.checked_mul(column.features(row as i64).len() as i64));
        ends[row + 1] = product.and_then(|count| count.checked_add(ends[row])).unwrap_or(i64::MAX);
    }
    let total = ends[rows];
    if form.splits == DType::I32 && total > i32::MAX.into() {
        return Err(invalid!("{total} crosses do not fit row splits of type int32"));
    }
    let mut out = Tensor::zeros_of(form.values, [total as usize])?;
    match form.values {
        DType::STRING => {
            let mut places = out.strings_mut()?.iter_mut();
            each(&columns, rows, |places_in| put(&mut places, joined(&columns, places_in)?))?;
        }
        _ => {
            let mut places = out.values_mut::<i64>()?.iter_mut();
            each(&columns, rows, |places_in| put(&mut places, hashed(form, &columns, places_in)?))?;
        }
    }
    Ok(outputs![out, split_tensor(ends, form.splits)])
}

fn put<'a, T: 'a>(places: &mut impl Iterator<Item = &'a mut T>, value: T) -> Result<()> {
    if let Some(place) = places.next() {
        *place = value;
    }
    Ok(())
}

/// Calls `make` with the places of every combination, row by row, the last column changing fastest.
fn each(columns: &[Column], rows: usize, mut make: impl FnMut(&[usize]) -> Result<()>) -> Result<()> {
    for row in 0..rows {
        let ranges: Vec<Range<usize>> = columns.iter().map(|column| column.features(row as i64)).collect();
        if ranges.iter().any(Range::is_empty) {
            continue;
        }
        let mut places: Vec<usize> = ranges.iter().map(|range| range.start).collect();
        loop {
            make(&places)?;
            if !advance(&mut places, &ranges) {
                break;
            }
        }
    }
    Ok(())
}

fn joined(columns: &[Column], places: &[usize]) -> Result<Bytes> {
    let parts = columns.iter().zip(places).map(|(column, &place)| column.text(place));
    Ok(Bytes::from(parts.collect::<Result<Vec<_>>>()?.join(&b"_X_"[..])))
}

fn hashed(form: &Form, columns: &[Column], places: &[usize]) -> Result<i64> {
    let modulus = if form.buckets > 0 { form.buckets as u64 } else { i64::MAX as u64 };
    let mut hash = form.key;
    for (column, &place) in columns.iter().zip(places) {
        hash = fingerprint_cat64(hash, column.number(place)?);
    }
    Ok((hash % modulus) as i64)
}

/// The inputs by kind.
struct Sources {
    /// Values and row splits.
    ragged: Vec<(Tensor, Tensor)>,
    /// Indices, values and dense shapes.
    sparse: Vec<(Tensor, Tensor, Tensor)>,
    dense: Vec<Tensor>,
}

impl Sources {
    fn take(form: &Form, inputs: &mut Inputs) -> Result<Sources> {
        let (r, s) = (form.ragged, form.sparse);
        let ragged: Vec<_> = inputs.tensors(0, r)?.into_iter().zip(inputs.tensors(r, r)?).collect();
        let (indices, values) = (inputs.tensors(2 * r, s)?, inputs.tensors(2 * r + s, s)?);
        let shapes = inputs.tensors(2 * r + 2 * s, s)?;
        let sparse = indices.into_iter().zip(values).zip(shapes).map(|((a, b), c)| (a, b, c)).collect();
        let sources = Sources { ragged, sparse, dense: inputs.tensors(2 * r + 3 * s, form.dense)? };
        sources.check()?;
        Ok(sources)
    }

    fn check(&self) -> Result<()> {
        let wrong_rank = || invalid!("tf.ragged.cross only supports inputs with rank=2.");
        for (values, splits) in &self.ragged {
            if values.shape().rank() != 1 || splits.shape().rank() != 1 {
                return Err(wrong_rank());
            }
            check_splits(splits, Some(values.elements() as i64))?;
        }
        for (i, (indices, values, shape)) in self.sparse.iter().enumerate() {
            let fits = indices.shape().rank() == 2 && values.shape().rank() == 1 && shape.shape().rank() == 1;
            if !fits || indices.shape()[0] != values.elements() || indices.shape()[1] == 0 {
                return Err(invalid!("Invalid SparseTensor {i}"));
            }
            if shape.elements() != 2 {
                return Err(wrong_rank());
            }
        }
        match self.dense.iter().all(|dense| dense.shape().rank() == 2) {
            true => Ok(()),
            false => Err(wrong_rank()),
        }
    }

    /// The number of rows, which all inputs have.
    fn rows(&self) -> Result<usize> {
        let mut sizes: Vec<i64> = self.ragged.iter().map(|(_, splits)| splits.elements() as i64 - 1).collect();
        sizes.extend(self.dense.iter().map(|dense| dense.shape()[0] as i64));
        for (_, _, shape) in &self.sparse {
            sizes.push(shape.values::<i64>()?[0]);
        }
        let rows = sizes.first().copied().unwrap_or(0);
        if sizes.iter().any(|&size| size != rows) {
            return Err(invalid!("inputs must all have the same batch dimension size."));
        }
        let most = usize::try_from(rows).ok().filter(|&rows| rows < i64::MAX as usize);
        most.ok_or_else(|| invalid!("The batch size {rows} is out of range"))
    }

    /// The columns in the order of the letters R, S and D.
    fn columns(self, order: &[u8], rows: usize) -> Result<Vec<Column>> {
        let (mut ragged, mut sparse) = (self.ragged.into_iter(), self.sparse.into_iter());
        let mut dense = self.dense.into_iter();
        let text = String::from_utf8_lossy(order);
        let missing = |kind: &str| {
            invalid!("input_order \"{text}\" specifies reading a {kind} tensor that the node does not have")
        };
        let mut columns = Vec::new();
        for kind in order {
            columns.push(match kind {
                b'R' => ragged_column(ragged.next().ok_or_else(|| missing("ragged"))?)?,
                b'S' => sparse_column(sparse.next().ok_or_else(|| missing("sparse"))?, rows)?,
                b'D' => dense_column(dense.next().ok_or_else(|| missing("dense"))?),
                _ => return Err(invalid!("Unexpected input_order value.")),
            });
        }
        Ok(columns)
    }
}

fn ragged_column((values, splits): (Tensor, Tensor)) -> Result<Column> {
    let splits = integers(&splits)?;
    let range = |(row, pair): (usize, &[i64])| (row as i64, pair[0] as usize..pair[1] as usize);
    Ok(Column { values, rows: Rows::Sparse(splits.windows(2).enumerate().map(range).collect()) })
}

/// A value whose row is above that of the value before it counts to the row of that value, as in TensorFlow.
fn sparse_column((indices, values, _): (Tensor, Tensor, Tensor), rows: usize) -> Result<Column> {
    let mut found: FxHashMap<i64, Range<usize>> = FxHashMap::default();
    let mut row = 0;
    for (place, index) in indices.values::<i64>()?.chunks_exact(indices.shape()[1]).enumerate() {
        row = index[0].max(row);
        if row < rows as i64 {
            found.entry(row).or_insert(place..place).end = place + 1;
        }
    }
    Ok(Column { values, rows: Rows::Sparse(found) })
}

fn dense_column(values: Tensor) -> Column {
    let width = values.shape()[1];
    Column { values, rows: Rows::Dense(width) }
}
