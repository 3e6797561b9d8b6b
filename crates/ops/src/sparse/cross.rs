//! SparseCross and related ops: all combinations of the features in the columns of a row.

use super::coo::index_tensor;
use crate::hashing::{fingerprint_cat64, fingerprint64, sip_hash};
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use std::ops::Range;
use tensor::{Bytes, DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseCross(indices: N * int64, values: [sparse_types], shapes: N * int64, dense_inputs: [dense_types]) -> \
              output_indices: int64, output_values: out_type, output_shape: int64; N: int >= 0; hashed_output: bool; \
              num_buckets: int >= 0; hash_key: int; sparse_types: list({int64, string}) >= 0; \
              dense_types: list({int64, string}) >= 0; out_type: {int64, string}; internal_type: {int64, string}",
        shape: cross_shape,
        grad: Grad::Stop,
        kernel: cross_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseCrossV2(indices: N * int64, values: [sparse_types], shapes: N * int64, dense_inputs: [dense_types], \
              sep: string) -> output_indices: int64, output_values: string, output_shape: int64; N: int >= 0; \
              sparse_types: list({int64, string}) >= 0; dense_types: list({int64, string}) >= 0",
        shape: cross_shape,
        grad: Grad::Stop,
        kernel: joined_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseCrossHashed(indices: N * int64, values: [sparse_types], shapes: N * int64, dense_inputs: [dense_types], \
              num_buckets: int64, strong_hash: bool, salt: int64) -> output_indices: int64, output_values: int64, \
              output_shape: int64; N: int >= 0; sparse_types: list({int64, string}) >= 0; \
              dense_types: list({int64, string}) >= 0",
        shape: cross_shape,
        grad: Grad::Stop,
        kernel: hashed_kernel,
        facts: PLAIN,
    },
];

fn cross_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[-1, 2]), PartialShape::of_rank(1), PartialShape::new(&[2])])
}

/// How many inputs of each kind a node has.
#[derive(Clone, Copy)]
struct Counts {
    sparse: usize,
    dense: usize,
}

impl Counts {
    fn of(setup: &Setup<'_>) -> Result<Counts> {
        Ok(Counts { sparse: setup.int("N")? as usize, dense: setup.types("dense_types")?.len() })
    }

    /// The first input after the columns.
    fn end(self) -> usize {
        3 * self.sparse + self.dense
    }
}

/// A column: its features, and which of them each row has.
pub(super) struct Column {
    pub values: Tensor,
    pub rows: Rows,
}

pub(super) enum Rows {
    Sparse(FxHashMap<i64, Range<usize>>),
    Dense(usize),
}

impl Column {
    pub fn features(&self, row: i64) -> Range<usize> {
        match &self.rows {
            Rows::Sparse(rows) => rows.get(&row).cloned().unwrap_or_default(),
            Rows::Dense(width) => row as usize * width..(row as usize + 1) * width,
        }
    }

    pub fn text(&self, place: usize) -> Result<Bytes> {
        match self.values.dtype() {
            DType::STRING => Ok(self.values.strings()?[place].clone()),
            _ => Ok(Bytes::from(self.values.values::<i64>()?[place].to_string())),
        }
    }

    /// The fingerprint of a string; an integer is its own fingerprint.
    pub fn number(&self, place: usize) -> Result<u64> {
        match self.values.dtype() {
            DType::STRING => Ok(fingerprint64(&self.values.strings()?[place])),
            _ => Ok(self.values.values::<i64>()?[place] as u64),
        }
    }

    /// As `number`, but hashed under a key if there is one. Of integers TensorFlow hashes the lower half only, and leaves
    /// those of dense columns as they are.
    fn salted(&self, place: usize, key: Option<[u64; 2]>) -> Result<u64> {
        let hash = |bytes: &[u8]| key.map_or_else(|| fingerprint64(bytes), |key| sip_hash(key, bytes));
        match (self.values.dtype(), &self.rows, key) {
            (DType::STRING, _, _) => Ok(hash(&self.values.strings()?[place])),
            (_, Rows::Dense(_), None) => self.number(place),
            _ => Ok(hash(&self.values.values::<i64>()?[place].to_le_bytes()[..4])),
        }
    }
}

/// All columns and the number of rows.
struct Columns {
    all: Vec<Column>,
    rows: i64,
}

