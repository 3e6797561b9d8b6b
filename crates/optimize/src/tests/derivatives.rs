//! Gradients against differences: the slope of a function is what a small step says it is.

use super::graph;
use crate::clip::dense;
use crate::{GradientTarget, gradient, gradients, gradients_with};
use graph::Output;
use layers::{ScopeOps, TensorOps, Variable};
use session::{Session, feeds};
use tensor::{DType, Tensor};

type Function = fn(&Output) -> Output;

/// `x` has shape [2, 3] and positive elements between 0.2 and 0.9.
const FUNCTIONS: &[(&str, Function)] = &[
    ("x x", |x| x * x),
    ("x / (1 + x)", |x| x / &(x + 1.0)),
    ("sub, neg", |x| -(3.0 - x) - x),
    ("exp", |x| x.exp()),
    ("log", |x| x.log()),
    ("log1p", |x| x.log1p()),
    ("sqrt", |x| x.sqrt()),
    ("rsqrt", |x| x.rsqrt()),
    ("square", |x| x.square()),
    ("sin", |x| x.sin()),
    ("cos", |x| x.cos()),
    ("tanh", |x| x.tanh()),
    ("sigmoid", |x| x.sigmoid()),
    ("relu", |x| (x - 0.5).relu()),
    ("abs", |x| (x - 0.5).abs()),
    ("softmax", |x| x.softmax() * x),
    ("log softmax", |x| x.log_softmax() * x),
    ("pow", |x| x.pow(&x.like(2.5))),
    ("maximum, minimum", |x| x.maximum(&(1.0 - x)) + x.minimum(&x.square())),
    ("sum over an axis", |x| x.sum_over(&[0]) * x),
    ("mean over an axis", |x| x.mean_over(&[1])),
    ("max over an axis", |x| x.max_over(&[1])),
    ("broadcast", |x| x * &x.mean_over(&[0])),
    ("matmul", |x| x.reshape(&[3, 2]).matmul(x)),
    ("matmul transposed", |x| x.scope().op("MatMul").input(x).input(x).attr("transpose_b", true).output()),
    ("transpose", |x| unary_with(x, "Transpose", x.scope().constant([1i32, 0])) * x.reshape(&[3, 2])),
    ("reshape", |x| x.reshape(&[-1]).square()),
    ("gather", |x| x.gather(&x.scope().constant([1i32, 1, 0]))),
    ("concat", |x| concat(&[x.clone(), x.square()])),
    ("pack", |x| x.scope().op("Pack").inputs([x, &x.square()]).output()),
    ("slice", |x| slice(x, &[0, 1], &[2, 2]).square()),
    ("pad", |x| unary_with(x, "Pad", x.scope().constant([[1i32, 0], [0, 2]])).square()),
    ("tile", |x| unary_with(x, "Tile", x.scope().constant([2i32, 1])).square()),
    ("l2 loss", |x| ops::nn::l2_loss(x)),
    ("softplus", |x| ops::nn::softplus(x)),
    ("elu", |x| ops::nn::elu(&(x - 0.5))),
    ("bias", |x| ops::nn::bias_add(&x.square(), &x.sum_over(&[0]))),
    ("cross entropy", |x| ops::nn::softmax_cross_entropy_with_logits(x, &x.scope().constant([[0.2f64, 0.3, 0.5]; 2]))),
    ("select", |x| {
        let half = x.greater(&x.like(0.5));
        x.scope().op("SelectV2").input(&half).input(&x.square()).input(&x.exp()).output()
    }),
    ("cumsum", |x| unary_with(x, "Cumsum", x.scope().constant(1i32)).square()),
    ("prod", |x| unary_with(x, "Prod", x.scope().constant([1i32]))),
    ("squared difference", |x| x.scope().op("SquaredDifference").input(x).input(&x.sum_over(&[0])).output()),
    ("conv2d", |x| {
        let image = x.reshape(&[1, 2, 3, 1]);
        let filter = x.reshape(&[2, 3, 1, 1]);
        ops::nn::conv2d(&image, &filter, [1, 1, 1, 1], "SAME")
    }),
    ("avg pool", |x| ops::nn::avg_pool(&x.square().reshape(&[1, 2, 3, 1]), [1, 2, 2, 1], [1, 1, 1, 1], "VALID")),
    ("max pool", |x| ops::nn::max_pool(&x.reshape(&[1, 2, 3, 1]), [1, 2, 2, 1], [1, 1, 1, 1], "SAME").square()),
    ("identity, used twice", |x| x.identity() + x.identity() * x),
];

fn unary_with(x: &Output, op: &str, with: Output) -> Output {
    x.scope().op(op).input(x).input(&with).output()
}

fn concat(parts: &[Output]) -> Output {
    let scope = parts[0].scope();
    scope.op("ConcatV2").inputs(parts).input(&scope.constant(0i32)).output()
}

fn slice(x: &Output, begin: &[i32], size: &[i32]) -> Output {
    let scope = x.scope();
    scope.op("Slice").input(x).input(&scope.constant(begin)).input(&scope.constant(size)).output()
}

const POINT: [f64; 6] = [0.31, 0.87, 0.22, 0.64, 0.43, 0.78];

#[test]
fn slopes_are_what_differences_say() {
    for (name, function) in FUNCTIONS {
        check(name, *function, 2e-6);
    }
}

#[test]
fn slopes_of_slopes_are_what_differences_say() {
    for (name, function) in FUNCTIONS {
        let slope = |x: &Output| weighted(&slope_of(&function(x), x));
        check_built(name, &|x| weighted(&slope(x)), 2e-5);
    }
}

