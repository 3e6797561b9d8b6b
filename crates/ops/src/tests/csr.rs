//! Sparse matrices by rows: the ops that TensorFlow has for GPUs only, and gradients. The expected values follow from
//! products and sums of the dense matrices.

use super::evaluate::{Evaluation, constant, graph, refusal};
use crate::data_structures::arithmetic::{add_variant, zeros_like};
use crate::sparse::csr::Csr;
use crate::sparse::csr::add::{sparse_matrix_add, sparse_matrix_mul};
use crate::sparse::csr::convert::{csr_sparse_matrix_to_dense, sparse_tensor_to_csr_sparse_matrix};
use crate::sparse::csr::softmax::sparse_matrix_softmax;
use graph::{Graph, Output};
use op::{Ctx, Grad, Gradient, StepEnv};
use tensor::{DType, Tensor, Variant};

fn matrix(g: &Graph, rows: usize, columns: usize, dense: &[f32]) -> Output {
    let places = dense.iter().enumerate().filter(|(_, value)| **value != 0.0);
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for (place, &value) in places {
        indices.extend([(place / columns) as i64, (place % columns) as i64]);
        values.push(value);
    }
    let indices = constant(g, Tensor::from_slice([values.len(), 2], &indices).unwrap());
    let shape = constant(g, Tensor::vector(&[rows as i64, columns as i64]));
    sparse_tensor_to_csr_sparse_matrix(&indices, &constant(g, Tensor::vector(&values)), &shape)
}

fn dense(step: &Evaluation, matrix: &Output) -> Vec<f32> {
    step.value(&csr_sparse_matrix_to_dense(matrix, DType::F32)).unwrap().values::<f32>().unwrap().to_vec()
}

fn number(g: &Graph, value: f32) -> Output {
    constant(g, Tensor::scalar(value))
}

#[test]
fn sums_have_the_places_of_both_matrices() {
    let g = graph();
    let (a, b) = (matrix(&g, 2, 2, &[1., 2., 0., 3.]), matrix(&g, 2, 2, &[0., 5., 7., 0.]));
    let sum = sparse_matrix_add(&a, &b, &number(&g, 2.0), &number(&g, -1.0));
    assert_eq!(dense(&Evaluation::new(), &sum), [2., -1., -7., 6.]);
    let wide = matrix(&g, 1, 4, &[1., 0., 0., 0.]);
    let wrong = sparse_matrix_add(&a, &wide, &number(&g, 1.0), &number(&g, 1.0));
    let text = "Incompatible shapes of a and b, a.shape == [2,2], b.shape == [1,4]";
    assert_eq!(refusal(Evaluation::new().value(&wrong)), text);
}

#[test]
fn products_with_numbers_keep_the_places() {
    let g = graph();
    let a = matrix(&g, 2, 2, &[1., 2., 0., 3.]);
    assert_eq!(dense(&Evaluation::new(), &sparse_matrix_mul(&a, &number(&g, 3.0))), [3., 6., 0., 9.]);
    let vector = sparse_matrix_mul(&a, &constant(&g, Tensor::vector(&[1f32])));
    assert!(refusal(Evaluation::new().value(&vector)).starts_with("Multiplying by a 2D+ dense tensor"));
}

#[test]
fn the_softmax_of_a_row_is_that_of_its_values() {
    let g = graph();
    let logits = matrix(&g, 2, 3, &[1., 0., 1., 0., 4., 0.]);
    let softmax = sparse_matrix_softmax(&logits, DType::F32);
    assert_eq!(dense(&Evaluation::new(), &softmax), [0.5, 0., 0.5, 0., 1., 0.]);
    // s (g - sum s g): of the first row with gradients 2 and 4, 0.5 (2 - 3) and 0.5 (4 - 3)
    let gradient = matrix(&g, 2, 3, &[2., 9., 4., 0., 5., 0.]);
    let back =
        g.root().op("SparseMatrixSoftmaxGrad").input(&softmax).input(&gradient).attr("type", DType::F32).output();
    assert_eq!(dense(&Evaluation::new(), &back), [-0.5, 0., 0.5, 0., 0., 0.]);
}

