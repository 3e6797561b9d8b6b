//! Fourier transforms that TensorFlow cannot run on CPUs. The expected values are NumPy's.

use super::evaluate::{Evaluation, constant, graph, ints, refusal};
use graph::{Graph, Output};
use tensor::{Complex32, DType, Tensor};

/// The numbers 1 to 6, of shape [2, 3].
fn six(g: &Graph) -> Output {
    let values: Vec<Complex32> = (1..7).map(|re| Complex32::new(re as f32, 0.0)).collect();
    constant(g, Tensor::from_slice([2, 3], &values).unwrap())
}

fn close(found: &Tensor, shape: &[usize], expected: &[(f32, f32)]) {
    assert_eq!(found.shape().dims(), shape);
    for (found, &(re, im)) in found.values::<Complex32>().unwrap().iter().zip(expected) {
        assert!((found - Complex32::new(re, im)).norm() < 1e-5, "{found} and {re} {im}");
    }
}

fn nd(g: &Graph, op: &str, x: &Output, lengths: &[i32], axes: &[i32]) -> Output {
    g.root().op(op).input(x).input(&ints(g, lengths)).input(&ints(g, axes)).output()
}

#[test]
fn transforms_along_given_axes_crop_and_pad() {
    let (g, run) = (graph(), Evaluation::new());
    let x = six(&g);
    let padded = run.value(&nd(&g, "FFTND", &x, &[3, 5], &[0, 1])).unwrap();
    assert_eq!(padded.shape().dims(), [3, 5]);
    let values = padded.values::<Complex32>().unwrap();
    close(&Tensor::vector(&values[4..7]), &[3], &[(-0.118034, 11.947463), (-1.5, -12.990381), (-8.326926, -0.1228806)]);
    let cropped = run.value(&nd(&g, "FFTND", &x, &[2, 2], &[-2, -1])).unwrap();
    close(&cropped, &[2, 2], &[(12., 0.), (-2., 0.), (-6., 0.), (0., 0.)]);
    let back = run.value(&nd(&g, "IFFTND", &x, &[2, 4], &[0, 1])).unwrap();
    let expected = [(2.625, 0.), (-0.5, 0.875), (0.875, 0.), (-0.5, -0.875)];
    close(&back.slice_elements(0, [4]).unwrap(), &[4], &expected);
    let rows = run.value(&nd(&g, "FFTND", &x, &[4], &[1])).unwrap();
    close(&rows.slice_elements(4, [4]).unwrap(), &[4], &[(15., 0.), (-2., -5.), (5., 0.), (-2., 5.)]);
}

#[test]
fn transforms_of_real_numbers_along_given_axes() {
    let (g, run) = (graph(), Evaluation::new());
    let real = constant(&g, Tensor::from_slice([2, 3], &[1f32, 2., 3., 4., 5., 6.]).unwrap());
    let found = run.value(&nd(&g, "RFFTND", &real, &[2, 2], &[0, 1])).unwrap();
    close(&found, &[2, 2], &[(12., 0.), (-2., 0.), (-6., 0.), (0., 0.)]);
    let halves = [(1., 4.), (2., 5.), (3., 6.), (4., 1.), (5., 2.), (6., 3.)].map(|(re, im)| Complex32::new(re, im));
    let halves = constant(&g, Tensor::from_slice([2, 3], &halves).unwrap());
    let found = run.value(&nd(&g, "IRFFTND", &halves, &[2, 4], &[0, 1])).unwrap();
    let expected = [3.5, -2.25, 0., 1.25, -1.5, -0.75, 0., 0.75];
    assert_eq!(found.shape().dims(), [2, 4]);
    assert!(found.values::<f32>().unwrap().iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5));
}

#[test]
fn axes_and_lengths_are_checked() {
    let g = graph();
    let x = six(&g);
    let refused = |lengths: &[i32], axes: &[i32]| refusal(Evaluation::new().value(&nd(&g, "FFTND", &x, lengths, axes)));
    assert_eq!(refused(&[2, 3], &[1, 0]), "axes must be successive and ascending.");
    for axes in [&[0][..], &[5], &[-5], &[]] {
        assert_eq!(refused(&vec![2; axes.len()], axes), "The last axis to perform transform on must be -1.");
    }
    assert_eq!(refused(&[2, 3], &[1]), "fft_length must have shape [1], but got: 2.");
    assert_eq!(refused(&[-3], &[1]), "fft_length[0] must >= 0, but got: -3");
    assert_eq!(refused(&[1, 1, 1], &[-3, -2, -1]), "Input must have rank of at least 3 but got: [2,3]");
    let empty = Evaluation::new().value(&nd(&g, "FFTND", &x, &[0], &[1])).unwrap();
    assert_eq!(empty.shape().dims(), [2, 0]);
}

/// TensorFlow ends its process here.
#[test]
fn transforms_of_length_zero_are_empty() {
    let (g, run) = (graph(), Evaluation::new());
    let real = constant(&g, Tensor::from_slice([2, 3], &[1f32; 6]).unwrap());
    let none = ints(&g, &[0]);
    let found = run.value(&g.root().op("RFFT").input(&real).input(&none).output()).unwrap();
    assert_eq!((found.shape().dims(), found.dtype()), (&[2, 0][..], DType::C64));
    let found = run.value(&g.root().op("IRFFT").input(&six(&g)).input(&none).output()).unwrap();
    assert_eq!((found.shape().dims(), found.dtype()), (&[2, 0][..], DType::F32));
}

#[test]
fn the_old_names_transform_too() {
    let (g, run) = (graph(), Evaluation::new());
    let shapes: [&[usize]; 3] = [&[1, 4], &[2, 2], &[1, 2, 2]];
    let expected = [[(10., 0.), (-2., 2.), (-2., 0.), (-2., -2.)], [(10., 0.), (-2., 0.), (-4., 0.), (0., 0.)]];
    for (rank, shape) in shapes.into_iter().enumerate() {
        let x = [1f32, 2., 3., 4.].map(|re| Complex32::new(re, 0.0));
        let x = constant(&g, Tensor::from_slice(shape, &x).unwrap());
        let suffix = ["", "2D", "3D"][rank];
        let there = g.root().op(&format!("BatchFFT{suffix}")).input(&x).output();
        close(&run.value(&there).unwrap(), shape, &expected[rank.min(1)]);
        let back = g.root().op(&format!("BatchIFFT{suffix}")).input(&there).output();
        close(&run.value(&back).unwrap(), shape, &[(1., 0.), (2., 0.), (3., 0.), (4., 0.)]);
    }
}