/// Weights make every element count differently: a mixed-up order would show.
fn weighted(y: &Output) -> Output {
    let flat = y.reshape(&[-1]);
    let scope = y.scope();
    let size = scope.op("Size").input(&flat).output();
    let range = scope.op("Range").input(&scope.constant(0i32)).input(&size).input(&scope.constant(1i32)).output();
    (flat * (range.cast(y.dtype()) + 1.0)).sum()
}

fn slope_of(y: &Output, x: &Output) -> Output {
    match gradients_with(&[&weighted(y)], &[x], &Default::default()).unwrap().remove(0) {
        Some(gradient) => dense(&gradient).seen_from(x.scope()),
        // A straight line has no second slope.
        None => x.zeros_like(),
    }
}

fn check(name: &str, function: Function, tolerance: f64) {
    check_built(name, &|x| weighted(&function(x)), tolerance);
}

fn check_built(name: &str, function: &dyn Fn(&Output) -> Output, tolerance: f64) {
    let graph = graph();
    let x = graph.root().placeholder(DType::F64, &[2, 3]);
    let y = function(&x);
    let slope = slope_of(&y, &x);
    graph.check().unwrap_or_else(|error| panic!("{name}: {error}"));
    let session = Session::local(&graph);
    let at = |point: &[f64; 6]| Tensor::from_slice([2, 3], point).unwrap();
    let slope: Vec<f64> =
        session.run_with(&slope, feeds! { &x => at(&POINT) }).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (place, slope) in slope.iter().enumerate() {
        let step = 1e-4;
        let value = |change: f64| -> f64 {
            let mut point = POINT;
            point[place] += change;
            session.run_with(&y, feeds! { &x => at(&point) }).unwrap()
        };
        let difference = (value(step) - value(-step)) / (2.0 * step);
        let error = (slope - difference).abs() / difference.abs().max(1.0);
        assert!(error < tolerance, "{name}: slope {place} is {slope}, differences say {difference}");
    }
}

#[test]
fn integers_and_stops_have_no_gradient() {
    let graph = graph();
    let x = graph.root().placeholder(DType::F32, &[2]);
    let n = x.cast(DType::I32).cast(DType::F32);
    let stopped = x.square().stop_gradient();
    assert!(gradients_with(&[&n], &[&x], &Default::default()).unwrap()[0].is_none());
    assert!(gradients_with(&[&stopped], &[&x], &Default::default()).unwrap()[0].is_none());
}

#[test]
fn an_op_without_a_rule_is_named() {
    let graph = graph();
    let x = graph.root().placeholder(DType::F32, &[2, 2]);
    let y = graph.root().op("Mod").named("rest").input(&x).input(&x).output();
    let error = gradient(&y, &x).unwrap_err();
    assert_eq!(error.message, "No gradient defined for operation 'rest' (op type: Mod)");
}

#[test]
fn stop_gradients_holds_values_still() {
    let graph = graph();
    let x = graph.root().placeholder(DType::F32, &[]);
    let y = x.square();
    let z = &y * &x;
    let options = ::gradient::GradientOptions { stop: vec![y.clone()], ..Default::default() };
    let slope = gradients_with(&[&z], &[&x], &options).unwrap().remove(0).unwrap();
    let slope: f32 = Session::local(&graph).run_with(&dense(&slope), feeds! { &x => 3f32 }).unwrap();
    assert_eq!(slope, 9.0);
}

#[test]
fn gradients_of_variables_count_every_read() {
    let graph = graph();
    let (a, b) = (Variable::zeros(&graph.root(), "a", []), Variable::zeros(&graph.root(), "b", []));
    let read_twice = a.value() * &a.read(&graph.root()) + b.value() * 5.0;
    let [da, db]: [Output; 2] = gradients(&read_twice, &[&a, &b]).unwrap().try_into().unwrap();
    let session = Session::local(&graph);
    let four = graph.root().constant(4f32);
    session.execute(&a.assign(&four)).unwrap();
    session.execute(&b.assign(&four)).unwrap();
    assert_eq!(session.run::<(f32, f32)>((&da, &db)).unwrap(), (8.0, 5.0));
}

#[test]
fn a_gradient_can_be_differentiated_again() {
    let graph = graph();
    let x = graph.root().placeholder(DType::F32, &[]);
    let cube = &x * &x * &x;
    let slope = gradient(&cube, &x).unwrap();
    let bend = gradient(&slope, &x).unwrap();
    let found: (f32, f32) = Session::local(&graph).run_with((&slope, &bend), feeds! { &x => 2f32 }).unwrap();
    assert_eq!(found, (12.0, 12.0));
}

#[test]
fn a_gradient_of_gathered_rows_is_dense_or_slices() {
    let graph = graph();
    let table = Variable::zeros(&graph.root(), "table", [3, 2]);
    let sum = (table.gather(&graph.root().constant([1i32, 1])) * 2.0).sum();
    let slices = gradients_with(&[&sum], &[&table.gradient_target()], &Default::default()).unwrap().remove(0);
    assert!(matches!(slices, Some(op::Gradient::Sparse(_))));
    let dense = gradient(&sum, &table).unwrap();
    let session = Session::local(&graph);
    session.execute(table.initializer()).unwrap();
    assert_eq!(session.run::<Vec<[f32; 2]>>(&dense).unwrap(), [[0.0, 0.0], [4.0, 4.0], [0.0, 0.0]]);
}

#[test]
fn a_missing_gradient_is_an_error() {
    let graph = graph();
    let x = graph.root().op("Placeholder").named("x").attr("dtype", DType::F32).output();
    let y = graph.root().op("Const").named("y").attr("value", Tensor::from(1f32)).attr("dtype", DType::F32).output();
    let error = gradient(&y, &x).unwrap_err();
    assert_eq!(error.message, "y:0 does not depend on x:0, so there is no gradient");
}
