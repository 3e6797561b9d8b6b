//! Convolutions against loops over every index.

use crate::Pool;
use crate::conv::{self, Axis, ConvShape};
use crate::gemm::Epilogue;

fn numbers(len: usize, seed: usize) -> Vec<f64> {
    (0..len).map(|i| ((i * 7 + seed * 3 + i / 5) % 9) as f64 - 4.0).collect()
}

/// Calls `visit(input index, filter index, output index)` for every product of the convolution.
fn products(shape: &ConvShape, mut visit: impl FnMut(usize, usize, usize)) {
    let out_each = shape.out_channels / shape.groups();
    let place = |sizes: [usize; 3], at: [usize; 3]| (at[0] * sizes[1] + at[1]) * sizes[2] + at[2];
    let points = |sizes: [usize; 3]| {
        (0..sizes[0]).flat_map(move |z| (0..sizes[1]).flat_map(move |y| (0..sizes[2]).map(move |x| [z, y, x])))
    };
    for image in 0..shape.batch {
        for out in points(shape.output) {
            for key in points(shape.filter) {
                let at: [isize; 3] = std::array::from_fn(|i| {
                    (out[i] * shape.stride[i] + key[i] * shape.dilation[i]) as isize - shape.pad_before[i] as isize
                });
                if (0..3).any(|i| at[i] < 0 || at[i] >= shape.input[i] as isize) {
                    continue;
                }
                let input = image * shape.input.iter().product::<usize>() + place(shape.input, at.map(|x| x as usize));
                let output = image * shape.output.iter().product::<usize>() + place(shape.output, out);
                for o in 0..shape.out_channels {
                    for c in 0..shape.filter_channels {
                        visit(
                            input * shape.channels + o / out_each * shape.filter_channels + c,
                            (place(shape.filter, key) * shape.filter_channels + c) * shape.out_channels + o,
                            output * shape.out_channels + o,
                        );
                    }
                }
            }
        }
    }
}

/// All three products by the definition: forward, by input, by filter.
fn plain(shape: &ConvShape, input: &[f64], filter: &[f64], grad: &[f64]) -> [Vec<f64>; 3] {
    let mut sums = [vec![0.0; shape.output_len()], vec![0.0; shape.input_len()], vec![0.0; shape.filter_len()]];
    products(shape, |i, f, o| {
        sums[0][o] += input[i] * filter[f];
        sums[1][i] += grad[o] * filter[f];
        sums[2][f] += grad[o] * input[i];
    });
    sums
}

fn check(shape: &ConvShape) {
    let pool = Pool::new(2);
    let (input, filter, grad) =
        (numbers(shape.input_len(), 1), numbers(shape.filter_len(), 2), numbers(shape.output_len(), 3));
    let expected = plain(shape, &input, &filter, &grad);
    let mut out = expected.clone().map(|x| vec![99.0; x.len()]);
    conv::forward(&pool, shape, &input, &filter, Epilogue::NONE, &mut out[0]);
    conv::grad_input(&pool, shape, &filter, &grad, &mut out[1]);
    conv::grad_filter(&pool, shape, &input, &grad, &mut out[2]);
    assert_eq!(out, expected, "{shape:?}");
    let single = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let mut out = expected.clone().map(|x| vec![99.0f32; x.len()]);
    let (input, filter, grad) = (single(&input), single(&filter), single(&grad));
    conv::forward(&pool, shape, &input, &filter, Epilogue::NONE, &mut out[0]);
    conv::grad_input(&pool, shape, &filter, &grad, &mut out[1]);
    conv::grad_filter(&pool, shape, &input, &grad, &mut out[2]);
    assert_eq!(out, expected.map(|x| single(&x)), "{shape:?}, f32");
}

fn check_depthwise(shape: &ConvShape) {
    let pool = Pool::new(2);
    let (input, filter, grad) =
        (numbers(shape.input_len(), 1), numbers(shape.filter_len(), 2), numbers(shape.output_len(), 3));
    let expected = plain(shape, &input, &filter, &grad);
    let mut out = expected.clone().map(|x| vec![99.0; x.len()]);
    conv::depthwise(&pool, shape, &input, &filter, &mut out[0]);
    conv::depthwise_grad_input(&pool, shape, &filter, &grad, &mut out[1]);
    conv::depthwise_grad_filter(&pool, shape, &input, &grad, &mut out[2]);
    assert_eq!(out, expected, "{shape:?}");
}

/// Height, width and how the window moves over them.
fn axes(
    size: [usize; 2],
    filter: [usize; 2],
    stride: usize,
    dilation: usize,
    pad: Option<(usize, usize)>,
) -> [Axis; 2] {
    std::array::from_fn(|i| match pad {
        None => Axis::same(size[i], filter[i], stride, dilation).unwrap(),
        Some(pad) => Axis { input: size[i], filter: filter[i], stride, dilation, pad },
    })
}

#[test]
fn images_of_many_forms() {
    for (channels, filters) in [(1, 1), (1, 32), (3, 2), (4, 17), (33, 1), (16, 20)] {
        for (size, filter) in [([1, 1], [1, 1]), ([5, 7], [3, 3]), ([8, 6], [5, 2]), ([13, 9], [1, 4])] {
            for (stride, dilation) in [(1, 1), (2, 1), (1, 2), (3, 1), (2, 3)] {
                for pad in [None, Some((0, 0)), Some((2, 1)), Some((5, 0))] {
                    let axes = axes(size, filter, stride, dilation, pad);
                    if let Some(shape) = ConvShape::image(2, axes, channels, channels, filters) {
                        check(&shape);
                    }
                }
            }
        }
    }
}

