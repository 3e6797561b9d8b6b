//! A matrix, or a batch of matrices, by compressed rows, as an element of a variant tensor.

use crate::data_structures::arithmetic::scalar_variant;
use math::linalg::Scalar;
use status::{Result, exhausted, invalid};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tensor::{AddTensors, Complex32, Complex64, DType, Element, Shape, Tensor, Variant, VariantData, VariantObject};

/// The type name of such a matrix in serialized variants.
pub(crate) const TYPE_NAME: &str = "tensorflow::CSRSparseMatrix";

/// A number that such a matrix can have.
pub(crate) trait Number: Element + Scalar {}

impl<T: Element + Scalar> Number for T {}

/// A matrix, or a batch of matrices of one shape. The parts fit each other: all pointers increase and end at the number
/// of values they point to, and every column index is a column.
#[derive(Clone)]
pub struct Csr {
    /// How many matrices; 1 without a batch dimension.
    pub batches: usize,
    /// Rows of each matrix.
    pub rows: usize,
    /// Columns of each matrix.
    pub columns: usize,
    dense_shape: Tensor,
    batch_pointers: Tensor,
    row_pointers: Tensor,
    column_indices: Tensor,
    values: Tensor,
}

/// One matrix of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a, T> {
    /// Where each row begins, and where the last ends.
    pub pointers: &'a [i32],
    /// The column of each value.
    pub columns: &'a [i32],
    /// The values, row by row.
    pub values: &'a [T],
}

impl<T: Copy> Part<'_, T> {
    /// The places of the values of a row.
    pub fn row(&self, row: usize) -> Range<usize> {
        self.pointers[row] as usize..self.pointers[row + 1] as usize
    }

    /// Column and value of each entry of a row.
    pub fn entries(&self, row: usize) -> impl Iterator<Item = (usize, T)> {
        self.row(row).map(|place| (self.columns[place] as usize, self.values[place]))
    }
}

impl Csr {
    /// The matrix with these parts: dense shape, batch pointers, row pointers, column indices, values.
    pub fn new([dense_shape, batch_pointers, row_pointers, column_indices, values]: [Tensor; 5]) -> Result<Csr> {
        check_types(&dense_shape, &batch_pointers, &row_pointers, &column_indices, &values)?;
        let (batches, rows, columns) = sizes(dense_shape.values::<i64>()?)?;
        if batches + 1 != batch_pointers.elements() {
            return Err(invalid!(
                "CSRSparseMatrix::Validate: dense_shape is {} but batch pointers implies batch size is {}",
                dims_text(&dense_shape),
                batch_pointers.elements() as i64 - 1
            ));
        }
        if row_pointers.elements() != batches * (rows + 1) {
            return Err(invalid!(
                "CSRSparseMatrix::Validate: row_pointers should have size batch_size * (num_rows + 1), saw shapes: {} \
                 vs. {}",
                dims_text(&dense_shape),
                row_pointers.shape()
            ));
        }
        if column_indices.elements() != values.elements() {
            return Err(invalid!(
                "CSRSparseMatrix::Validate: size(col_indices) = {} != size(values) = {}",
                column_indices.elements(),
                values.elements()
            ));
        }
        let csr = Csr { batches, rows, columns, dense_shape, batch_pointers, row_pointers, column_indices, values };
        csr.check_pointers()?;
        Ok(csr)
    }

    fn check_pointers(&self) -> Result<()> {
        let broken = |what: &str| invalid!("CSRSparseMatrix::Validate: {what}");
        let batches = self.batch_pointers.values::<i32>()?;
        if !increases(batches, self.values.elements()) {
            return Err(broken("batch_pointers do not increase from 0 to the number of values"));
        }
        let pointers = self.row_pointers.values::<i32>()?;
        for (rows, ends) in pointers.chunks_exact(self.rows + 1).zip(batches.windows(2)) {
            if !increases(rows, (ends[1] - ends[0]) as usize) {
                return Err(broken("row_pointers do not increase from 0 to the number of values of their batch"));
            }
        }
        let inside = |&column: &i32| column >= 0 && (column as usize) < self.columns;
        match self.column_indices.values::<i32>()?.iter().all(inside) {
            true => Ok(()),
            false => Err(broken("col_indices are outside of the matrix")),
        }
    }

    /// The matrix in input `index` of an op.
    pub fn take(input: &Tensor, index: usize) -> Result<Csr> {
        let ([variant], 0) = (input.variants()?, input.shape().rank()) else {
            return Err(invalid!("Invalid input matrix: Shape must be rank 0 but is rank {}", input.shape().rank()));
        };
        let csr = Csr::from_variant(variant).ok_or_else(|| invalid!("Could not retrieve Variant input {index}"))??;
        match csr.batches {
            0 => Err(invalid!("Variant input {index} is not valid.")),
            _ => Ok(csr),
        }
    }

