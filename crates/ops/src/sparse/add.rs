//! SparseAdd: the sum of two sparse tensors, and its gradient.

use super::coo::Coo;
use super::union::{check_same_shape, indices_of, union};
use crate::array::units::Unit;
use graph::{Node, Output};
use math::function::Number;
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SparseAdd(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64, \
              thresh: Treal) -> sum_indices: int64, sum_values: T, sum_shape: int64; T: numbertype; Treal: realnumbertype",
        shape: add_shape,
        grad: Grad::Rules(add_rule),
        kernel: add_kernel,
        facts: PLAIN,
    },
    Op {
        def: "SparseAddGrad(backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64) -> a_val_grad: T, \
              b_val_grad: T; T: numbertype",
        shape: grad_shape,
        grad: Grad::Stop,
        kernel: grad_kernel,
        facts: PLAIN,
    },
];

/// The sum of two sparse tensors, each given as indices, values and shape; sums below `thresh` are left out.
pub fn sparse_add(a: [&Output; 3], b: [&Output; 3], thresh: &Output) -> (Output, Output, Output) {
    let builder = a[1].scope().op("SparseAdd").input(a[0]).input(a[1]).input(a[2]);
    let node = builder.input(b[0]).input(b[1]).input(b[2]).input(thresh).node();
    (node.output(0), node.output(1), node.output(2))
}

fn add_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let shape = query.inputs[2].merge(&PartialShape::of_rank(1))?;
    let rank = shape.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![PartialShape::new(&[-1, rank]), PartialShape::of_rank(1), shape])
}

fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rows =
        |input: &PartialShape| PartialShape::new(&[input.dims().and_then(|dims| dims.first().copied()).unwrap_or(-1)]);
    Ok(vec![rows(&query.inputs[1]), rows(&query.inputs[2])])
}

fn add_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let mut grads: Grads = grads![NoGradient, NoGradient, NoGradient, NoGradient, NoGradient, NoGradient, NoGradient];
    if let Some(dy) = &dys[1] {
        let builder = dy.scope().op("SparseAddGrad").input(dy).input(&op.input(0)).input(&op.input(3));
        let node = builder.input(&op.output(0)).node();
        let [a, b] = [0, 1].map(|side| Some(op::Gradient::Dense(node.output(side))));
        (grads[1], grads[4]) = (a, b);
    }
    Ok(grads)
}

/// The distance from zero.
trait Magnitude: Element + Number {
    fn magnitude(self) -> f64;
}

macro_rules! magnitude {
    ($($t:ty: $of:expr;)*) => {$(
        impl Magnitude for $t {
            fn magnitude(self) -> f64 {
                $of(self)
            }
        }
    )*};
}

magnitude! {
    f32: |v: f32| f64::from(v.abs());
    f64: |v: f64| v.abs();
    i64: |v: i64| v.unsigned_abs() as f64;
    i32: |v: i32| v.unsigned_abs().into();
    Complex32: |v: Complex32| v.norm().into();
    Complex64: |v: Complex64| v.norm();
}

fn add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i64, i32, Complex32, Complex64], T => {
        Ok(many(|_, inputs| run_add::<T>(inputs)))
    })
}

fn run_add<T: Magnitude>(mut inputs: Inputs) -> Result<Outputs> {
    let [ai, av, a_shape, bi, bv, b_shape, thresh] =
        inputs.tensors(0, 7)?.try_into().map_err(|_| invalid!("7 inputs"))?;
    check_parts([&ai, &av, &a_shape], [&bi, &bv, &b_shape])?;
    let thresh = threshold(&thresh)?;
    let (a, b) = (Coo::new(&ai, &av, &a_shape)?, Coo::new(&bi, &bv, &b_shape)?);
    let (x, y) = (av.values::<T>()?, bv.values::<T>()?);
    let value = |met: &(Option<usize>, Option<usize>)| match *met {
        (Some(i), Some(j)) => Some(x[i].add(y[j])).filter(|sum| sum.magnitude() >= thresh),
        (Some(i), None) => Some(x[i]),
        (None, j) => j.map(|j| y[j]),
    };
    let places = union(&a, &b).into_iter().map(|met| (met, value(&met)));
    let (met, sums): (Vec<_>, Vec<T>) = places.filter_map(|(met, sum)| Some((met, sum?))).unzip();
    Ok(outputs![indices_of(&a, &b, &met)?, Tensor::vector(&sums), a_shape])
}

