//! Convolutions by element type: float and double directly, 16-bit floats through float, int32 with simple loops.

use math::Pool;
use math::conv::{self, ConvShape};
use math::elementwise::cost::SIMPLE;
use math::elementwise::map;
use math::function::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use math::gemm::Epilogue;
use tensor::{Element, bf16, f16};

/// A number of which convolutions are made.
pub(crate) trait Convolved: Element {
    /// The convolution, with a bias and a relu if wanted.
    fn forward(
        pool: &Pool,
        shape: &ConvShape,
        input: &[Self],
        filter: &[Self],
        end: Epilogue<'_, Self>,
        out: &mut [Self],
    );
    /// The derivative by the input.
    fn grad_input(pool: &Pool, shape: &ConvShape, filter: &[Self], grad: &[Self], out: &mut [Self]);
    /// The derivative by the filter.
    fn grad_filter(pool: &Pool, shape: &ConvShape, input: &[Self], grad: &[Self], out: &mut [Self]);
}

/// A number of which convolutions with one filter per channel are made.
pub(crate) trait Depthwise: Element {
    /// The convolution.
    fn forward(pool: &Pool, shape: &ConvShape, input: &[Self], filter: &[Self], out: &mut [Self]);
    /// The derivative by the input.
    fn grad_input(pool: &Pool, shape: &ConvShape, filter: &[Self], grad: &[Self], out: &mut [Self]);
    /// The derivative by the filter.
    fn grad_filter(pool: &Pool, shape: &ConvShape, input: &[Self], grad: &[Self], out: &mut [Self]);
}

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Convolved for $t {
            fn forward(
                pool: &Pool,
                shape: &ConvShape,
                input: &[$t],
                filter: &[$t],
                end: Epilogue<'_, $t>,
                out: &mut [$t],
            ) {
                conv::forward(pool, shape, input, filter, end, out);
            }

            fn grad_input(pool: &Pool, shape: &ConvShape, filter: &[$t], grad: &[$t], out: &mut [$t]) {
                conv::grad_input(pool, shape, filter, grad, out);
            }

            fn grad_filter(pool: &Pool, shape: &ConvShape, input: &[$t], grad: &[$t], out: &mut [$t]) {
                conv::grad_filter(pool, shape, input, grad, out);
            }
        }

        impl Depthwise for $t {
            fn forward(pool: &Pool, shape: &ConvShape, input: &[$t], filter: &[$t], out: &mut [$t]) {
                conv::depthwise(pool, shape, input, filter, out);
            }

            fn grad_input(pool: &Pool, shape: &ConvShape, filter: &[$t], grad: &[$t], out: &mut [$t]) {
                conv::depthwise_grad_input(pool, shape, filter, grad, out);
            }

            fn grad_filter(pool: &Pool, shape: &ConvShape, input: &[$t], grad: &[$t], out: &mut [$t]) {
                conv::depthwise_grad_filter(pool, shape, input, grad, out);
            }
        }
    )*};
}

float!(f32, f64);

macro_rules! half_float {
    ($t:ty, $widen:ident, $narrow:ident) => {
        impl Convolved for $t {
            fn forward(
                pool: &Pool,
                shape: &ConvShape,
                input: &[$t],
                filter: &[$t],
                end: Epilogue<'_, $t>,
                out: &mut [$t],
            ) {
                let bias = end.bias.map(|bias| wide(pool, bias, $widen));
                let end = Epilogue { bias: bias.as_deref(), relu: end.relu };
                let (input, filter) = (wide(pool, input, $widen), wide(pool, filter, $widen));
                narrow(pool, out, $narrow, |out| conv::forward(pool, shape, &input, &filter, end, out));
            }

            fn grad_input(pool: &Pool, shape: &ConvShape, filter: &[$t], grad: &[$t], out: &mut [$t]) {
                let (filter, grad) = (wide(pool, filter, $widen), wide(pool, grad, $widen));
                narrow(pool, out, $narrow, |out| conv::grad_input(pool, shape, &filter, &grad, out));
            }

            fn grad_filter(pool: &Pool, shape: &ConvShape, input: &[$t], grad: &[$t], out: &mut [$t]) {
                let (input, grad) = (wide(pool, input, $widen), wide(pool, grad, $widen));
                narrow(pool, out, $narrow, |out| conv::grad_filter(pool, shape, &input, &grad, out));
            }
        }

        impl Depthwise for $t {
            fn forward(pool: &Pool, shape: &ConvShape, input: &[$t], filter: &[$t], out: &mut [$t]) {
                let (input, filter) = (wide(pool, input, $widen), wide(pool, filter, $widen));
                narrow(pool, out, $narrow, |out| conv::depthwise(pool, shape, &input, &filter, out));
            }

            fn grad_input(pool: &Pool, shape: &ConvShape, filter: &[$t], grad: &[$t], out: &mut [$t]) {
                let (filter, grad) = (wide(pool, filter, $widen), wide(pool, grad, $widen));
                narrow(pool, out, $narrow, |out| conv::depthwise_grad_input(pool, shape, &filter, &grad, out));
            }

            fn grad_filter(pool: &Pool, shape: &ConvShape, input: &[$t], grad: &[$t], out: &mut [$t]) {
                let (input, grad) = (wide(pool, input, $widen), wide(pool, grad, $widen));
                narrow(pool, out, $narrow, |out| conv::depthwise_grad_filter(pool, shape, &input, &grad, out));
            }
        }
    };
}