    /// The matrix a variant is; none if it is something else.
    pub fn from_variant(variant: &Variant) -> Option<Result<Csr>> {
        match variant {
            Variant::Data(data) => (data.type_name == TYPE_NAME).then(|| Csr::decode(data)),
            Variant::Object(_) => variant.object::<Csr>().cloned().map(Ok),
        }
    }

    /// A matrix as it travelled: the metadata are whether it was validated, and the element type.
    pub fn decode(data: &VariantData) -> Result<Csr> {
        let broken = || invalid!("The data of a CSRSparseMatrix cannot be read");
        let (&[validated, _, _, _, a, b, c, d], [shape, batches, rows, columns, values]) =
            (&data.metadata[..], &data.tensors[..])
        else {
            return Err(broken());
        };
        if validated == 0 || i32::from_le_bytes([a, b, c, d]) != values.dtype().number() {
            return Err(broken());
        }
        Csr::new([shape, batches, rows, columns, values].map(Tensor::clone))
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.values.dtype()
    }

    /// The number of dimensions: 2, or 3 with a batch dimension.
    pub fn rank(&self) -> usize {
        self.dense_shape.elements()
    }

    /// The dense shape, a vector.
    pub fn dense_shape(&self) -> &Tensor {
        &self.dense_shape
    }

    /// The dense shape as one.
    pub fn shape(&self) -> Result<Shape> {
        Shape::checked(self.dense_shape.values::<i64>()?)
    }

    /// Row pointers of all batches, column indices and values.
    pub fn tensors(&self) -> [&Tensor; 3] {
        [&self.row_pointers, &self.column_indices, &self.values]
    }

    /// The places of the values of a batch.
    pub fn batch(&self, batch: usize) -> Result<Range<usize>> {
        let pointers = self.batch_pointers.values::<i32>()?;
        Ok(pointers[batch] as usize..pointers[batch + 1] as usize)
    }

    /// The matrix number `batch`.
    pub(crate) fn part<T: Element>(&self, batch: usize) -> Result<Part<'_, T>> {
        let range = self.batch(batch)?;
        Ok(Part {
            pointers: &self.row_pointers.values::<i32>()?[batch * (self.rows + 1)..][..=self.rows],
            columns: &self.column_indices.values::<i32>()?[range.clone()],
            values: &self.values.values::<T>()?[range],
        })
    }

    /// The same places with other values.
    pub fn with_values(&self, values: Tensor) -> Csr {
        Csr { values, ..self.clone() }
    }

    /// An error unless the elements are of the type in attribute `type` of a node; `name` is that of the input.
    pub fn check_dtype(&self, name: &str, dtype: DType) -> Result<()> {
        match self.dtype() == dtype {
            true => Ok(()),
            false => Err(invalid!("dtype of {name} is not equal to 'type': {} vs. {dtype}", self.dtype())),
        }
    }

    /// A scalar with this matrix.
    pub fn into_tensor(self) -> Result<Tensor> {
        scalar_variant(self)
    }
}

/// Batches, rows and columns of a dense shape, whose row pointers 32 bits can count.
pub(crate) fn sizes(dims: &[i64]) -> Result<(usize, usize, usize)> {
    let (batches, rows, columns) = match *dims {
        [rows, columns] => (1, rows, columns),
        [batches, rows, columns] => (batches, rows, columns),
        _ => {
            return Err(invalid!("SparseTensor must have rank 2 or 3; but indices has rank: {}", dims.len()));
        }
    };
    const MOST: i64 = i32::MAX as i64;
    if let Some(negative) = dims.iter().find(|&&dim| dim < 0) {
        return Err(invalid!("Expected a non-negative size, got {negative}"));
    }
    if batches >= MOST {
        return Err(invalid!("dense_shape batch_size must be < Int32Max, but the input value is {batches}"));
    }
    let pointers = rows.checked_add(1).and_then(|rows| rows.checked_mul(batches)).unwrap_or(i64::MAX);
    if pointers > MOST || rows >= MOST || columns > MOST {
        return Err(invalid!(
            "The csr row index size, computed based on the dense_shape, must be <= Int32Max, but is too large. Current \
             value is {pointers}"
        ));
    }
    Ok((batches as usize, rows as usize, columns as usize))
}

fn increases(pointers: &[i32], end: usize) -> bool {
    pointers.first() == Some(&0)
        && pointers.last().is_some_and(|&last| last as usize == end)
        && pointers.windows(2).all(|pair| pair[0] <= pair[1])
}

