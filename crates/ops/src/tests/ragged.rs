//! Ragged tensors as variants; what TensorFlow answers was asked of TensorFlow.

use super::evaluate::{Evaluation, constant, floats, graph, refusal};
use crate::array::gather::gather_along;
use crate::array::nodes;
use crate::sparse::ragged_to_variant::*;
use crate::sparse::ragged_variant::Ragged;
use graph::{Graph, Output};
use tensor::{DType, Tensor, Variant, VariantObject};

const VALUES: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn encoded(g: &Graph, splits: &[&[i64]], batched: bool) -> Output {
    let splits: Vec<Output> = splits.iter().map(|splits| constant(g, Tensor::vector(splits))).collect();
    ragged_tensor_to_variant(&splits, &floats(g, &VALUES), batched)
}

fn row(encoded: &Output, index: i32) -> Output {
    gather_along(encoded, &nodes::int(encoded.scope(), index), 0, 0)
}

fn decoded(step: &Evaluation, encoded: &Output, inner: i64, depth: i64) -> (Vec<Vec<i64>>, Vec<f32>) {
    let mut parts = ragged_tensor_from_variant(encoded, inner, depth, DType::F32);
    let values = step.value(&parts.pop().unwrap()).unwrap().values::<f32>().unwrap().to_vec();
    let splits = parts.iter().map(|splits| step.value(splits).unwrap().values::<i64>().unwrap().to_vec());
    (splits.collect(), values)
}

#[test]
fn rows_are_taken_apart() {
    let (g, step) = (graph(), Evaluation::new());
    let one = encoded(&g, &[&[0, 2, 2, 6]], true);
    assert_eq!(decoded(&step, &row(&one, 0), 0, 0), (vec![], vec![1.0, 2.0]));
    let two = encoded(&g, &[&[0, 2, 2, 3], &[0, 1, 4, 6]], true);
    assert_eq!(decoded(&step, &row(&two, 0), 1, 1), (vec![vec![0, 1, 4]], VALUES[..4].to_vec()));
    assert_eq!(decoded(&step, &row(&two, 1), 1, 1), (vec![vec![0]], vec![]));
}

#[test]
fn rows_are_put_together() {
    let (g, step) = (graph(), Evaluation::new());
    let splits: [&[i64]; 2] = [&[0, 2, 2, 3], &[0, 1, 4, 6]];
    let whole = (splits.map(<[i64]>::to_vec).to_vec(), VALUES.to_vec());
    assert_eq!(decoded(&step, &encoded(&g, &splits, false), 2, 2), whole);
    assert_eq!(decoded(&step, &encoded(&g, &splits, true), 1, 2), whole);
    assert_eq!(decoded(&step, &encoded(&g, &splits, true), -1, 2), whole);
    let shape = constant(&g, Tensor::vector(&[2_i32, 3]));
    let square = nodes::reshape(&encoded(&g, &[&[0, 2, 2, 4, 4, 6, 6]], true), &shape);
    let (found, values) = decoded(&step, &square, 0, 2);
    assert_eq!((found, values), (vec![vec![0, 3, 6], vec![0, 2, 2, 4, 4, 6, 6]], VALUES.to_vec()));
}

#[test]
fn what_is_no_ragged_tensor_is_refused() {
    let (g, step) = (graph(), Evaluation::new());
    let refused = |splits: &[i64]| refusal(step.value(&encoded(&g, &[splits], true)));
    assert_eq!(
        refused(&[0, 3, 2, 6]),
        "Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[2]=2 is smaller than \
         row_splits[1]=3"
    );
    assert_eq!(refused(&[1, 3, 6]), "Invalid ragged splits: first element of ragged splits  must be 0 but is 1");
    assert_eq!(
        refused(&[0, 3, 5]),
        "Invalid ragged splits: last element of ragged splits must be the number of ragged values(6) but is 5"
    );
    let good = encoded(&g, &[&[0, 3, 6]], true);
    let refused = |inner, depth, dtype| refusal(step.value(&ragged_tensor_from_variant(&good, inner, depth, dtype)[0]));
    assert_eq!(
        refused(1, 2, DType::F32),
        "Encoded input RaggedTensorVariant has ragged_rank=0.  Expected ragged_rank=1."
    );
    assert_eq!(refused(0, 1, DType::I32), "Expected values Tensor dtype: int32, found: float");
}

#[test]
fn a_row_without_a_gradient_has_zeros() {
    let (g, step) = (graph(), Evaluation::new());
    let splits = constant(&g, Tensor::vector(&[0_i64, 2, 6]));
    let row = Ragged { splits: Vec::new(), values: Tensor::vector(&VALUES[..4]) };
    let variants = vec![Variant::default(), Variant::Object(std::sync::Arc::new(row))];
    let encoded = constant(&g, Tensor::from_variants([2], variants).unwrap());
    let builder = g.root().op("RaggedTensorToVariantGradient").input(&encoded).input(&splits);
    let shape = constant(&g, Tensor::vector(&[6_i32]));
    let gradient = step.value(&builder.input(&shape).attr("Tvalues", DType::F32).output()).unwrap();
    assert_eq!(gradient.values::<f32>().unwrap(), [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_ragged_tensor_travels_adds_and_becomes_zeros() {
    let splits = vec![Tensor::vector(&[0_i64, 2, 6])];
    let ragged = Ragged { splits, values: Tensor::vector(&VALUES) };
    let data = Variant::Data(ragged.encode().unwrap().into());
    let zeros = ragged.zeros_like().unwrap();
    let add = |a: &Tensor, b: &Tensor| {
        let pairs = a.values::<f32>()?.iter().zip(b.values::<f32>()?);
        Ok(Tensor::vector(&pairs.map(|(a, b)| a + b).collect::<Vec<f32>>()))
    };
    let sum = Ragged::from_variant(&ragged.add(&data, &add).unwrap()).unwrap();
    assert_eq!(sum.values.values::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    assert_eq!(Ragged::from_variant(&zeros).unwrap().values.values::<f32>().unwrap(), [0.0; 6]);
}
