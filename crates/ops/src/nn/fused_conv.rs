//! Convolution fused with the ops that follow it: bias or normalisation, then an activation.

use super::conv::{run_forward, static_forward};
use super::convolved::Convolved;
use super::geometry::{Attrs, Geometry};
use crate::activation::Activation;
use math::function::Real;
use math::gemm::Epilogue;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid, unimplemented_op};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "_FusedConv2D(input: T, filter: T, args: [TArgs], host_args: num_host_args * float) -> output: T; \
          T: {half, float, double, int8, qint8}; TArgs: list(type) >= 1; num_args: int >= 0; \
          num_host_args: int >= 0 = 0; strides: list(int); padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; \
          explicit_paddings: list(int) = []; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"; \
          filter_format: {\"HWIO\", \"OIHW\", \"OIHW_VECT_I\"} = \"HWIO\"; dilations: list(int) = [1, 1, 1, 1]; \
          use_cudnn_on_gpu: bool = true; fused_ops: list(string) = []; epsilon: float = 1e-04; \
          leakyrelu_alpha: float = 0.2",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN.combined(),
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    static_forward(query, 2)
}

/// Reads the attributes of a node.
#[derive(Clone, Copy)]
struct Fusion {
    geometry: Geometry,
    /// Normalised by given moments, instead of shifted by a bias.
    normalized: Option<f32>,
    activation: Activation,
}

fn fusion(setup: &Setup<'_>) -> Result<Fusion> {
    if setup.text("filter_format") != "HWIO" {
        return Err(unimplemented_op!("Fused conv implementation only supports HWIO filters"));
    }
    let names = setup.list("fused_ops")?.strings.clone();
    let unsupported = || {
        let names: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        unimplemented_op!("Fusion is not implemented: [{}]", names.join(","))
    };
    let (first, second) = (names.first().ok_or_else(unsupported)?, names.get(1));
    let normalized = match &first[..] {
        b"BiasAdd" => None,
        b"FusedBatchNorm" => Some(setup.float("epsilon")?),
        _ => return Err(unsupported()),
    };
    let activation = match second {
        None => Activation::None,
        Some(op) => Activation::of_op(op, || setup.float("leakyrelu_alpha"))?.ok_or_else(unsupported)?,
    };
    if names.len() > 2 {
        return Err(unsupported());
    }
    Ok(Fusion { geometry: Geometry::of_conv(setup, 2)?, normalized, activation })
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let fusion = fusion(setup)?;
    let count = setup.int("num_args")?;
    let wanted = if fusion.normalized.is_some() { 4 } else { 1 };
    if count != wanted {
        return Err(invalid!("Fused Conv2D must have {wanted} extra arguments, got {count}"));
    }
    for_types!(setup, setup.dtype("T")?, [f32, f64, tensor::f16], T => Ok(many(move |ctx, mut inputs| {
        let (input, filter) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let args = inputs.tensors(2, wanted as usize)?;
        Ok(outputs![run::<T>(ctx, fusion, input, filter, &args)?])
    })
    .heavy()))
}

fn run<T: Convolved + Real>(
    ctx: &Ctx<'_>,
    fusion: Fusion,
    input: Tensor,
    filter: Tensor,
    args: &[Tensor],
) -> Result<Tensor> {
    let channels = filter.shape().last().copied().unwrap_or(0);
    for arg in args {
        if arg.shape().rank() != 1 {
            return Err(invalid!("bias must be 1-dimensional{}", arg.shape()));
        }
        if arg.elements() != channels {
            return Err(invalid!("bias depth must be equal to out depth{}", arg.shape()));
        }
    }
    let (filter, bias) = match fusion.normalized {
        None => (filter, args[0].values::<T>()?.to_vec()),
        Some(epsilon) => folded::<T>(filter, args, epsilon)?,
    };
    let end = Epilogue { bias: Some(&bias[..]), relu: matches!(fusion.activation, Activation::Relu) };
    let out = run_forward::<T>(ctx, &fusion.geometry, input, &filter, end)?;
    fusion.activation.apply_after_epilogue::<T>(ctx, out)
}

/// The filter and bias that do the work of a normalisation by given moments: arguments are scale, offset, mean and
/// variance.
fn folded<T: Element + Real>(mut filter: Tensor, args: &[Tensor], epsilon: f32) -> Result<(Tensor, Vec<T>)> {
    let [scale, offset, mean, variance] = [0, 1, 2, 3].map(|i| args[i].values::<T>());
    let (scale, offset, mean, variance) = (scale?, offset?, mean?, variance?);
    let epsilon = T::from_f64(epsilon.into());
    let factor: Vec<T> = scale.iter().zip(variance).map(|(s, v)| s.mul(v.add(epsilon).rsqrt())).collect();
    if !factor.is_empty() {
        for row in filter.values_mut::<T>()?.chunks_exact_mut(factor.len()) {
            row.iter_mut().zip(&factor).for_each(|(x, &factor)| *x = x.mul(factor));
        }
    }
    let bias = (0..factor.len()).map(|c| offset[c].sub(mean[c].mul(factor[c]))).collect();
    Ok((filter, bias))
}
