//! SparseMatrixSoftmax and its gradient: the softmax of the values of each row.

use super::matrix::{Csr, Part, dims_text};
use graph::{Node, Output};
use math::linalg::RealScalar;
use op::shapes::scalar;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, binary, grads, unary};
use status::{Result, invalid};
use tensor::{DType, Element, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseMatrixSoftmax(logits: variant) -> softmax: variant; type: {float, double}",
        shape: scalar,
        grad: Grad::Rule(rule),
        kernel: softmax_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseMatrixSoftmaxGrad(softmax: variant, grad_softmax: variant) -> gradient: variant; \
              type: {float, double}",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// The softmax of each row of a sparse matrix; missing values count as minus infinity.
pub fn sparse_matrix_softmax(logits: &Output, dtype: DType) -> Output {
    logits.scope().op("SparseMatrixSoftmax").input(logits).attr("type", dtype).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let builder = dy.scope().op("SparseMatrixSoftmaxGrad").input(&op.output(0)).input(dy);
    Ok(grads![builder.attr("type", op.attr_type("type")?).output()])
}

fn softmax_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    for_types!(setup, dtype, [f32, f64], T => Ok(unary(move |_, logits| {
        let logits = Csr::take(&logits, 0)?;
        logits.check_dtype("logits", dtype)?;
        logits.with_values(softmax::<T>(&logits)?).into_tensor()
    })))
}

fn softmax<T: Element + RealScalar>(logits: &Csr) -> Result<Tensor> {
    let mut out = logits.tensors()[2].clone();
    let table = out.values_mut::<T>()?;
    for batch in 0..logits.batches {
        let (part, range) = (logits.part::<T>(batch)?, logits.batch(batch)?);
        for row in 0..logits.rows {
            softmax_of(&mut table[range.clone()][part.row(row)]);
        }
    }
    Ok(out)
}

fn softmax_of<T: RealScalar>(values: &mut [T]) {
    let largest = values.iter().fold(f64::NEG_INFINITY, |largest, value| largest.max(value.wide()));
    let exponentials: Vec<f64> = values.iter().map(|value| (value.wide() - largest).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    values.iter_mut().zip(exponentials).for_each(|(value, exponential)| *value = T::of(exponential / sum));
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("type")?;
    for_types!(setup, dtype, [f32, f64], T => Ok(binary(move |_, softmax, gradient| {
        let (softmax, gradient) = (Csr::take(&softmax, 0)?, Csr::take(&gradient, 1)?);
        softmax.check_dtype("softmax", dtype)?;
        gradient.check_dtype("grad_softmax", dtype)?;
        check_shapes(&softmax, &gradient)?;
        softmax.with_values(backprop::<T>(&softmax, &gradient)?).into_tensor()
    })))
}

fn check_shapes(softmax: &Csr, gradient: &Csr) -> Result<()> {
    if softmax.rank() != gradient.rank() {
        return Err(invalid!(
            "Ranks of softmax and grad_softmax matrices differ: {} vs. {}",
            softmax.rank(),
            gradient.rank()
        ));
    }
    if softmax.shape()? != gradient.shape()? {
        return Err(invalid!(
            "Shapes of softmax and grad_softmax matrices differ: {} vs. {}",
            dims_text(softmax.dense_shape()),
            dims_text(gradient.dense_shape())
        ));
    }
    Ok(())
}

/// Of each value s with gradient g, in a row: `s (g - sum(s g))`.
fn backprop<T: Element + RealScalar>(softmax: &Csr, gradient: &Csr) -> Result<Tensor> {
    let mut out = softmax.tensors()[2].clone();
    let table = out.values_mut::<T>()?;
    for batch in 0..softmax.batches {
        let (part, range) = (softmax.part::<T>(batch)?, softmax.batch(batch)?);
        let other = gradient.part::<T>(batch)?;
        for row in 0..softmax.rows {
            let met = met(&part, &other, row);
            let values = &mut table[range.clone()][part.row(row)];
            let sum = values.iter().zip(&met).fold(T::default(), |sum, (&s, &g)| sum + s * g);
            values.iter_mut().zip(met).for_each(|(s, g)| *s = *s * (g - sum));
        }
    }
    Ok(out)
}

/// The values of `other` at the columns of a row of `part`; zero where it has none.
fn met<T: Element + RealScalar>(part: &Part<'_, T>, other: &Part<'_, T>, row: usize) -> Vec<T> {
    let mut found: Vec<(usize, T)> = other.entries(row).collect();
    found.sort_by_key(|&(column, _)| column);
    let value = |column: usize| found.binary_search_by_key(&column, |&(column, _)| column).map(|place| found[place].1);
    part.entries(row).map(|(column, _)| value(column).unwrap_or_default()).collect()
}