impl Columns {
    fn take(inputs: &mut Inputs, counts: Counts, internal_type: Option<DType>) -> Result<Columns> {
        let n = counts.sparse;
        let (indices, values) = (inputs.tensors(0, n)?, inputs.tensors(n, n)?);
        let (shapes, dense) = (inputs.tensors(2 * n, n)?, inputs.tensors(3 * n, counts.dense)?);
        let only_strings = internal_type == Some(DType::STRING);
        check_sparse(&indices, &values, &shapes, only_strings)?;
        check_dense(&dense, only_strings)?;
        let mut sizes = Vec::new();
        for shape in &shapes {
            sizes.push(shape.values::<i64>()?[0]);
        }
        sizes.extend(dense.iter().map(|tensor| tensor.shape()[0] as i64));
        let rows = sizes.first().copied().unwrap_or(0);
        if let Some(at) = sizes.iter().position(|&size| size != rows) {
            let place = if at < n { format!("position {at}") } else { format!("dense tensor {}", at - n) };
            return Err(invalid!("Expected batch size {rows} got {} at {place}", sizes[at]));
        }
        let mut all = Vec::new();
        for (indices, values) in indices.iter().zip(values) {
            all.push(Column { values, rows: Rows::Sparse(row_ranges(indices.values::<i64>()?)) });
        }
        for values in dense {
            let width = values.shape()[1];
            all.push(Column { values, rows: Rows::Dense(width) });
        }
        Ok(Columns { all, rows })
    }

    /// The rows in which every column may have features.
    fn candidates(&self) -> Vec<i64> {
        match self.all.first().map(|column| &column.rows) {
            Some(Rows::Sparse(rows)) => {
                let mut rows: Vec<i64> = rows.keys().copied().filter(|row| (0..self.rows).contains(row)).collect();
                rows.sort_unstable();
                rows
            }
            _ => (0..self.rows).collect(),
        }
    }

    /// Calls `make` with the places of every combination, the last column changing fastest; gives the indices of the
    /// result and its shape.
    fn each(&self, mut make: impl FnMut(&[usize]) -> Result<()>) -> Result<(Tensor, Tensor)> {
        let (mut indices, mut count, mut widest) = (Vec::new(), 0, 0_i64);
        for row in self.candidates() {
            let ranges: Vec<Range<usize>> = self.all.iter().map(|column| column.features(row)).collect();
            if ranges.iter().any(Range::is_empty) {
                continue;
            }
            let mut places: Vec<usize> = ranges.iter().map(|range| range.start).collect();
            let mut number = 0;
            loop {
                make(&places)?;
                indices.extend([row, number]);
                number += 1;
                count += 1;
                if !advance(&mut places, &ranges) {
                    break;
                }
            }
            widest = widest.max(number);
        }
        Ok((index_tensor(&indices, count, 2)?, Tensor::vector(&[self.rows, widest])))
    }

    fn joined(&self, separator: &[u8]) -> Result<Outputs> {
        let mut values = Vec::new();
        let (indices, shape) = self.each(|places| {
            let parts = self.all.iter().zip(places).map(|(column, &place)| column.text(place));
            values.push(Bytes::from(parts.collect::<Result<Vec<_>>>()?.join(separator)));
            Ok(())
        })?;
        Ok(outputs![indices, Tensor::from_strings([values.len()], values)?, shape])
    }

    /// `start` none means the first column starts.
    fn hashed(
        &self,
        start: Option<u64>,
        buckets: i64,
        feature: impl Fn(&Column, usize) -> Result<u64>,
    ) -> Result<Outputs> {
        let modulus = if buckets > 0 { buckets as u64 } else { i64::MAX as u64 };
        let mut values = Vec::new();
        let (indices, shape) = self.each(|places| {
            let mut hash = start;
            for (column, &place) in self.all.iter().zip(places) {
                let next = feature(column, place)?;
                hash = Some(hash.map_or(next, |hash| fingerprint_cat64(hash, next)));
            }
            values.push((hash.unwrap_or_default() % modulus) as i64);
            Ok(())
        })?;
        Ok(outputs![indices, Tensor::vector(&values), shape])
    }
}

/// The next combination; false after the last.
pub(super) fn advance(places: &mut [usize], ranges: &[Range<usize>]) -> bool {
    for (place, range) in places.iter_mut().zip(ranges).rev() {
        *place += 1;
        if *place < range.end {
            return true;
        }
        *place = range.start;
    }
    false
}

