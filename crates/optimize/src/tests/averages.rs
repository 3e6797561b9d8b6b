//! Averages, with the numbers and names of TensorFlow 2.21.

use super::graph;
use crate::{ExponentialMovingAverage, create_global_step};
use graph::Graph;
use layers::collection::{
    MOVING_AVERAGE_VARIABLES, global_variables, global_variables_initializer, variables as collected,
};
use layers::{Initializer, ScopeOps, TensorOps, Variable};
use session::{Session, feeds};
use tensor::DType;

fn names(variables: &[Variable]) -> Vec<String> {
    variables.iter().map(Variable::name).collect()
}

fn assert_close(found: &[f64], wanted: &[f64], error: f64) {
    let close = found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= error);
    assert!(close, "{found:?} instead of {wanted:?}");
}

/// The averages of a float value that is fed, and of the same as a double, after each of three updates.
fn check_values(averages: ExponentialMovingAverage, updates: bool, wanted: [[f64; 2]; 3]) {
    let graph = graph();
    let root = graph.root();
    let averages = if updates { averages.with_updates(&root.constant(2i64)) } else { averages };
    let x = root.placeholder(DType::F32, &[2]);
    let (y, z) = (x.identity(), x.cast(DType::F64));
    let follow = averages.apply_to_values(&[y.clone(), z.clone()]).unwrap();
    let [single, double] = [&y, &z].map(|value| averages.value_average(value).unwrap());
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    for (value, wanted) in [[1f32, -2.0], [4.0, 3.0], [2.0, 0.5]].into_iter().zip(&wanted) {
        session.execute_with(&follow, feeds! { &x => value.to_vec() }).unwrap();
        let (found, precise): (Vec<f32>, Vec<f64>) = session.run((&single, &double)).unwrap();
        let found: Vec<f64> = found.into_iter().map(f64::from).collect();
        assert_close(&found, wanted, 1e-6);
        assert_close(&precise, wanted, 1e-14);
    }
}

#[test]
fn averages_of_values_begin_with_zero() {
    let wanted = [
        [0.10000002384185791, -0.20000004768371582],
        [0.4900001144409174, 0.12000003337860221],
        [0.6410001389980284, 0.1580000391006472],
    ];
    check_values(ExponentialMovingAverage::new(0.9), false, wanted);
    let wanted = [[0.75, -1.5], [3.1875, 1.875], [2.296875, 0.84375]];
    check_values(ExponentialMovingAverage::new(0.9), true, wanted);
}

#[test]
fn averages_can_hide_that_they_began_with_zero() {
    let wanted = [[1.0, -2.0], [2.5789473882342313, 0.6315789803903853], [2.365313660375995, 0.5830258498989993]];
    check_values(ExponentialMovingAverage::new(0.9).zero_debias(), false, wanted);
    let wanted = [[1.0, -2.0], [3.4, 2.0], [2.3333333333333335, 0.8571428571428571]];
    check_values(ExponentialMovingAverage::new(0.9).zero_debias(), true, wanted);
}

#[test]
fn averages_of_values_have_tensorflows_names() {
    let graph = graph();
    let y = graph.root().op("Identity").named("y").input(&graph.root().constant(1f32)).output();
    let averages = ExponentialMovingAverage::new(0.9).zero_debias();
    averages.apply_to_values(&[y]).unwrap();
    let mut found = names(&global_variables(&graph));
    found.sort();
    let wanted = ["", "/biased", "/local_step"].map(|name| format!("y/ExponentialMovingAverage{name}"));
    assert_eq!(found, wanted);
    assert_eq!(names(&collected(&graph, MOVING_AVERAGE_VARIABLES)), Vec::<String>::new());
}

/// Variables w and b, which are trained, and c and d, which are not; averages of w and d.
fn averaged(graph: &Graph) -> (ExponentialMovingAverage, [Variable; 4]) {
    let build = |name: &str, trainable: bool| {
        let builder = Variable::builder(&graph.root(), name).initializer(Initializer::Constant(3.0));
        builder.trainable(trainable).build()
    };
    let [w, b, c, d] = [build("w", true), build("b", true), build("c", false), build("d", false)];
    (ExponentialMovingAverage::new(0.5), [w, b, c, d])
}

#[test]
fn variables_are_restored_from_their_averages() {
    let graph = graph();
    create_global_step(&graph).unwrap();
    let (averages, [w, _, c, d]) = averaged(&graph);
    averages.apply(&[w.clone(), d]).unwrap();
    assert_eq!(names(&collected(&graph, MOVING_AVERAGE_VARIABLES)), ["w", "d"]);
    let pairs = |averaged: &[Variable]| -> Vec<(String, String)> {
        let found = averages.variables_to_restore(&graph, averaged);
        found.into_iter().map(|(name, variable)| (name, variable.name())).collect()
    };
    let own = |name: &str| (name.to_string(), name.to_string());
    let average = |name: &str| (format!("{name}/ExponentialMovingAverage"), name.to_string());
    assert_eq!(pairs(&[]), [average("b"), own("c"), average("d"), own("global_step"), average("w")]);
    let kept = ["d/ExponentialMovingAverage", "global_step", "w", "w/ExponentialMovingAverage"].map(own);
    let wanted = [&[own("b"), average("c"), own("d")][..], &kept].concat();
    assert_eq!(pairs(&[c]), wanted);
}

#[test]
fn the_share_that_is_fresh_is_a_float_even_for_doubles() {
    let graph = graph();
    let first = Initializer::Value([1f64, 2.0].into());
    let w = Variable::builder(&graph.root(), "w").initializer(first).build();
    let averages = ExponentialMovingAverage::new(0.9);
    let follow = averages.apply(std::slice::from_ref(&w)).unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    session.execute(&w.assign(&graph.root().constant([5f64, -1.0]))).unwrap();
    session.execute(&follow).unwrap();
    let found: Vec<f64> = session.run(&averages.average(&w).unwrap()).unwrap();
    assert_close(&found, &[1.4000000953674316, 1.6999999284744263], 1e-14);
}
