//! Batch normalisation with given moments, an op of old graphs.

use super::rules::copied;
use graph::{Node, Output};
use math::elementwise::cost::SIMPLE;
use math::function::Real;
use math::reduce::{Accumulate, Reduction, Sum, reduce_axes};
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BatchNormWithGlobalNormalization(t: T, m: T, v: T, beta: T, gamma: T) -> result: T; T: numbertype; \
              variance_epsilon: float; scale_after_normalization: bool",
        shape: unchanged,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN.removed_in(9, "Use tf.nn.batch_normalization()"),
    },
    Op {
        def: "BatchNormWithGlobalNormalizationGrad(t: T, m: T, v: T, gamma: T, backprop: T) -> dx: T, dm: T, dv: T, \
              db: T, dg: T; T: numbertype; variance_epsilon: float; scale_after_normalization: bool",
        shape: grad_shapes,
        grad: Grad::Unknown,
        kernel: grad_kernel,
        facts: PLAIN.removed_in(9, "Use tf.nn.batch_normalization()"),
    },
];

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [t, m, v, _, gamma] = op.inputs()?;
    let builder = dy.scope().op("BatchNormWithGlobalNormalizationGrad");
    let builder = builder.input(&t).input(&m).input(&v).input(&gamma).input(dy);
    let node = copied(builder, op, &["variance_epsilon", "scale_after_normalization"])?.node();
    Ok(grads![node.output(0), node.output(1), node.output(2), node.output(3), node.output(4)])
}

fn grad_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut channels = PartialShape::of_rank(1);
    for input in &query.inputs[1..4] {
        channels = channels.merge(input)?;
    }
    let mut shapes = vec![channels; 5];
    shapes[0] = query.inputs[0].merge(&query.inputs[4])?;
    Ok(shapes)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (epsilon, scaled) = (setup.float("variance_epsilon")?, setup.bool("scale_after_normalization")?);
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(many(move |ctx, inputs| run::<T>(ctx, inputs, epsilon.into(), scaled)))
    })
}

fn run<T: Element + Real>(ctx: &Ctx<'_>, mut inputs: Inputs, epsilon: f64, scaled: bool) -> Result<Outputs> {
    let t = checked_input("input", inputs.tensor(0)?)?;
    let depth = t.shape()[3];
    let [mean, variance, beta, gamma] = vectors(&mut inputs, depth, ["mean", "var", "beta", "gamma"])?;
    let factor = inverse_deviation::<T>(&variance, &gamma, epsilon, scaled)?;
    let mut out = Tensor::scratch::<T>(t.shape())?;
    let (mean, beta) = (mean.values::<T>()?, beta.values::<T>()?);
    let values = t.values::<T>()?;
    math::parallel::split_rows_mut(ctx.pool(), depth as f32, out.values_mut::<T>()?, depth.max(1), |row, out| {
        let values = &values[row * depth..][..out.len()];
        for (i, (out, &x)) in out.iter_mut().zip(values).enumerate() {
            let c = i % depth;
            *out = x.sub(mean[c]).mul(factor[c]).add(beta[c]);
        }
    });
    Ok(outputs![out])
}

/// The inverse deviation, multiplied by gamma if requested.
fn inverse_deviation<T: Element + Real>(
    variance: &Tensor,
    gamma: &Tensor,
    epsilon: f64,
    scaled: bool,
) -> Result<Vec<T>> {
    let both = variance.values::<T>()?.iter().zip(gamma.values::<T>()?);
    let inverse = |variance: T| variance.add(T::from_f64(epsilon)).rsqrt();
    Ok(both.map(|(&v, &gamma)| if scaled { inverse(v).mul(gamma) } else { inverse(v) }).collect())
}

fn checked_input(name: &str, tensor: Tensor) -> Result<Tensor> {
    match tensor.shape().rank() {
        4 => Ok(tensor),
        _ => Err(invalid!("{name} must be 4-dimensional{}", tensor.shape())),
    }
}

