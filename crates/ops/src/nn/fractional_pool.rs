//! Pooling over windows of random sizes with a fractional mean (Graham, arXiv:1412.6071).

use super::rules::copied;
use graph::{Node, Output};
use math::philox::{Philox, shuffle};
use op::{Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid, unimplemented_op};
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;
use tensor::{DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "FractionalMaxPool(value: T) -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64; \
              pooling_ratio: list(float) >= 4; pseudo_random: bool = false; overlapping: bool = false; \
              deterministic: bool = false; seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}",
        shape,
        grad: Grad::Rules(max_rule),
        kernel: max_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FractionalMaxPoolGrad(orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, \
              col_pooling_sequence: int64) -> output: T; overlapping: bool = false; T: {float, double, int32, int64}",
        shape: as_images,
        grad: Grad::Unknown,
        kernel: max_grad_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FractionalAvgPool(value: T) -> output: T, row_pooling_sequence: int64, col_pooling_sequence: int64; \
              pooling_ratio: list(float) >= 4; pseudo_random: bool = false; overlapping: bool = false; \
              deterministic: bool = false; seed: int = 0; seed2: int = 0; T: {float, double, int32, int64}",
        shape,
        grad: Grad::Rules(avg_rule),
        kernel: avg_kernel,
        facts: PLAIN,
    },
    Op {
        def: "FractionalAvgPoolGrad(orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, \
              col_pooling_sequence: int64) -> output: T; overlapping: bool = false; T: {float, double, int32, int64}",
        shape: from_sizes,
        grad: Grad::Unknown,
        kernel: avg_grad_kernel,
        facts: PLAIN,
    },
];

fn max_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let Some(dy) = &dy[0] else { return Ok(grads![NoGradient]) };
    let builder = dy.scope().op("FractionalMaxPoolGrad").input(&op.input(0)).input(&op.output(0)).input(dy);
    let builder = builder.input(&op.output(1)).input(&op.output(2));
    Ok(grads![copied(builder, op, &["overlapping"])?.output()])
}

fn avg_rule(op: &Node, dy: &[Option<Output>]) -> Result<Grads> {
    let Some(dy) = &dy[0] else { return Ok(grads![NoGradient]) };
    let sizes = dy.scope().op("Shape").input(&op.input(0)).attr("out_type", DType::I64).output();
    let builder = dy.scope().op("FractionalAvgPoolGrad").input(&sizes).input(dy);
    let builder = builder.input(&op.output(1)).input(&op.output(2));
    Ok(grads![copied(builder, op, &["overlapping"])?.output()])
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = query.inputs[0].merge(&PartialShape::of_rank(4))?;
    let graph::AttrValue::List(ratios) = query.attr("pooling_ratio")? else { return op::shapes::unknown(query) };
    let dims = input.dims().unwrap_or(&[-1; 4]).iter().zip(&ratios.floats);
    let output: Vec<i64> =
        dims.map(|(&dim, &ratio)| if dim < 0 { -1 } else { (dim as f32 / ratio).floor() as i64 }).collect();
    let edges = |axis: usize| output.get(axis).map_or(-1, |&size| if size < 0 { -1 } else { size + 1 });
    let (rows, cols) = (edges(1), edges(2));
    Ok(vec![PartialShape::new(&output), PartialShape::new(&[rows]), PartialShape::new(&[cols])])
}

fn as_images(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[0].merge(&PartialShape::of_rank(4))?])
}

fn from_sizes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![op::shapes::shape_from_input(query, 0)])
}

/// Reads the attributes of a node.
#[derive(Clone)]
struct Config {
    ratios: [f32; 4],
    pseudo_random: bool,
    overlapping: bool,
    /// None: others in every run.
    seeds: Option<(u64, u64)>,
}

