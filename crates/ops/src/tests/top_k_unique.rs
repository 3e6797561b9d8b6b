//! Ops that TensorFlow has for TPUs only. The expected values follow from their definitions.

use super::evaluate::{Evaluation, constant, graph, refusal};
use graph::{Graph, Output};
use tensor::Tensor;

const LOW: f32 = f32::NEG_INFINITY;

fn matrix(g: &Graph, shape: [usize; 2], values: &[f32]) -> Output {
    constant(g, Tensor::from_slice(shape, values).unwrap())
}

fn top(op: &str, input: &Output, k: i64) -> (Vec<f32>, Vec<i32>) {
    let node = input.scope().op(op).input(input).attr("k", k).node();
    let run = Evaluation::new();
    let (values, places) = (run.value(&node.output(0)).unwrap(), run.value(&node.output(1)).unwrap());
    (values.values().unwrap().to_vec(), places.values().unwrap().to_vec())
}

#[test]
fn equal_numbers_count_once_at_their_last_place() {
    let g = graph();
    let x = matrix(&g, [2, 5], &[1., 3., 3., f32::NAN, 2., 5., 5., 5., 0., -0.]);
    assert_eq!(top("TopKUnique", &x, 2), (vec![3., 2., 5., 0.], vec![2, 4, 7 % 5, 4]));
    assert_eq!(top("TopKUnique", &x, 4), (vec![3., 2., 1., LOW, 5., 0., LOW, LOW], vec![2, 4, 0, -1, 2, 4, -1, -1]));
    let infinite = matrix(&g, [1, 3], &[LOW, 1., LOW]);
    assert_eq!(top("TopKUnique", &infinite, 4), (vec![1., LOW, LOW, LOW], vec![1, 2, 2, 2]));
    let tiny = matrix(&g, [1, 2], &[1e-45, -1.]);
    assert_eq!(top("TopKUnique", &tiny, 1), (vec![0.], vec![0]));
}

#[test]
fn numbers_are_made_unique_in_their_lowest_bits() {
    let g = graph();
    let x = matrix(&g, [2, 3], &[1., 1., 1., 0., -0., -2.]);
    let unique = Evaluation::new().value(&g.root().op("MakeUnique").input(&x).output()).unwrap();
    let bits: Vec<u32> = unique.values::<f32>().unwrap().iter().map(|value| value.to_bits()).collect();
    assert_eq!(bits, [0x3f80_0000, 0x3f80_0001, 0x3f80_0002, 0x0080_0000, 0x8080_0001, 0xc000_0002]);
    let (values, places) = top("TopKWithUnique", &x, 2);
    assert_eq!(places, [2, 1, 0, 1]);
    assert_eq!(values[0].to_bits(), 0x3f80_0002);
}

#[test]
fn statistics_of_order_are_of_each_row() {
    let g = graph();
    let x = matrix(&g, [2, 3], &[1., f32::NAN, -0., f32::INFINITY, LOW, 7.]);
    let statistic = |k: i64| g.root().op("KthOrderStatistic").input(&x).attr("k", k).output();
    let values = |k| Evaluation::new().value(&statistic(k)).unwrap().values::<f32>().unwrap().to_vec();
    assert!(values(1)[0].is_nan() && values(1)[1] == f32::INFINITY);
    assert_eq!(values(2), [1., 7.]);
    assert_eq!(values(3), [0., LOW]);
    assert_eq!(refusal(Evaluation::new().value(&statistic(4))), "input must have last dimension >= k = 4 but is 3");
    for k in [0, -1] {
        assert!(!refusal(Evaluation::new().value(&statistic(k))).is_empty());
    }
}

#[test]
fn inputs_that_are_no_matrices_are_refused() {
    for op in ["TopKUnique", "TopKWithUnique"] {
        let g = graph();
        let x = constant(&g, Tensor::vector(&[1f32, 2.]));
        g.root().op(op).input(&x).attr("k", 1).node();
        assert!(g.check().is_err(), "{op}");
    }
}

#[test]
fn rows_without_numbers_are_filled_up() {
    let g = graph();
    let empty = matrix(&g, [2, 0], &[]);
    assert_eq!(top("TopKUnique", &empty, 1), (vec![LOW, LOW], vec![-1, -1]));
}
