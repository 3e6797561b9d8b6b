//! Batches of matrices, shared by the kernels of linear algebra.

use crate::array::index::product;
use math::linalg::Scalar;
use op::{Ctx, Inputs, Kernel, Outputs, many};
use status::{Result, invalid};
use std::sync::Mutex;
use tensor::{DType, Element, PartialShape, Shape, Tensor, bf16, f16};

/// An element of a matrix that can be factored.
pub(super) trait Number: Element + Scalar {}

impl<T: Element + Scalar> Number for T {}

/// float, double and complex; half and bfloat16 by way of float.
macro_rules! for_matrices {
    ($setup:expr, $dtype:expr, $T:ident => $run:expr) => {{
        let dtype: tensor::DType = $dtype;
        match dtype {
            tensor::DType::F16 | tensor::DType::BF16 => {
                type $T = f32;
                Ok(crate::linalg::batch::widened(dtype, $run))
            }
            _ => for_types!($setup, dtype, [f32, f64, tensor::Complex32, tensor::Complex64], $T => {
                Ok(crate::linalg::batch::plain($run))
            }),
        }
    }};
}

/// A kernel of all inputs.
pub(super) fn plain(run: impl Fn(&Ctx<'_>, &[Tensor]) -> Result<Outputs> + Send + Sync + 'static) -> Kernel {
    many(move |ctx, mut inputs: Inputs| run(ctx, &inputs.tensors_from(0)?)).heavy()
}

/// A kernel that gets 16-bit inputs converted to float, and whose float outputs are converted back.
pub(super) fn widened(
    dtype: DType,
    run: impl Fn(&Ctx<'_>, &[Tensor]) -> Result<Outputs> + Send + Sync + 'static,
) -> Kernel {
    let kernel = many(move |ctx, mut inputs: Inputs| {
        let inputs = inputs.tensors_from(0)?.iter().map(to_float).collect::<Result<Vec<_>>>()?;
        let outputs = run(ctx, &inputs)?;
        let narrow = |value| match value {
            op::Value::Tensor(tensor) => from_float(&tensor, dtype).map(op::Value::Tensor),
            other => Ok(other),
        };
        outputs.into_iter().map(narrow).collect()
    });
    kernel.heavy()
}

fn to_float(tensor: &Tensor) -> Result<Tensor> {
    let values: Vec<f32> = match tensor.dtype() {
        DType::F16 => tensor.values::<f16>()?.iter().map(|value| value.to_f32()).collect(),
        DType::BF16 => tensor.values::<bf16>()?.iter().map(|value| value.to_f32()).collect(),
        _ => return Ok(tensor.clone()),
    };
    Tensor::from_slice(tensor.shape(), &values)
}

fn from_float(tensor: &Tensor, dtype: DType) -> Result<Tensor> {
    if tensor.dtype() != DType::F32 {
        return Ok(tensor.clone());
    }
    let values = tensor.values::<f32>()?.iter();
    match dtype {
        DType::F16 => {
            Tensor::from_slice(tensor.shape(), &values.map(|&value| f16::from_f32(value)).collect::<Vec<_>>())
        }
        _ => Tensor::from_slice(tensor.shape(), &values.map(|&value| bf16::from_f32(value)).collect::<Vec<_>>()),
    }
}

/// A tensor as matrices.
#[derive(Clone, Copy)]
pub(super) struct Matrices<'a, T> {
    pub values: &'a [T],
    pub batch: &'a [usize],
    pub rows: usize,
    pub cols: usize,
}

impl<'a, T: Element> Matrices<'a, T> {
    /// The matrices of input number `number`.
    pub(super) fn of(tensor: &'a Tensor, number: usize) -> Result<Matrices<'a, T>> {
        let dims = tensor.shape().dims();
        let [batch @ .., rows, cols] = dims else {
            return Err(invalid!("Input tensor {number} must have rank >= 2, got {}", dims.len()));
        };
        Ok(Matrices { values: tensor.values::<T>()?, batch, rows: *rows, cols: *cols })
    }

    /// As `of`, for square matrices.
    pub(super) fn square(tensor: &'a Tensor) -> Result<Matrices<'a, T>> {
        let matrices = Matrices::of(tensor, 0)?;
        match matrices.rows == matrices.cols {
            true => Ok(matrices),
            false => Err(invalid!("Input matrix must be square.")),
        }
    }

    /// Matrices and the right-hand sides of their equations, in equal batches.
    pub(super) fn pair(tensors: &'a [Tensor]) -> Result<(Matrices<'a, T>, Matrices<'a, T>)> {
        let lhs = Matrices::of(&tensors[0], 0)?;
        if tensors[1].shape().rank() != tensors[0].shape().rank() {
            return Err(invalid!("All input tensors must have the same rank."));
        }
        let rhs = Matrices::of(&tensors[1], 1)?;
        match lhs.batch == rhs.batch {
            true => Ok((lhs, rhs)),
            false => Err(invalid!("All input tensors must have the same outer dimensions.")),
        }
    }

    /// The number of matrices.
    pub(super) fn count(&self) -> usize {
        product(self.batch)
    }

    /// The values of one matrix.
    pub(super) fn get(&self, number: usize) -> &'a [T] {
        let size = self.rows * self.cols;
        &self.values[number * size..][..size]
    }

    /// A shape with the same batch.
    pub(super) fn shape(&self, matrix: &[usize]) -> Result<Shape> {
        crate::array::index::shape_of(&[self.batch, matrix])
    }
}

/// The results of `each(number)`, in order, on several threads when `cost` nanoseconds are worth it.
pub(super) fn map<R: Send>(
    ctx: &Ctx<'_>,
    count: usize,
    cost: f64,
    each: impl Fn(usize) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let pool = ctx.pool();
    if count < 2 || pool.threads() == 1 || count as f64 * cost < 50_000.0 {
        return (0..count).map(each).collect();
    }
    let size = count.div_ceil(pool.threads() * 4);
    let chunks: Vec<Mutex<Result<Vec<R>>>> = (0..count.div_ceil(size)).map(|_| Mutex::new(Ok(Vec::new()))).collect();
    pool.run(chunks.len(), &|chunk| {
        let results = (chunk * size..count.min((chunk + 1) * size)).map(&each).collect();
        *chunks[chunk].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = results;
    });
    let mut all = Vec::with_capacity(count);
    for chunk in chunks {
        all.extend(chunk.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())?);
    }
    Ok(all)
}

/// Results one after the other as a tensor.
pub(super) fn gathered<T: Element>(shape: Shape, parts: impl IntoIterator<Item = Vec<T>>) -> Result<Tensor> {
    let mut tensor = Tensor::scratch::<T>(shape)?;
    let mut rest = tensor.values_mut::<T>()?;
    for part in parts {
        let (now, later) = rest.split_at_mut(part.len());
        now.copy_from_slice(&part);
        rest = later;
    }
    Ok(tensor)
}

/// About how long work on a matrix of this size takes.
pub(super) fn cubic(rows: usize, cols: usize) -> f64 {
    let (rows, cols) = (rows as f64, cols as f64);
    rows.max(cols) * rows.min(cols) * rows.min(cols) + 200.0
}

/// Rows of vectors as columns.
pub(super) fn transposed<T: Copy + Default>(rows: &[T], count: usize, length: usize) -> Vec<T> {
    (0..count * length).map(|place| rows[place % count * length + place / count]).collect()
}

/// The batch, rows and columns that are known of a shape of matrices.
pub(super) fn matrix_dims(shape: &PartialShape) -> Result<Option<(&[i64], i64, i64)>> {
    match shape.dims() {
        None => Ok(None),
        Some([batch @ .., rows, cols]) => Ok(Some((batch, *rows, *cols))),
        Some(dims) => Err(invalid!("Shape must be at least rank 2 but is rank {}", dims.len())),
    }
}

/// Shape function: the output has the shape of the input, which holds square matrices.
pub(super) fn square_shape(query: &op::ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some((batch, rows, cols)) = matrix_dims(&query.inputs[0])? else {
        return Ok(vec![PartialShape::unknown(); query.outputs]);
    };
    if rows >= 0 && cols >= 0 && rows != cols {
        return Err(invalid!("Dimensions must be equal, but are {rows} and {cols}"));
    }
    let size = rows.max(cols);
    Ok(vec![PartialShape::new(&[batch, &[size, size]].concat()); query.outputs])
}
