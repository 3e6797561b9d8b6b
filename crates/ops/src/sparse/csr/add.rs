//! Weighted sums of sparse matrices, and products with numbers: SparseMatrixAdd, SparseMatrixMul.

use super::for_fields;
use super::matrix::{Builder, Csr, Number, Part};
use super::prune::prune;
use graph::{Node, Output};
use op::shapes::scalar;
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, binary, grads, many, outputs};
use status::{Result, invalid, unimplemented_op};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseMatrixAdd(a: variant, b: variant, alpha: T, beta: T) -> c: variant; \
              T: {float, double, complex64, complex128}",
        shape: scalar,
        grad: Grad::Rule(add_rule),
        kernel: add_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseMatrixMul(a: variant, b: T) -> output: variant; T: type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: mul_kernel,
        facts: PLAIN,
    },
];

/// `alpha a + beta b` of sparse matrices.
pub fn sparse_matrix_add(a: &Output, b: &Output, alpha: &Output, beta: &Output) -> Output {
    a.scope().op("SparseMatrixAdd").input(a).input(b).input(alpha).input(beta).output()
}

/// A sparse matrix times a number, or a batch of them times one number each.
pub fn sparse_matrix_mul(a: &Output, b: &Output) -> Output {
    a.scope().op("SparseMatrixMul").input(a).input(b).output()
}

fn add_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let dtype = op.attr_type("T")?;
    let term = |matrix: usize, factor: usize| {
        sparse_matrix_mul(&prune(dy, &op.input(matrix).seen_from(dy.scope()), dtype), &op.input(factor))
    };
    Ok(grads![term(0, 2), term(1, 3), NoGradient, NoGradient])
}

fn add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    for_fields!(setup, dtype, T => Ok(many(move |_, inputs| run_add::<T>(inputs, dtype))))
}

fn run_add<T: Number>(mut inputs: Inputs, dtype: DType) -> Result<Outputs> {
    let (a, b) = (Csr::take(&inputs.tensor(0)?, 0)?, Csr::take(&inputs.tensor(1)?, 1)?);
    a.check_dtype("a", dtype)?;
    b.check_dtype("b", dtype)?;
    let (alpha, beta) = (factor::<T>(&inputs.tensor(2)?, "alpha")?, factor::<T>(&inputs.tensor(3)?, "beta")?);
    Ok(outputs![sum(&a, &b, alpha, beta)?.into_tensor()?])
}

fn factor<T: Number>(tensor: &Tensor, name: &str) -> Result<T> {
    match tensor.shape().rank() {
        0 => tensor.to_scalar(),
        _ => Err(invalid!("Expected {name} to be a scalar, saw shape: {}", tensor.shape())),
    }
}

/// `alpha a + beta b`, with a value wherever one of them has one.
pub(crate) fn sum<T: Number>(a: &Csr, b: &Csr, alpha: T, beta: T) -> Result<Csr> {
    let dims = a.dense_shape().values::<i64>()?;
    if dims != b.dense_shape().values::<i64>()? {
        return Err(invalid!("Incompatible shapes of a and b, a.shape == {}, b.shape == {}", a.shape()?, b.shape()?));
    }
    let mut out = Builder::<T>::new(dims)?;
    let mut entries = Vec::new();
    for batch in 0..a.batches {
        let (left, right) = (a.part::<T>(batch)?, b.part::<T>(batch)?);
        for row in 0..a.rows {
            merge_row(&mut entries, (&left, alpha), (&right, beta), row);
            entries.iter().for_each(|&(column, value)| out.push(column, value));
            out.end_row()?;
        }
    }
    out.finish()
}

fn merge_row<T: Number>(entries: &mut Vec<(usize, T)>, a: (&Part<'_, T>, T), b: (&Part<'_, T>, T), row: usize) {
    entries.clear();
    for (part, factor) in [a, b] {
        entries.extend(part.entries(row).map(|(column, value)| (column, value * factor)));
    }
    entries.sort_by_key(|&(column, _)| column);
    entries.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1 + next.1;
        }
        same
    });
}

fn mul_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_fields!(setup, setup.dtype("T")?, T => Ok(binary(|_, a, b| {
        let a = Csr::take(&a, 0)?;
        product::<T>(&a, &b)?.into_tensor()
    })))
}

fn product<T: Number>(a: &Csr, b: &Tensor) -> Result<Csr> {
    if a.dtype() != b.dtype() {
        return Err(invalid!("Input types don't match.  a.dtype == {} vs. b.dtype == {}", a.dtype(), b.dtype()));
    }
    match *b.shape().dims() {
        [] => {}
        [count, _, _] if a.rank() == 3 && count == a.batches && b.elements() == count => {}
        [_, _, _] => {
            return Err(invalid!(
                "If b is a rank-3 tensor, then a must be a rank 3 and the size of b be [batch_size, 1, 1].  But the \
                 shape of b is: {} and the shape of a is: {a:?}",
                b.shape()
            ));
        }
        _ => {
            return Err(unimplemented_op!(
                "Multiplying by a 2D+ dense tensor is not currently supported, but shape of b is: {}",
                b.shape()
            ));
        }
    }
    let (factors, mut values) = (b.values::<T>()?, a.tensors()[2].clone());
    for batch in 0..a.batches {
        let factor = factors[if factors.len() == 1 { 0 } else { batch }];
        values.values_mut::<T>()?[a.batch(batch)?].iter_mut().for_each(|value| *value = *value * factor);
    }
    Ok(a.with_values(values))
}