impl Config {
    fn of(setup: &Setup<'_>) -> Result<Config> {
        let ratios: [f32; 4] = (setup.list("pooling_ratio")?.floats.clone().try_into())
            .map_err(|_| invalid!("pooling_ratio field must specify 4 dimensions"))?;
        if let Some(ratio) = ratios.iter().find(|&&ratio| ratio.is_nan() || ratio < 1.0) {
            return Err(invalid!("pooling_ratio cannot be smaller than 1, got: {ratio}"));
        }
        if ratios[0] != 1.0 || ratios[3] != 1.0 {
            return Err(unimplemented_op!(
                "Fractional {} pooling is not yet supported on the batch nor channel dimension.",
                if setup.def().op.contains("Max") { "max" } else { "average" }
            ));
        }
        let seeds = (setup.int("seed")? as u64, setup.int("seed2")? as u64);
        let seeds = match (setup.bool("deterministic")?, seeds) {
            (true, (0, 0)) => Some((entropy(), entropy())),
            (true, seeds) => Some(seeds),
            (false, (0, 0)) => None,
            (false, _) => {
                return Err(invalid!("Both seed and seed2 should be 0 if deterministic is false."));
            }
        };
        let (pseudo_random, overlapping) = (setup.bool("pseudo_random")?, setup.bool("overlapping")?);
        Ok(Config { ratios, pseudo_random, overlapping, seeds })
    }

    /// Sizes of the result, and where the windows begin along rows and columns.
    fn windows(&self, input: &Shape) -> Result<([usize; 4], [Vec<i64>; 2])> {
        let dims: [usize; 4] = input.dims().try_into().map_err(|_| invalid!("tensor_in must be 4-dimensional"))?;
        for (axis, (&dim, &ratio)) in dims.iter().zip(&self.ratios).enumerate() {
            if (dim as f32) < ratio {
                return Err(invalid!(
                    "Pooling ratio is higher than input dimension size for dimension {axis}. Input dim size: {dim} \
                     pooling ratio: {ratio}"
                ));
            }
        }
        let output: [usize; 4] = std::array::from_fn(|axis| (dims[axis] as f32 / self.ratios[axis]).floor() as usize);
        let (seed, seed2) = self.seeds.unwrap_or_else(|| (entropy(), entropy()));
        let mut stream = Philox::from_seeds(seed, seed2);
        let mut edges = |axis: usize| self.edges(&mut stream, dims[axis], output[axis]);
        let edges = [edges(1), edges(2)];
        Ok((output, edges))
    }

    fn edges(&self, stream: &mut Philox, input: usize, output: usize) -> Vec<i64> {
        let steps = if self.pseudo_random { evenly(stream, input, output) } else { shuffled(stream, input, output) };
        let mut edges = vec![0];
        edges.extend(steps.iter().scan(0, |sum, step| {
            *sum += step;
            Some(*sum)
        }));
        edges
    }
}

fn entropy() -> u64 {
    RandomState::new().hash_one(0u64)
}

/// Steps as even as their mean allows, from a random start.
fn evenly(stream: &mut Philox, input: usize, output: usize) -> Vec<i64> {
    let mean = input as f64 / output as f64;
    let least = (input / output) as f64;
    // Beyond these the first or the last step would be too long or too short.
    let highest = ((least + 2.0) / mean - 1.0).min((input as f64 + 1.0 - least) / mean - (output as f64 - 1.0));
    let mut draws = [0f64; 2];
    math::philox::Draw::uniform(stream.block(0), &mut draws);
    stream.skip(1);
    let start = draws[0] * highest;
    let edge = |i: usize| match i {
        0 => 1,
        i if i == output => input as i64 + 1,
        i => (mean * (i as f64 + start)).ceil() as i64,
    };
    (0..output).map(|i| edge(i + 1) - edge(i)).collect()
}

/// Steps of two neighbouring sizes in random order.
fn shuffled(stream: &mut Philox, input: usize, output: usize) -> Vec<i64> {
    let mut steps = vec![(input / output) as i64; output];
    steps[..input % output].iter_mut().for_each(|step| *step += 1);
    shuffle(stream, output, |i, j| steps.swap(i, j));
    stream.skip(output.div_ceil(4) as u64);
    steps
}

/// A number that is pooled.
trait Pooled: Element + PartialOrd {
    const LOWEST: Self;
    fn plus(self, other: Self) -> Self;
    fn over(self, count: usize) -> Self;
    fn to_f64(self) -> f64;
    fn from_f64(x: f64) -> Self;
}

