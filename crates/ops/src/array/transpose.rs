//! Permutations of axes: Transpose, ConjugateTranspose.

use super::invert_permutation::invert_permutation;
use super::units::Unit;
use graph::{Node, Output, ShapeQuery};
use math::Pool;
use math::{Permutation, transpose as move_axes, transpose_clone};
use op::shapes::integers;
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads};
use status::{Result, invalid};
use tensor::{Bytes, Complex32, Complex64, DType, PartialShape, ResourceHandle, Shape, Tensor, Variant};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Transpose(x: T, perm: Tperm) -> y: T; T: type; Tperm: {int32, int64} = int32",
        shape: transpose_shape,
        grad: Grad::Rule(transpose_rule),
        kernel: transpose_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ConjugateTranspose(x: T, perm: Tperm) -> y: T; T: type; Tperm: {int32, int64} = int32",
        shape: transpose_shape,
        grad: Grad::Rule(conjugate_transpose_rule),
        kernel: conjugate_transpose_kernel,
        facts: PLAIN,
    },
];

/// `x` with its axes in another order: axis `i` of the result is axis `perm[i]` of `x`.
pub fn transpose(x: &Output, perm: &Output) -> Output {
    x.scope().op("Transpose").input(x).input(perm).output()
}

/// As `transpose`, and every element replaced by its complex conjugate.
pub fn conjugate_transpose(x: &Output, perm: &Output) -> Output {
    x.scope().op("ConjugateTranspose").input(x).input(perm).output()
}

fn transpose_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![transpose(dy, &invert_permutation(&op.input(1))), NoGradient])
}

fn conjugate_transpose_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![conjugate_transpose(dy, &invert_permutation(&op.input(1))), NoGradient])
}

fn transpose_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let perm = query.constants[1].as_ref().map(integers).transpose()?;
    let rank = query.inputs[0].rank().or(query.inputs[1].dim(0)).or(perm.as_ref().map(Vec::len));
    let Some(rank) = rank.filter(|&rank| rank <= Shape::MAX_RANK) else { return Ok(vec![PartialShape::unknown()]) };
    Ok(vec![match (query.inputs[0].dims(), perm) {
        (Some(dims), Some(perm)) => {
            let dims: Vec<i64> = order(&perm, rank)?.into_iter().map(|axis| dims[axis]).collect();
            PartialShape::new(&dims)
        }
        _ => PartialShape::of_rank(rank),
    }])
}

/// The permutation as axes, checked.
fn order(perm: &[i64], rank: usize) -> Result<Vec<usize>> {
    if perm.len() != rank {
        return Err(invalid!(
            "transpose expects a vector of size {rank}. But input(1) is a vector of size {}",
            perm.len()
        ));
    }
    let (mut found, mut order) = (vec![false; rank], Vec::with_capacity(rank));
    for &number in perm {
        let axis =
            super::args::to_axis(number, rank).ok_or_else(|| invalid!("{number} is out of range [0 .. {rank})"))?;
        found[axis] = true;
        order.push(axis);
    }
    if let Some(missing) = found.iter().position(|found| !found) {
        let listed: Vec<String> = order.iter().map(usize::to_string).collect();
        return Err(invalid!("{missing} is missing from {{{}}}.", listed.join(",")));
    }
    Ok(order)
}

fn transpose_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|ctx, x, perm| run_transpose(ctx.pool(), x, &perm)))
}

fn run_transpose(pool: &Pool, x: Tensor, perm: &Tensor) -> Result<Tensor> {
    if perm.shape().rank() != 1 {
        return Err(invalid!("perm must be rank 1, got shape {}", perm.shape()));
    }
    let order = order(&integers(perm)?, x.shape().rank())?;
    permuted(pool, x, &order)
}

/// The tensor with its axes in another order, shared if only axes of length one change places.
pub(crate) fn permuted(pool: &Pool, x: Tensor, order: &[usize]) -> Result<Tensor> {
    let shape: Shape = order.iter().map(|&axis| x.shape()[axis]).collect();
    if order.iter().filter(|&&axis| x.shape()[axis] != 1).is_sorted() {
        return x.reshaped(shape);
    }
    let permutation = Permutation::new(x.shape(), order);
    match x.dtype() {
        DType::STRING => Tensor::from_strings(shape, transpose_clone(&permutation, <Bytes as Unit>::of(&x)?)),
        DType::RESOURCE => {
            Tensor::from_handles(shape, transpose_clone(&permutation, <ResourceHandle as Unit>::of(&x)?))
        }
        DType::VARIANT => Tensor::from_variants(shape, transpose_clone(&permutation, <Variant as Unit>::of(&x)?)),
        dtype => {
            let mut y = Tensor::scratch_of(dtype, shape)?;
            move_plain(pool, &permutation, &x, &mut y)?;
            Ok(y)
        }
    }
}

fn move_plain(pool: &Pool, permutation: &Permutation, x: &Tensor, y: &mut Tensor) -> Result<()> {
    macro_rules! by_width {
        ($($width:literal),*) => {
            match x.dtype().size() {
                $($width => move_axes(pool, permutation, <[u8; $width]>::of(x)?, <[u8; $width]>::of_mut(y)?),)*
                _ => return Err(invalid!("Elements of type {} cannot be transposed", x.dtype())),
            }
        };
    }
    by_width!(1, 2, 4, 8, 16);
    Ok(())
}

fn conjugate_transpose_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    Ok(match setup.dtype("T")? {
        DType::C64 => binary(|ctx, x, perm| {
            let mut y = run_transpose(ctx.pool(), x, &perm)?;
            y.values_mut::<Complex32>()?.iter_mut().for_each(|value| *value = value.conj());
            Ok(y)
        }),
        DType::C128 => binary(|ctx, x, perm| {
            let mut y = run_transpose(ctx.pool(), x, &perm)?;
            y.values_mut::<Complex64>()?.iter_mut().for_each(|value| *value = value.conj());
            Ok(y)
        }),
        _ => binary(|ctx, x, perm| run_transpose(ctx.pool(), x, &perm)),
    })
}