#[test]
fn groups_of_channels() {
    for (channels, each, filters) in [(4, 2, 6), (6, 1, 12), (8, 4, 34)] {
        for stride in [1, 2] {
            check(&ConvShape::image(3, axes([6, 5], [3, 2], stride, 1, None), channels, each, filters).unwrap());
        }
    }
}

#[test]
fn volumes() {
    for stride in [1, 2] {
        for dilation in [1, 2] {
            let axis = |size, filter| Axis::same(size, filter, stride, dilation).unwrap();
            check(&ConvShape::new(2, [axis(4, 2), axis(9, 3), axis(5, 3)], 3, 3, 5).unwrap());
            check(&ConvShape::new(1, [axis(3, 3), axis(3, 1), axis(70, 2)], 2, 1, 18).unwrap());
        }
    }
}

#[test]
fn empty_sides() {
    check(&ConvShape::image(0, axes([5, 5], [3, 3], 1, 1, None), 2, 2, 3).unwrap());
    check(&ConvShape::image(2, axes([0, 5], [3, 3], 1, 1, None), 2, 2, 3).unwrap());
    check(&ConvShape::image(2, axes([2, 2], [3, 3], 1, 1, Some((0, 0))), 2, 2, 3).unwrap());
    check(&ConvShape::image(2, axes([4, 4], [3, 3], 1, 1, None), 2, 2, 0).unwrap());
}

#[test]
fn large_images_fall_into_bands() {
    check(&ConvShape::image(1, axes([90, 70], [3, 3], 1, 1, None), 16, 16, 20).unwrap());
    check(&ConvShape::image(2, axes([60, 61], [5, 5], 2, 1, None), 24, 24, 40).unwrap());
    check(&ConvShape::image(3, axes([7, 7], [3, 3], 1, 1, None), 160, 160, 96).unwrap());
}

#[test]
fn one_channel_per_filter() {
    for multiplier in [1, 3] {
        for (stride, dilation) in [(1, 1), (2, 1), (1, 2), (3, 2)] {
            for pad in [None, Some((0, 0)), Some((3, 1))] {
                for size in [[7, 6], [1, 1], [0, 3], [12, 30]] {
                    let axes = axes(size, [3, 2], stride, dilation, pad);
                    if let Some(shape) = ConvShape::image(2, axes, 5, 1, 5 * multiplier) {
                        check_depthwise(&shape);
                    }
                }
            }
        }
    }
}

#[test]
fn epilogue_adds_the_bias_then_clips() {
    let shape = ConvShape::image(2, axes([9, 8], [3, 3], 1, 1, None), 70, 70, 19).unwrap();
    let (input, filter, bias) = (numbers(shape.input_len(), 1), numbers(shape.filter_len(), 2), numbers(19, 3));
    let expected = plain(&shape, &input, &filter, &vec![0.0; shape.output_len()])[0].clone();
    let expected: Vec<f64> = expected.iter().enumerate().map(|(i, x)| (x + bias[i % 19]).max(0.0)).collect();
    let mut out = vec![0.0; shape.output_len()];
    conv::forward(&Pool::new(2), &shape, &input, &filter, Epilogue { bias: Some(&bias), relu: true }, &mut out);
    assert_eq!(out, expected);
}

#[test]
fn half_floats() {
    let shape = ConvShape::image(1, axes([4, 4], [3, 3], 1, 1, None), 2, 2, 3).unwrap();
    let (input, filter) = (numbers(shape.input_len(), 1), numbers(shape.filter_len(), 2));
    let half = |values: &[f64]| values.iter().map(|&x| half::f16::from_f64(x)).collect::<Vec<_>>();
    let expected = plain(&shape, &input, &filter, &vec![0.0; shape.output_len()])[0].clone();
    let mut out = vec![half::f16::ZERO; shape.output_len()];
    conv::half_forward(&Pool::new(1), &shape, &half(&input), &half(&filter), &mut out);
    assert_eq!(out, half(&expected));
}

/// Sizes as TensorFlow's shape function answers them.
#[test]
fn sizes() {
    let same = |input, filter, stride, dilation| Axis::same(input, filter, stride, dilation).unwrap();
    assert_eq!((same(28, 5, 1, 1).pad, same(28, 5, 1, 1).output()), ((2, 2), Some(28)));
    assert_eq!((same(7, 3, 2, 1).pad, same(7, 3, 2, 1).output()), ((1, 1), Some(4)));
    assert_eq!((same(8, 3, 2, 1).pad, same(8, 3, 2, 1).output()), ((0, 1), Some(4)));
    assert_eq!((same(5, 1, 3, 1).pad, same(5, 1, 3, 1).output()), ((0, 0), Some(2)));
    assert_eq!(Axis::valid(7, 3, 2, 1).output(), Some(3));
    assert_eq!(Axis::valid(2, 3, 1, 1).output(), Some(0));
    assert_eq!(Axis::valid(1, 3, 1, 1).output(), None);
    assert_eq!(Axis::valid(7, 3, 0, 1).output(), None);
    assert_eq!(Axis::valid(7, usize::MAX, 1, 2).output(), None);
    assert!(ConvShape::image(usize::MAX, axes([5, 5], [3, 3], 1, 1, None), 2, 2, 3).is_none());
    assert!(ConvShape::image(1, axes([5, 5], [3, 3], 1, 1, None), 3, 2, 3).is_none());
}