macro_rules! pooled {
    ($($t:ty, $plus:expr;)*) => {$(
        impl Pooled for $t {
            const LOWEST: $t = <$t>::MIN;

            fn plus(self, other: $t) -> $t {
                $plus(self, other)
            }

            fn over(self, count: usize) -> $t {
                self / count as $t
            }

            fn to_f64(self) -> f64 {
                self as f64
            }

            fn from_f64(x: f64) -> $t {
                x as $t
            }
        }
    )*};
}

pooled!(f32, |a, b| a + b; f64, |a, b| a + b; i32, i32::wrapping_add; i64, i64::wrapping_add;);

fn max_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let config = Config::of(setup)?;
    for_types!(setup, setup.dtype("T")?, [f32, f64, i32, i64], T => Ok(many(move |_, mut inputs| {
        forward::<T>(&config, inputs.tensor(0)?, |window| {
            window.fold(T::LOWEST, |best, x| if best < x { x } else { best })
        })
    })))
}

fn avg_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let config = Config::of(setup)?;
    for_types!(setup, setup.dtype("T")?, [f32, f64, i32, i64], T => Ok(many(move |_, mut inputs| {
        forward::<T>(&config, inputs.tensor(0)?, |window| {
            let (sum, count) = window.fold((T::default(), 0), |(sum, count), x| (sum.plus(x), count + 1));
            sum.over(count.max(1))
        })
    })))
}

/// Calls `pool` with the numbers of every window.
fn forward<T: Pooled>(
    config: &Config,
    value: Tensor,
    pool: impl Fn(&mut dyn Iterator<Item = T>) -> T,
) -> Result<Outputs> {
    let ([batch, rows, cols, depth], [row_edges, col_edges]) = config.windows(value.shape())?;
    let (height, width) = (value.shape()[1], value.shape()[2]);
    let values = value.values::<T>()?;
    let mut out = Tensor::scratch::<T>([batch, rows, cols, depth])?;
    for (i, out) in out.values_mut::<T>()?.iter_mut().enumerate() {
        let (d, point) = (i % depth, i / depth);
        let (b, r, c) = (point / cols / rows, point / cols % rows, point % cols);
        let ys = window(&row_edges, r, config.overlapping, height)?;
        let xs = window(&col_edges, c, config.overlapping, width)?;
        let points = ys.flat_map(|y| xs.clone().map(move |x| (b * height + y) * width + x));
        *out = pool(&mut points.map(|point| values[point * depth + d]));
    }
    Ok(outputs![out, Tensor::vector(&row_edges), Tensor::vector(&col_edges)])
}

/// The places of window `i`, all inside `size`.
fn window(edges: &[i64], i: usize, overlapping: bool, size: usize) -> Result<RangeInclusive<usize>> {
    let (start, end) = (edges[i], if overlapping { edges[i + 1] } else { edges[i + 1].saturating_sub(1) });
    let end = end.min(size as i64 - 1);
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) => Ok(start..=end),
        _ => Err(invalid!("Pooling sequence values must not be negative, got {start} and {end}")),
    }
}

/// The sequence of edges for the given number of windows.
fn edges(tensor: &Tensor, name: &str, windows: usize) -> Result<Vec<i64>> {
    if tensor.shape().rank() != 1 {
        return Err(invalid!("{name}_pooling_sequence must be a vector, received shape {}", tensor.shape()));
    }
    if tensor.elements() <= windows {
        return Err(invalid!(
            "{name}_seq_tensor must have at least {} elements, but got {}",
            windows + 1,
            tensor.elements()
        ));
    }
    Ok(tensor.values::<i64>()?.to_vec())
}

fn max_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let overlapping = setup.bool("overlapping")?;
    for_types!(setup, setup.dtype("T")?, [f32, f64, i32, i64], T => {
        Ok(many(move |_, inputs| run_max_grad::<T>(inputs, overlapping)))
    })
}

