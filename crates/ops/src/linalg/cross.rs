//! Cross: the vector product of triples.

use crate::array::nodes;
use graph::{Node, Output};
use math::function::Number;
use op::shapes::merged;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, binary, grads};
use status::{Result, failed_precondition, invalid};
use tensor::{Element, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Cross(a: T, b: T) -> product: T; T: realnumbertype",
    shape: merged,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// The vector products of the triples in the last axis.
pub fn cross(a: &Output, b: &Output) -> Output {
    nodes::pair("Cross", a, b)
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [a, b] = op.inputs()?;
    Ok(grads![cross(&b, dy), cross(dy, &a)])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_core!(setup, [f32, f64, i32, i64], T => Ok(binary(|_, a, b| run::<T>(&a, &b))))
}

fn run<T: Element + Number>(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if a.shape() != b.shape() {
        return Err(invalid!("Both inputs must be of same shape: {} vs. {}", a.shape(), b.shape()));
    }
    match a.shape().last() {
        None => return Err(invalid!("Input must be at least 1D: {}", a.shape())),
        Some(3) => {}
        Some(_) => return Err(failed_precondition!("Cross-products are only defined for 3-element vectors.")),
    }
    let mut product = Tensor::scratch::<T>(a.shape())?;
    let triples = a.values::<T>()?.as_chunks::<3>().0.iter().zip(b.values::<T>()?.as_chunks::<3>().0);
    for (out, (a, b)) in product.values_mut::<T>()?.as_chunks_mut::<3>().0.iter_mut().zip(triples) {
        *out = [(1, 2), (2, 0), (0, 1)].map(|(i, j)| a[i].mul(b[j]).sub(a[j].mul(b[i])));
    }
    Ok(product)
}
