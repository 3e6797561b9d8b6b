//! A matrix product fused with the ops that follow it: a bias, an activation.

use super::matmul::{matmul_shape, operands, product_shape};
use crate::activation::Activation;
use math::function::Real;
use math::gemm::{self, Epilogue};
use op::{Ctx, Grad, Inputs, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid, unimplemented_op};
use tensor::{Element, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "_FusedMatMul(a: T, b: T, args: num_args * T) -> product: T; transpose_a: bool = false; \
          transpose_b: bool = false; T: {bfloat16, half, float}; num_args: int >= 0; fused_ops: list(string) = []; \
          epsilon: float = 1e-04; leakyrelu_alpha: float = 0.2",
    shape: matmul_shape,
    grad: Grad::Unknown,
    kernel: fused_matmul_kernel,
    facts: PLAIN.combined(),
}];

/// The attributes of a node.
#[derive(Clone, Copy)]
struct Fused {
    transpose_a: bool,
    transpose_b: bool,
    activation: Activation,
}

fn fused_matmul_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let fused = Fused {
        transpose_a: setup.bool("transpose_a")?,
        transpose_b: setup.bool("transpose_b")?,
        activation: activation_of(setup)?,
    };
    if setup.int("num_args")? != 1 {
        return Err(invalid!("Fused MatMul with BiasAdd must have one extra argument: bias"));
    }
    for_core!(setup, [f32], T => {
        Ok(many(move |ctx, inputs| Ok(outputs![run_fused_matmul::<T>(ctx, fused, inputs)?])))
    })
}

fn activation_of(setup: &Setup<'_>) -> Result<Activation> {
    let names = &setup.list("fused_ops")?.strings;
    let activation = match &names[..] {
        [] => return Err(invalid!("Fused MatMul must have at least one fused op.")),
        [bias] if &bias[..] == b"BiasAdd" => Some(Activation::None),
        [bias, op] if &bias[..] == b"BiasAdd" => Activation::of_op(op, || setup.float("leakyrelu_alpha"))?,
        _ => None,
    };
    activation.ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name)).collect();
        unimplemented_op!("Fusion is not implemented: [{}]", names.join(","))
    })
}

fn run_fused_matmul<T: Element + gemm::Element + Real>(
    ctx: &Ctx<'_>,
    fused: Fused,
    mut inputs: Inputs,
) -> Result<Tensor> {
    let (a, b, bias) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let (lhs, rhs) = operands::<T>(fused.transpose_a, fused.transpose_b, &a, &b)?;
    if bias.shape().rank() != 1 || bias.elements() != rhs.cols {
        return Err(invalid!(
            "bias must have one element for each of {} columns, got shape {}",
            rhs.cols,
            bias.shape()
        ));
    }
    let mut product = Tensor::zeros::<T>(product_shape(lhs.rows, rhs.cols)?)?;
    let epilogue = Epilogue { bias: Some(bias.values()?), relu: fused.activation == Activation::Relu };
    gemm::matmul_with(ctx.pool(), lhs, rhs, epilogue, product.values_mut()?);
    fused.activation.apply_after_epilogue::<T>(ctx, product)
}
