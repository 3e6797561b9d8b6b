//! Pooling against loops over every index.

use crate::Pool;
use crate::conv::Axis;
use crate::pooling::{self, PoolShape};

fn numbers(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7 + seed * 3 + i / 5) % 11) as f32 - 5.0).collect()
}

/// For every number of the result: the places of the input it sees, in order.
fn windows(shape: &PoolShape) -> Vec<Vec<usize>> {
    let [depth, height, width] = shape.axes.map(|axis| axis.input as isize);
    let mut all = Vec::new();
    for image in 0..shape.batch as isize {
        for out in 0..shape.output.iter().product::<usize>() {
            let at = [
                out / shape.output[2] / shape.output[1],
                out / shape.output[2] % shape.output[1],
                out % shape.output[2],
            ];
            let from: [isize; 3] =
                std::array::from_fn(|i| (at[i] * shape.axes[i].stride) as isize - shape.axes[i].pad.0 as isize);
            let to: [isize; 3] = std::array::from_fn(|i| from[i] + shape.axes[i].filter as isize);
            for c in 0..shape.channels {
                let mut seen = Vec::new();
                for z in from[0].max(0)..to[0].min(depth) {
                    for y in from[1].max(0)..to[1].min(height) {
                        for x in from[2].max(0)..to[2].min(width) {
                            let point = ((image * depth + z) * height + y) * width + x;
                            seen.push(point as usize * shape.channels + c);
                        }
                    }
                }
                all.push(seen);
            }
        }
    }
    all
}

fn first_largest(seen: &[usize], input: &[f32]) -> Option<usize> {
    seen.iter().copied().reduce(|best, place| if input[best] < input[place] { place } else { best })
}

fn check_max(shape: &PoolShape) {
    let pool = Pool::new(2);
    let (input, grad) = (numbers(shape.input_len(), 1), numbers(shape.output_len(), 2));
    let places: Vec<Option<usize>> = windows(shape).iter().map(|seen| first_largest(seen, &input)).collect();
    let largest: Vec<f32> = places.iter().map(|place| place.map_or(f32::MIN, |place| input[place])).collect();
    let mut out = vec![9.0; shape.output_len()];
    pooling::max(&pool, shape, &input, &mut out);
    assert_eq!(out, largest, "{shape:?}");

    let mut argmax = vec![9; shape.output_len()];
    for include_batch in [true, false] {
        let image = if include_batch { usize::MAX } else { (shape.input_len() / shape.batch.max(1)).max(1) };
        pooling::max_argmax(&pool, shape, &input, include_batch, &mut out, &mut argmax);
        let expected: Vec<i64> = places.iter().map(|place| place.map_or(-1, |place| (place % image) as i64)).collect();
        assert_eq!((&out, &argmax), (&largest, &expected), "{shape:?}");
        let mut back = vec![9.0; shape.input_len()];
        pooling::max_argmax_grad(&pool, shape, &grad, &argmax, include_batch, &mut back);
        assert_eq!(back, routed(shape, &places, &grad), "{shape:?}");
        let mut forth = vec![9.0; shape.output_len()];
        pooling::max_argmax_gather(shape, &input, &argmax, include_batch, &mut forth);
        let gathered: Vec<f32> = places.iter().map(|place| place.map_or(0.0, |place| input[place])).collect();
        assert_eq!(forth, gathered);
    }

    let mut back = vec![9.0; shape.input_len()];
    pooling::max_grad(&pool, shape, &input, &grad, &mut back);
    assert_eq!(back, routed(shape, &places, &grad), "{shape:?}");
    let second = numbers(shape.input_len(), 3);
    let expected: Vec<f32> = places.iter().map(|place| place.map_or(0.0, |place| second[place])).collect();
    pooling::max_grad_grad(&pool, shape, &input, &largest, &second, &mut out);
    assert_eq!(out, expected, "{shape:?}");
}

fn routed(shape: &PoolShape, places: &[Option<usize>], grad: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; shape.input_len()];
    for (place, grad) in places.iter().zip(grad) {
        if let Some(place) = place {
            out[*place] += grad;
        }
    }
    out
}

