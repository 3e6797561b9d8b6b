//! A matrix product fused with the ops that follow it: a bias, an activation.

use super::kernels::run_map;
use super::matmul::{matmul_shape, operands, product_shape};
use math::function::Real;
use math::gemm::{self, Epilogue};
use math::lanes::Map;
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

/// The function applied to the product after the bias.
#[derive(Clone, Copy, PartialEq)]
enum Activation {
    None,
    Relu,
    Relu6,
    Elu,
    Tanh,
    Sigmoid,
    LeakyRelu(f32),
}

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
    let ops: Vec<String> =
        setup.list("fused_ops")?.strings.iter().map(|op| String::from_utf8_lossy(op).into_owned()).collect();
    let names: Vec<&str> = ops.iter().map(String::as_str).collect();
    Ok(match names[..] {
        [] => return Err(invalid!("Fused MatMul must have at least one fused op.")),
        ["BiasAdd"] => Activation::None,
        ["BiasAdd", "Relu"] => Activation::Relu,
        ["BiasAdd", "Relu6"] => Activation::Relu6,
        ["BiasAdd", "Elu"] => Activation::Elu,
        ["BiasAdd", "Tanh"] => Activation::Tanh,
        ["BiasAdd", "Sigmoid"] => Activation::Sigmoid,
        ["BiasAdd", "LeakyRelu"] => Activation::LeakyRelu(setup.float("leakyrelu_alpha")?),
        _ => return Err(unimplemented_op!("Fusion is not implemented: [{}]", names.join(","))),
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
    activate::<T>(ctx, fused.activation, product)
}

fn activate<T: Element + Real>(ctx: &Ctx<'_>, activation: Activation, mut x: Tensor) -> Result<Tensor> {
    match activation {
        Activation::None | Activation::Relu => Ok(x),
        Activation::Relu6 => run_map(ctx, &Map::vector(|x: T| x.larger(T::ZERO).smaller(T::from_f64(6.0))), x),
        Activation::Elu => run_map(ctx, &Map::vector(T::elu), x),
        Activation::Tanh => run_map(ctx, &Map::vector(T::tanh), x),
        Activation::Sigmoid => run_map(ctx, &Map::vector(T::sigmoid), x),
        Activation::LeakyRelu(slope) => {
            let slope = T::from_f64(slope.into());
            for value in x.values_mut::<T>()? {
                *value = if *value > T::ZERO { *value } else { value.mul(slope) };
            }
            Ok(x)
        }
    }
}