fn check_types(
    dense_shape: &Tensor,
    batch_pointers: &Tensor,
    row_pointers: &Tensor,
    columns: &Tensor,
    values: &Tensor,
) -> Result<()> {
    if ![DType::F32, DType::F64, DType::C64, DType::C128].contains(&values.dtype()) {
        return Err(invalid!(
            "CSRSparseMatrix::Validate: dtype = {} not in {{float32, float64, complex64, complex128}}",
            values.dtype()
        ));
    }
    let parts = [
        ("dense_shape", dense_shape, DType::I64),
        ("batch_pointers", batch_pointers, DType::I32),
        ("row_pointers", row_pointers, DType::I32),
        ("col_indices", columns, DType::I32),
        ("values", values, values.dtype()),
    ];
    for (name, part, dtype) in parts {
        if part.dtype() != dtype {
            return Err(invalid!("CSRSparseMatrix::Validate: {name}.dtype() = {} != {dtype}", part.dtype()));
        }
        if part.shape().rank() != 1 {
            return Err(invalid!("CSRSparseMatrix::Validate: {name} is not a vector, saw shape: {}", part.shape()));
        }
    }
    Ok(())
}

/// The dimensions of a shape tensor as they stand in messages.
pub(crate) fn dims_text(dense_shape: &Tensor) -> String {
    crate::array::index::joined(dense_shape.values::<i64>().unwrap_or_default(), " ")
}

/// Collects the rows of a matrix, batch by batch.
pub(crate) struct Builder<T> {
    dense_shape: Tensor,
    batch_pointers: Tensor,
    row_pointers: Tensor,
    columns: Vec<i32>,
    values: Vec<T>,
    rows: usize,
    row: usize,
    start: usize,
}

impl<T: Element> Builder<T> {
    /// An empty matrix of this dense shape.
    pub fn new(dims: &[i64]) -> Result<Builder<T>> {
        let (batches, rows, _) = sizes(dims)?;
        Ok(Builder {
            dense_shape: Tensor::vector(dims),
            batch_pointers: Tensor::zeros::<i32>([batches + 1])?,
            row_pointers: Tensor::zeros::<i32>([batches * (rows + 1)])?,
            columns: Vec::new(),
            values: Vec::new(),
            rows,
            row: 0,
            start: 0,
        })
    }

    /// Adds an entry to the current row.
    pub fn push(&mut self, column: usize, value: T) {
        self.columns.push(column as i32);
        self.values.push(value);
    }

    /// Ends the current row.
    pub fn end_row(&mut self) -> Result<()> {
        if self.values.len() > i32::MAX as usize {
            return Err(exhausted!("A CSRSparseMatrix with {} values is too large", self.values.len()));
        }
        let (batch, row) = (self.row / self.rows, self.row % self.rows);
        let place = batch * (self.rows + 1) + row + 1;
        self.row_pointers.values_mut::<i32>()?[place] = (self.values.len() - self.start) as i32;
        self.row += 1;
        if row + 1 == self.rows {
            self.start = self.values.len();
            self.batch_pointers.values_mut::<i32>()?[batch + 1] = self.start as i32;
        }
        Ok(())
    }

    /// The matrix, after all rows ended.
    pub fn finish(self) -> Result<Csr> {
        let (columns, values) = (Tensor::vector(&self.columns), Tensor::vector(&self.values));
        Csr::new([self.dense_shape, self.batch_pointers, self.row_pointers, columns, values])
    }
}

impl VariantObject for Csr {
    fn encode(&self) -> Result<VariantData> {
        let [a, b, c, d] = self.dtype().number().to_le_bytes();
        let metadata = vec![1, 0, 0, 0, a, b, c, d].into();
        let parts = [&self.dense_shape, &self.batch_pointers, &self.row_pointers, &self.column_indices, &self.values];
        let tensors = parts.map(Tensor::clone).to_vec();
        Ok(VariantData { type_name: TYPE_NAME.to_string(), metadata, tensors })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn zeros_like(&self) -> Result<Variant> {
        let dims = self.dense_shape.values::<i64>()?;
        Ok(Variant::Object(Arc::new(super::zeros(self.dtype(), dims)?)))
    }

    fn add(&self, other: &Variant, _: &AddTensors<'_>) -> Result<Variant> {
        let other = Csr::from_variant(other).ok_or_else(|| invalid!("Could not retrieve Variant input 1"))??;
        if self.dtype() != other.dtype() {
            return Err(invalid!(
                "CSRSparseMatrixBinaryHelper: Inconsistent dtypes for input matrices, a dtype: {}, b dtype: {}",
                self.dtype(),
                other.dtype()
            ));
        }
        Ok(Variant::Object(Arc::new(match self.dtype() {
            DType::F32 => super::sum::<f32>(self, &other, 1.0, 1.0)?,
            DType::F64 => super::sum::<f64>(self, &other, 1.0, 1.0)?,
            DType::C64 => super::sum::<Complex32>(self, &other, Complex32::ONE, Complex32::ONE)?,
            _ => super::sum::<Complex64>(self, &other, Complex64::ONE, Complex64::ONE)?,
        })))
    }
}

impl fmt::Debug for Csr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = dims_text(&self.dense_shape);
        write!(f, "Tensor<type: int64 shape: [{}] values: {dims}>", self.rank())
    }
}