fn check_parts(a: [&Tensor; 3], b: [&Tensor; 3]) -> Result<()> {
    let both =
        |part: usize, rank: usize, what: &str| match a[part].shape().rank() == rank && b[part].shape().rank() == rank {
            true => Ok(()),
            false => Err(invalid!("{what} {} and {}", a[part].shape(), b[part].shape())),
        };
    both(0, 2, "Input indices should be matrices but received shapes:")?;
    let (rank, other) = (a[0].shape()[1], b[0].shape()[1]);
    if rank != other {
        return Err(invalid!("Input indices must have the same dimension, got {rank} and {other}"));
    }
    both(1, 1, "Input values should be vectors but received shapes:")?;
    let (wanted, found) = ((a[0].shape()[0], b[0].shape()[0]), (a[1].elements(), b[1].elements()));
    if wanted != found {
        return Err(invalid!(
            "Expected {} and {} non-empty input values, got {} and {}",
            wanted.0,
            wanted.1,
            found.0,
            found.1
        ));
    }
    both(2, 1, "Input shapes should be a vector but received shapes")?;
    if a[2].elements() != rank {
        return Err(invalid!(
            "Second dimension of a_indices and length of a_shape must match, got {rank} and {}",
            a[2].elements()
        ));
    }
    if rank == 0 {
        return Err(invalid!("Tesors must not be empty"));
    }
    check_same_shape(a[2].values::<i64>()?, b[2].values::<i64>()?)
}

fn threshold(thresh: &Tensor) -> Result<f64> {
    if thresh.shape().rank() != 0 {
        return Err(invalid!("The magnitude threshold must be a scalar: got shape {}", thresh.shape()));
    }
    Ok(match thresh.dtype() {
        DType::F32 => thresh.to_scalar::<f32>()?.into(),
        DType::F64 => thresh.to_scalar::<f64>()?,
        _ => op::shapes::integers(thresh)?[0] as f64,
    })
}

fn grad_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, inputs| run_grad(inputs)))
}

fn run_grad(mut inputs: Inputs) -> Result<Outputs> {
    let (grad, a, b, sum) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
    let (&[_, a_rank], &[_, b_rank], &[count, rank]) = (a.shape().dims(), b.shape().dims(), sum.shape().dims()) else {
        return Err(invalid!(
            "Input indices should be matrices but received shapes: {} and {} and {}",
            a.shape(),
            b.shape(),
            sum.shape()
        ));
    };
    if grad.shape().rank() != 1 {
        return Err(invalid!("Input backprop_val_grad should be a vector but received shape: {}", grad.shape()));
    }
    if a_rank != rank || b_rank != rank {
        return Err(invalid!(
            "The densified operands should have the same ndims; for A, B, sum got: {a_rank}{b_rank}{rank}"
        ));
    }
    if grad.elements() != count {
        return Err(invalid!(
            "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got {} and {count}",
            grad.elements()
        ));
    }
    let all = sum.values::<i64>()?;
    let places: FxHashMap<&[i64], usize> = (0..count).map(|number| (&all[number * rank..][..rank], number)).collect();
    Ok(outputs![picked(&grad, &a, &places)?, picked(&grad, &b, &places)?])
}

/// The gradient of each row of indices, zero if it is not in the sum.
fn picked(grad: &Tensor, indices: &Tensor, places: &FxHashMap<&[i64], usize>) -> Result<Tensor> {
    let (count, rank) = (indices.shape()[0], indices.shape()[1]);
    let rows = indices.values::<i64>()?;
    let sources: Vec<_> = (0..count).map(|number| places.get(&rows[number * rank..][..rank])).collect();
    let mut back = Tensor::zeros_of(grad.dtype(), [count])?;
    for_units!(grad.dtype(), E => fill(E::of(grad)?, &sources, E::of_mut(&mut back)?));
    Ok(back)
}

fn fill<E: Unit>(grad: &[E], sources: &[Option<&usize>], back: &mut [E]) {
    for (to, source) in back.iter_mut().zip(sources) {
        if let &Some(&source) = source {
            *to = grad[source].clone();
        }
    }
}