#[test]
fn zeros_have_a_shape_only() {
    let g = graph();
    let zeros = |dims: &[i64]| {
        let shape = constant(&g, Tensor::vector(dims));
        g.root().op("SparseMatrixZeros").input(&shape).attr("type", DType::F32).output()
    };
    assert_eq!(dense(&Evaluation::new(), &zeros(&[2, 1])), [0., 0.]);
    let wrong = "sparse tensor must have rank == 2 or 3; but dense shape has 1 entries";
    assert_eq!(refusal(Evaluation::new().value(&zeros(&[2]))), wrong);
    assert!(refusal(Evaluation::new().value(&zeros(&[1 << 40, 1 << 40]))).contains("too large"));
    assert!(refusal(Evaluation::new().value(&zeros(&[-1, 2]))).contains("non-negative"));
}

#[test]
fn a_matrix_travels_and_broken_data_are_refused() {
    let g = graph();
    let sent = Evaluation::new().value(&matrix(&g, 2, 2, &[1., 2., 0., 3.])).unwrap();
    let data = sent.variants().unwrap()[0].encode().unwrap();
    let bytes = tensor::wire::tensor_to_bytes(&sent).unwrap();
    let received = tensor::wire::tensor_from_bytes(&bytes).unwrap();
    let csr = Csr::take(&received, 0).unwrap();
    assert_eq!(csr.tensors()[2].values::<f32>().unwrap(), [1., 2., 3.]);
    let mut broken = data.clone();
    broken.tensors[3] = Tensor::vector(&[0i32, 1, 2]);
    assert!(Csr::decode(&broken).is_err(), "a column outside of the matrix");
    let mut broken = data.clone();
    broken.tensors[2] = Tensor::vector(&[0i32, 4, 3]);
    assert!(Csr::decode(&broken).is_err(), "pointers that decrease");
    let mut broken = data;
    broken.metadata = vec![1].into();
    assert!(Csr::decode(&broken).is_err(), "no element type");
    let env = StepEnv::alone(std::sync::Arc::new(math::Pool::new(1)));
    let ctx = Ctx { env: &env, frame: 0, iteration: 0 };
    let one = |tensor: &Tensor| tensor.variants().unwrap()[0].clone();
    let double = add_variant(&ctx, &one(&sent), &one(&received)).unwrap();
    let values = |variant: &Variant| Csr::from_variant(variant).unwrap().unwrap().tensors()[2].clone();
    assert_eq!(values(&double).values::<f32>().unwrap(), [2., 4., 6.]);
    assert_eq!(values(&one(&zeros_like(&received).unwrap())).elements(), 0);
}

/// The gradients of a node by its inputs.
fn gradients(output: &Output, dy: &Output) -> Vec<Option<Output>> {
    let node = output.node();
    let Some(Grad::Rule(rule)) = crate::registry().op(&node.op()).map(|op| op.grad) else { panic!("no rule") };
    let dense = |gradient| match gradient {
        Some(Gradient::Dense(output)) => Some(output),
        _ => None,
    };
    rule(node, dy).unwrap().into_iter().map(dense).collect()
}

#[test]
fn gradients_of_a_sum_have_the_places_of_their_matrices() {
    let g = graph();
    let (a, b) = (matrix(&g, 2, 2, &[1., 2., 0., 3.]), matrix(&g, 2, 2, &[0., 5., 7., 0.]));
    let sum = sparse_matrix_add(&a, &b, &number(&g, 2.0), &number(&g, -1.0));
    let all = gradients(&sum, &matrix(&g, 2, 2, &[1., 2., 3., 4.]));
    let step = Evaluation::new();
    assert_eq!(dense(&step, all[0].as_ref().unwrap()), [2., 4., 0., 8.]);
    assert_eq!(dense(&step, all[1].as_ref().unwrap()), [0., -2., -3., 0.]);
    // A gradient that has nothing at the last places
    let all = gradients(&sum, &matrix(&g, 2, 2, &[1., 0., 0., 0.]));
    assert_eq!(dense(&step, all[0].as_ref().unwrap()), [2., 0., 0., 0.]);
    assert_eq!(dense(&step, all[1].as_ref().unwrap()), [0.; 4]);
}