/// The values of each row, which are adjacent.
fn row_ranges(indices: &[i64]) -> FxHashMap<i64, Range<usize>> {
    let mut rows: FxHashMap<i64, Range<usize>> = FxHashMap::default();
    for (place, index) in indices.chunks_exact(2).enumerate() {
        let range = rows.entry(index[0]).or_insert(place..place);
        if range.end == place {
            range.end += 1;
        }
    }
    rows
}

fn check_sparse(indices: &[Tensor], values: &[Tensor], shapes: &[Tensor], only_strings: bool) -> Result<()> {
    for (i, tensor) in indices.iter().enumerate() {
        match *tensor.shape().dims() {
            [_, 2] => {}
            [_, rank] => return Err(invalid!("Expected D2 of index to be 2 got {rank} at position {i}")),
            _ => {
                let shape = tensor.shape();
                return Err(invalid!("Input indices should be a matrix but received shape {shape} at position {i}"));
            }
        }
    }
    for (i, (tensor, indices)) in values.iter().zip(indices).enumerate() {
        if only_strings && tensor.dtype() == DType::I64 {
            return Err(invalid!("Input values should be of internal type 7 but received {}", tensor.dtype().number()));
        }
        if tensor.shape().rank() != 1 {
            let shape = tensor.shape();
            return Err(invalid!("Input values should be a vector but received shape {shape} at position {i}"));
        }
        let (wanted, found) = (indices.shape()[0], tensor.elements());
        if wanted != found {
            return Err(invalid!("Expected size of values to be {wanted} got {found} at position {i}"));
        }
    }
    for (i, tensor) in shapes.iter().enumerate() {
        if tensor.shape().rank() != 1 {
            let shape = tensor.shape();
            return Err(invalid!("Input shapes should be a vector but received shape {shape} at position {i}"));
        }
        if tensor.elements() != 2 {
            return Err(invalid!("shape should imply a 2D tensor, but got {} at position {i}", tensor.shape()));
        }
    }
    Ok(())
}

fn check_dense(dense: &[Tensor], only_strings: bool) -> Result<()> {
    for (i, tensor) in dense.iter().enumerate() {
        if only_strings && tensor.dtype() == DType::I64 {
            return Err(invalid!("Dense inputs should be of internal type 7 but received {}", tensor.dtype().number()));
        }
        if tensor.shape().rank() != 2 {
            let shape = tensor.shape();
            return Err(invalid!("Dense inputs should be a matrix but received shape {shape} at position {i}"));
        }
    }
    Ok(())
}

fn cross_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let counts = Counts::of(setup)?;
    let (buckets, key) = (setup.int("num_buckets")?, setup.int("hash_key")? as u64);
    let internal_type = setup.dtype("internal_type")?;
    let strings = setup.dtype("out_type")? == DType::STRING;
    let kernel = many(move |_, mut inputs| {
        let columns = Columns::take(&mut inputs, counts, Some(internal_type))?;
        match strings {
            true => columns.joined(b"_X_"),
            false => columns.hashed(Some(key), buckets, |column, place| column.number(place)),
        }
    });
    Ok(kernel.heavy())
}

fn joined_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let counts = Counts::of(setup)?;
    let kernel = many(move |_, mut inputs| {
        let columns = Columns::take(&mut inputs, counts, None)?;
        let separator = inputs.tensor(counts.end())?;
        if separator.shape().rank() != 0 {
            return Err(invalid!("Input separator should be a scalar. Received: {separator:?}"));
        }
        columns.joined(&separator.to_string_scalar()?)
    });
    Ok(kernel.heavy())
}

fn hashed_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let counts = Counts::of(setup)?;
    let kernel = many(move |_, mut inputs| {
        let columns = Columns::take(&mut inputs, counts, None)?;
        let [buckets, strong, salt] = [0, 1, 2].map(|input| inputs.tensor(counts.end() + input));
        let (buckets, strong, salt) = (buckets?.to_scalar::<i64>()?, strong?.to_scalar::<bool>()?, salt?);
        let &[low, high] = salt.values::<i64>()? else {
            return Err(invalid!("Input \"salt\" must have length 2 but has length {}", salt.elements()));
        };
        let key = strong.then_some([low as u64, high as u64]);
        columns.hashed(None, buckets, |column, place| column.salted(place, key))
    });
    Ok(kernel.heavy())
}