fn run_max_grad<T: Pooled>(mut inputs: Inputs, overlapping: bool) -> Result<Outputs> {
    let (input, output, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    for (name, tensor) in [("orig_input", &input), ("orig_output", &output)] {
        if tensor.shape().rank() != 4 {
            return Err(invalid!("{name} should be a tensor of rank 4, got {tensor:?}"));
        }
        if tensor.elements() == 0 {
            return Err(invalid!("{name} must not be empty, got {tensor:?}"));
        }
    }
    let (dims, pooled) = (input.shape().clone(), output.shape().clone());
    if grad.shape() != output.shape() || dims[0] != pooled[0] || dims[3] != pooled[3] {
        return Err(invalid!(
            "orig_input, orig_output and out_backprop have shapes {dims}, {pooled} and {}",
            grad.shape()
        ));
    }
    let (rows, cols) = (edges(&inputs.tensor(3)?, "row", pooled[1])?, edges(&inputs.tensor(4)?, "col", pooled[2])?);
    let (values, maxima, grads) = (input.values::<T>()?, output.values::<T>()?, grad.values::<T>()?);
    let mut out = Tensor::zeros::<T>(&dims)?;
    let result = out.values_mut::<T>()?;
    for (i, &grad) in grads.iter().enumerate() {
        let (d, point) = (i % dims[3], i / dims[3]);
        let (b, r, c) = (point / pooled[2] / pooled[1], point / pooled[2] % pooled[1], point % pooled[2]);
        let (ys, xs) = (window(&rows, r, overlapping, dims[1])?, window(&cols, c, overlapping, dims[2])?);
        let (height, width) = (dims[1], dims[2]);
        let places = ys.flat_map(|y| xs.clone().map(move |x| (b * height + y) * width + x));
        let mut best: Option<usize> = None;
        for place in places.map(|place| place * dims[3] + d) {
            if best.is_none_or(|best| values[best] < values[place]) {
                best = Some(place);
            }
        }
        let best = best.ok_or_else(|| invalid!("Invalid input backprop index: -1, {}", values.len()))?;
        if values[best] != maxima[i] {
            return Err(invalid!("tensor_out_dup is not the same as tensor_out"));
        }
        result[best] = result[best].plus(grad);
    }
    Ok(outputs![out])
}

fn avg_grad_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let overlapping = setup.bool("overlapping")?;
    for_types!(setup, setup.dtype("T")?, [f32, f64, i32, i64], T => {
        Ok(many(move |_, inputs| run_avg_grad::<T>(inputs, overlapping)))
    })
}

/// Shares are summed as doubles, and become whole numbers only then.
fn run_avg_grad<T: Pooled>(mut inputs: Inputs, overlapping: bool) -> Result<Outputs> {
    let (sizes, grad) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if sizes.shape().dims() != [4] {
        return Err(invalid!("original input tensor shape must be1-dimensional and 4 elements"));
    }
    let dims = Shape::checked(sizes.values::<i64>()?)?;
    let &[batch, out_rows, out_cols, depth] = grad.shape().dims() else {
        return Err(invalid!("out_backprop must be 4-dimensional"));
    };
    if dims.contains(&0) || batch != dims[0] || depth != dims[3] {
        return Err(invalid!("Input and out_backprop have shapes {dims} and {}", grad.shape()));
    }
    let (rows, cols) = (edges(&inputs.tensor(2)?, "row", out_rows)?, edges(&inputs.tensor(3)?, "col", out_cols)?);
    let mut sums = Tensor::zeros::<f64>(&dims)?;
    let totals = sums.values_mut::<f64>()?;
    for (point, grads) in grad.values::<T>()?.chunks_exact(depth).enumerate() {
        let (b, r, c) = (point / out_cols / out_rows, point / out_cols % out_rows, point % out_cols);
        let (ys, xs) = (window(&rows, r, overlapping, dims[1])?, window(&cols, c, overlapping, dims[2])?);
        let count = (ys.clone().count() * xs.clone().count()) as f64;
        let (height, width) = (dims[1], dims[2]);
        for place in ys.flat_map(|y| xs.clone().map(move |x| (b * height + y) * width + x)) {
            let totals = &mut totals[place * depth..][..depth];
            totals.iter_mut().zip(grads).for_each(|(total, grad)| *total += grad.to_f64() / count);
        }
    }
    let values: Vec<T> = sums.values::<f64>()?.iter().map(|&sum| T::from_f64(sum)).collect();
    Ok(outputs![Tensor::from_slice(&dims, &values)?])
}