#[test]
fn gradients_of_a_product_with_a_dense_matrix() {
    let g = graph();
    let a = matrix(&g, 2, 3, &[1., 2., 0., 0., 0., 3.]);
    let b = constant(&g, Tensor::from_slice([3, 2], &[1f32, 2., 3., 4., 5., 6.]).unwrap());
    let dy = constant(&g, Tensor::from_slice([2, 2], &[1f32, 2., 3., 4.]).unwrap());
    let all = gradients(&g.root().op("SparseMatrixMatMul").input(&a).input(&b).output(), &dy);
    let step = Evaluation::new();
    // dy b' is [5 11 17; 11 25 39], and a' dy is [1 2; 2 4; 9 12]
    assert_eq!(dense(&step, all[0].as_ref().unwrap()), [5., 11., 0., 0., 0., 39.]);
    assert_eq!(step.value(all[1].as_ref().unwrap()).unwrap().values::<f32>().unwrap(), [1., 2., 2., 4., 9., 12.]);
    // Everything transposed: (b'' a')' has the gradients of the above for dy'
    let turned = constant(&g, Tensor::from_slice([2, 3], &[1f32, 3., 5., 2., 4., 6.]).unwrap());
    let node = g.root().op("SparseMatrixMatMul").input(&a).input(&turned);
    let node = node.attr("transpose_b", true).attr("transpose_output", true);
    let dy = constant(&g, Tensor::from_slice([2, 2], &[1f32, 3., 2., 4.]).unwrap());
    let all = gradients(&node.output(), &dy);
    assert_eq!(dense(&step, all[0].as_ref().unwrap()), [5., 11., 0., 0., 0., 39.]);
    assert_eq!(step.value(all[1].as_ref().unwrap()).unwrap().values::<f32>().unwrap(), [1., 2., 9., 2., 4., 12.]);
}

#[test]
fn gradients_of_a_product_of_sparse_matrices() {
    let g = graph();
    let (a, b) = (matrix(&g, 2, 3, &[1., 2., 0., 0., 0., 3.]), matrix(&g, 3, 2, &[1., 0., 0., 4., 5., 6.]));
    let product = |a: &Output, turned: bool| {
        let node = g.root().op("SparseMatrixSparseMatMul").input(a).input(&b).attr("type", DType::F32);
        node.attr("adjoint_a", turned).output()
    };
    let dy = matrix(&g, 2, 2, &[1., 2., 3., 4.]);
    let step = Evaluation::new();
    let all = gradients(&product(&a, false), &dy);
    // dy b' is [1 8 17; 3 16 39], and a' dy is [1 2; 2 4; 9 12]
    assert_eq!(dense(&step, all[0].as_ref().unwrap()), [1., 8., 0., 0., 0., 39.]);
    assert_eq!(dense(&step, all[1].as_ref().unwrap()), [1., 0., 0., 4., 9., 12.]);
    let turned = matrix(&g, 3, 2, &[1., 0., 2., 0., 0., 3.]);
    let all = gradients(&product(&turned, true), &dy);
    assert_eq!(dense(&step, all[0].as_ref().unwrap()), [1., 0., 8., 0., 0., 39.]);
    assert_eq!(dense(&step, all[1].as_ref().unwrap()), [1., 0., 0., 4., 9., 12.]);
}

/// The order of a path needs no fill at all.
#[test]
fn the_order_of_elimination_avoids_fill() {
    let g = graph();
    let n = 12;
    let mut path = vec![0f32; n * n];
    for row in 0..n {
        path[row * n + row] = 4.0;
        if row > 0 {
            // A path that visits the rows in the order 0, 5, 10, 3, 8, 1, 6, 11, 4, 9, 2, 7
            let (from, to) = ((row - 1) * 5 % n, row * 5 % n);
            path[from * n + to] = 1.0;
            path[to * n + from] = 1.0;
        }
    }
    let a = matrix(&g, n, n, &path);
    let order = g.root().op("SparseMatrixOrderingAMD").input(&a).output();
    let l = g.root().op("SparseMatrixSparseCholesky").input(&a).input(&order).attr("type", DType::F32).output();
    let step = Evaluation::new();
    let mut sorted = step.value(&order).unwrap().values::<i32>().unwrap().to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..n as i32).collect::<Vec<_>>());
    let count = g.root().op("SparseMatrixNNZ").input(&l).output();
    assert_eq!(step.value(&count).unwrap().to_scalar::<i32>().unwrap(), 2 * n as i32 - 1);
    let wrong = constant(&g, Tensor::vector(&vec![0i32; n]));
    let refused = g.root().op("SparseMatrixSparseCholesky").input(&a).input(&wrong).attr("type", DType::F32).output();
    assert!(refusal(step.value(&refused)).contains("not a permutation"));
}