fn check_average(shape: &PoolShape) {
    let pool = Pool::new(2);
    let (input, grad) = (numbers(shape.input_len(), 1), numbers(shape.output_len(), 2));
    let (mut means, mut back) = (vec![0.0f32; shape.output_len()], vec![0.0f64; shape.input_len()]);
    for (i, seen) in windows(shape).iter().enumerate() {
        means[i] = seen.iter().map(|&place| input[place]).sum::<f32>() / seen.len() as f32;
        seen.iter().for_each(|&place| back[place] += f64::from(grad[i]) / seen.len() as f64);
    }
    let mut out = vec![9.0; shape.output_len()];
    pooling::average(&pool, shape, &input, &mut out);
    let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
    assert!(out.iter().zip(&means).all(same), "{out:?} is not {means:?} in {shape:?}");
    let mut out = vec![9.0; shape.input_len()];
    pooling::average_grad(&pool, shape, &grad, &mut out);
    for (x, expected) in out.iter().zip(back) {
        assert!((f64::from(*x) - expected).abs() < 1e-5, "{x} is not {expected} in {shape:?}");
    }
}

#[test]
fn images_of_many_forms() {
    for size in [[0, 4], [1, 1], [5, 7], [28, 27]] {
        for (filter, stride) in [(1, 1), (2, 2), (3, 2), (2, 3), (5, 1)] {
            for channels in [1, 3, 20] {
                let same = size.map(|size| Axis::same(size, filter, stride, 1).unwrap());
                let valid = size.map(|size| Axis::valid(size, filter, stride, 1));
                let explicit =
                    size.map(|input| Axis { input, filter, stride, dilation: 1, pad: (filter - 1, filter / 2) });
                for shape in [same, valid, explicit].into_iter().filter_map(|axes| PoolShape::image(3, axes, channels))
                {
                    check_max(&shape);
                    check_average(&shape);
                }
            }
        }
    }
}

#[test]
fn volumes() {
    for (filter, stride) in [(2, 1), (3, 2)] {
        let axis = |size| Axis::same(size, filter, stride, 1).unwrap();
        let shape = PoolShape::new(2, [axis(3), axis(4), axis(6)], 5).unwrap();
        check_max(&shape);
        check_average(&shape);
    }
}

/// As TensorFlow answers them.
#[test]
fn nan_is_passed_over_unless_it_comes_first() {
    let pool = Pool::new(1);
    let shape = PoolShape::image(1, [Axis::valid(2, 2, 2, 1); 2], 1).unwrap();
    for (input, largest, argmax) in [
        ([f32::NAN, 1.0, 2.0, 3.0], 3.0, 0),
        ([0.0, f32::NAN, 2.0, 3.0], 3.0, 3),
        ([0.0, 1.0, 2.0, f32::NAN], 2.0, 2),
        ([f32::NEG_INFINITY; 4], f32::MIN, 0),
    ] {
        let (mut out, mut place) = ([0.0], [9]);
        pooling::max(&pool, &shape, &input, &mut out);
        assert_eq!(out, [largest]);
        pooling::max_argmax(&pool, &shape, &input, true, &mut out, &mut place);
        assert_eq!(place, [argmax]);
        assert_eq!(out[0].to_bits(), input[argmax as usize].to_bits());
    }
}

#[test]
fn other_numbers() {
    let pool = Pool::new(2);
    let shape = PoolShape::image(1, [Axis::valid(2, 2, 2, 1); 2], 1).unwrap();
    let mut out = [0u8];
    pooling::max(&pool, &shape, &[3, 200, 7, 0], &mut out);
    assert_eq!(out, [200]);
    let mut out = [half::f16::ZERO];
    pooling::average(&pool, &shape, &[1.0, 2.0, 3.0, 4.0].map(half::f16::from_f32), &mut out);
    assert_eq!(out[0].to_f32(), 2.5);
    let mut out = [half::bf16::ZERO; 4];
    pooling::average_grad(&pool, &shape, &[half::bf16::ONE], &mut out);
    assert_eq!(out.map(half::bf16::to_f32), [0.25; 4]);
}