half_float!(f16, f16_to_f32, f32_to_f16);
half_float!(bf16, bf16_to_f32, f32_to_bf16);

fn wide<T: Element>(pool: &Pool, src: &[T], widen: impl Fn(T) -> f32 + Copy + Send + Sync) -> Vec<f32> {
    let mut dst = vec![0.0; src.len()];
    map(pool, SIMPLE, src, &mut dst, widen);
    dst
}

fn narrow<T: Element>(
    pool: &Pool,
    dst: &mut [T],
    narrow: impl Fn(f32) -> T + Copy + Send + Sync,
    body: impl FnOnce(&mut [f32]),
) {
    let mut sums = vec![0.0; dst.len()];
    body(&mut sums);
    map(pool, SIMPLE, &sums, dst, narrow);
}

/// Sums wrap around.
impl Convolved for i32 {
    fn forward(_: &Pool, shape: &ConvShape, input: &[i32], filter: &[i32], end: Epilogue<'_, i32>, out: &mut [i32]) {
        out.fill(0);
        each_product(shape, |at| {
            out[at.output] = out[at.output].wrapping_add(input[at.input].wrapping_mul(filter[at.filter]));
        });
        for out in out.chunks_exact_mut(shape.out_channels.max(1)) {
            for (c, out) in out.iter_mut().enumerate() {
                *out = out.wrapping_add(end.bias.map_or(0, |bias| bias[c]));
                *out = if end.relu { (*out).max(0) } else { *out };
            }
        }
    }

    fn grad_input(_: &Pool, shape: &ConvShape, filter: &[i32], grad: &[i32], out: &mut [i32]) {
        out.fill(0);
        each_product(shape, |at| {
            out[at.input] = out[at.input].wrapping_add(grad[at.output].wrapping_mul(filter[at.filter]));
        });
    }

    fn grad_filter(_: &Pool, shape: &ConvShape, input: &[i32], grad: &[i32], out: &mut [i32]) {
        out.fill(0);
        each_product(shape, |at| {
            out[at.filter] = out[at.filter].wrapping_add(input[at.input].wrapping_mul(grad[at.output]));
        });
    }
}

/// The positions of the factors of a product, and of the sum it is added to.
struct Product {
    input: usize,
    filter: usize,
    output: usize,
}

fn each_product(shape: &ConvShape, mut body: impl FnMut(Product)) {
    let (each_in, each_out) = (shape.filter_channels, shape.out_channels / shape.groups());
    each_meeting(shape, |input, filter, output| {
        for o in 0..shape.out_channels {
            for i in 0..each_in {
                body(Product {
                    input: input * shape.channels + o / each_out * each_in + i,
                    filter: (filter * each_in + i) * shape.out_channels + o,
                    output: output * shape.out_channels + o,
                });
            }
        }
    });
}

/// Calls `body` with a point of the input, a place of the filter and a point of the output wherever they meet.
fn each_meeting(shape: &ConvShape, mut body: impl FnMut(usize, usize, usize)) {
    let index = |at: [usize; 3], size: [usize; 3]| (at[0] * size[1] + at[1]) * size[2] + at[2];
    let unindex = |i: usize, size: [usize; 3]| [i / size[2] / size[1], i / size[2] % size[1], i % size[2]];
    let (points, places) = (shape.output.iter().product::<usize>(), shape.taps());
    let image = shape.input.iter().product::<usize>();
    for number in 0..shape.batch {
        for output in 0..points {
            let at = unindex(output, shape.output);
            for filter in 0..places {
                let tap = unindex(filter, shape.filter);
                let seen: [usize; 3] = std::array::from_fn(|i| {
                    (at[i] * shape.stride[i] + tap[i] * shape.dilation[i]).wrapping_sub(shape.pad_before[i])
                });
                if (0..3).all(|i| seen[i] < shape.input[i]) {
                    body(number * image + index(seen, shape.input), filter, number * points + output);
                }
            }
        }
    }
}
