//! NthElement: the element at a position of the sorted rows.

use super::index::integer;
use super::nodes;
use super::order::compare;
use graph::{Node, Output};
use math::parallel::split_rows_mut;
use op::{Ctx, Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, ShapeQuery, binary, grads};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "NthElement(input: T, n: int32) -> values: T; reverse: bool = false; T: realnumbertype",
    shape: nth_shape,
    grad: Grad::Rule(nth_rule),
    kernel: nth_kernel,
    facts: PLAIN,
}];

/// The `n`-th smallest element of each row, or the `n`-th largest if `reverse`.
pub fn nth_element(input: &Output, n: i32, reverse: bool) -> Output {
    let n = nodes::int(input.scope(), n);
    input.scope().op("NthElement").input(input).input(&n).attr("reverse", reverse).output()
}

fn nth_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::unknown()]) };
    let Some((&last, batch)) = dims.split_last() else {
        return Err(invalid!("Shape must be at least rank 1 but is rank 0"));
    };
    let n = query.constants[1].as_ref().and_then(|n| integer(n, || invalid!("n must be a scalar")).ok());
    if let Some(n) = n.filter(|&n| last >= 0 && last <= n) {
        return Err(invalid!("Input must have last dimension > n = {n} but is {last}"));
    }
    Ok(vec![PartialShape::new(batch)])
}

/// Elements that equal the chosen one share its gradient.
fn nth_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let input = op.input(0);
    let chosen = nodes::pair("Equal", &nodes::expand(&op.output(0), -1), &input);
    let chosen = nodes::cast(&chosen, dy.dtype());
    let shares = nodes::sum(&chosen, &nodes::ints(input.scope(), &[-1]), true);
    Ok(grads![chosen / shares * nodes::expand(dy, -1), NoGradient])
}

fn nth_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let reverse = setup.bool("reverse")?;
    let kernel = for_core!(setup, [f32, f64, i64, u64], T => Ok(binary(move |ctx, input, n| {
        run::<T>(ctx, &input, &n, reverse)
    })));
    Ok(kernel?.heavy())
}

fn run<T: Element + PartialOrd>(ctx: &Ctx<'_>, input: &Tensor, n: &Tensor, reverse: bool) -> Result<Tensor> {
    let n = integer(n, || invalid!("N must be scalar but has rank {}", n.shape().rank()))?;
    let Ok(n) = usize::try_from(n) else { return Err(invalid!("n must be non-negative but is {n}")) };
    let Some((&width, batch)) = input.shape().split_last() else {
        return Err(invalid!("Input must be at least rank 1 but is rank 0"));
    };
    if width <= n {
        return Err(invalid!("Input must have last dimension > n = {n}"));
    }
    let n = if reverse { width - n - 1 } else { n };
    let values = input.values::<T>()?;
    let mut output = Tensor::scratch::<T>(batch)?;
    split_rows_mut(ctx.pool(), width as f32 * 4.0, output.values_mut::<T>()?, 1, |first, part| {
        let mut row = Vec::with_capacity(width);
        for (number, answer) in part.iter_mut().enumerate() {
            row.clear();
            row.extend_from_slice(&values[(first + number) * width..][..width]);
            *answer = *row.select_nth_unstable_by(n, compare).1;
        }
    });
    Ok(output)
}