fn vectors<const N: usize>(inputs: &mut Inputs, depth: usize, names: [&str; N]) -> Result<[Tensor; N]> {
    let mut tensors = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let tensor = inputs.tensor(i + 1)?;
        if tensor.shape().rank() != 1 {
            return Err(invalid!("{name} must be 1-dimensional{}", tensor.shape()));
        }
        if tensor.elements() != depth {
            return Err(invalid!("{name} has {} elements, but the input has {depth} channels", tensor.elements()));
        }
        tensors.push(tensor);
    }
    tensors.try_into().map_err(|_| status::internal!("{N} vectors"))
}

fn grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (epsilon, scaled) = (setup.float("variance_epsilon")?, setup.bool("scale_after_normalization")?);
    for_floats!(setup, setup.dtype("T")?, T => {
        Ok(many(move |ctx, inputs| run_grad::<T>(ctx, inputs, epsilon.into(), scaled)))
    })
}

fn run_grad<T: Element + Real + Accumulate>(
    ctx: &Ctx<'_>,
    mut inputs: Inputs,
    epsilon: f64,
    scaled: bool,
) -> Result<Outputs> {
    let t = checked_input("input", inputs.tensor(0)?)?;
    let depth = t.shape()[3];
    let [mean, variance, gamma] = vectors(&mut inputs, depth, ["mean", "var", "gamma"])?;
    let dy = checked_input("out_backprop", inputs.tensor(4)?)?;
    if dy.shape() != t.shape() {
        return Err(invalid!("input and out_backprop have shapes {} and {}", t.shape(), dy.shape()));
    }
    let factor = inverse_deviation::<T>(&variance, &gamma, epsilon, scaled)?;
    let inverse = inverse_deviation::<T>(&variance, &gamma, epsilon, false)?;
    let (grads, values, mean) = (dy.values::<T>()?, t.values::<T>()?, mean.values::<T>()?);
    let by_channel = |f: &dyn Fn(usize, usize) -> T| -> Result<Tensor> {
        let mut out = Tensor::scratch::<T>(t.shape())?;
        out.values_mut::<T>()?.iter_mut().enumerate().for_each(|(i, out)| *out = f(i, i % depth));
        Ok(out)
    };
    let dx = by_channel(&|i, c| grads[i].mul(factor[c]))?;
    let products = by_channel(&|i, c| grads[i].mul(values[i].sub(mean[c])))?;
    let db = sums::<T>(ctx, &dy, depth)?;
    let products = sums::<T>(ctx, &products, depth)?;
    let (sum, product, gamma) = (db.values::<T>()?, products.values::<T>()?, gamma.values::<T>()?);
    let vector = |f: &dyn Fn(usize) -> T| Tensor::vector(&(0..depth).map(f).collect::<Vec<T>>());
    let variance = variance.values::<T>()?;
    let dm = vector(&|c| sum[c].mul(factor[c]).neg());
    let dv = vector(&|c| {
        let cube = inverse[c].mul(T::from_f64(-0.5)).div(variance[c].add(T::from_f64(epsilon)));
        product[c].mul(if scaled { cube.mul(gamma[c]) } else { cube })
    });
    let dg = vector(&|c| if scaled { product[c].mul(inverse[c]) } else { T::ZERO });
    Ok(outputs![dx, dm, dv, db.clone(), dg])
}

fn sums<T: Element + Accumulate>(ctx: &Ctx<'_>, tensor: &Tensor, depth: usize) -> Result<Tensor> {
    let mut sums = Tensor::scratch::<T>([depth])?;
    let rows = tensor.elements() / depth.max(1);
    let shape = Reduction::new(&[rows, depth], &[true, false]);
    reduce_axes(ctx.pool(), SIMPLE, &shape, tensor.values::<T>()?, sums.values_mut()?, Sum);
    Ok(sums)
}
