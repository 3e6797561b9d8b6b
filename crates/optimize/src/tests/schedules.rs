//! Learning rates by their formulas.

use super::graph;
use crate::schedule::*;
use graph::Output;
use layers::ScopeOps;
use session::{Session, feeds};
use tensor::DType;

fn check(make: impl Fn(&Output) -> Output, wanted: &[(i64, f64)]) {
    let graph = graph();
    let step = graph.root().placeholder(DType::I64, &[]);
    let rate = make(&step);
    let session = Session::local(&graph);
    for &(at, wanted) in wanted {
        let found: f32 = session.run_with(&rate, feeds! { &step => at }).unwrap();
        assert!((f64::from(found) - wanted).abs() < 1e-6, "step {at}: {found} instead of {wanted}");
    }
}

#[test]
fn exponential() {
    check(|step| exponential_decay(0.1, step, 10.0, 0.5, false), &[(0, 0.1), (10, 0.05), (5, 0.1 * 0.5f64.sqrt())]);
    check(|step| exponential_decay(0.1, step, 10.0, 0.5, true), &[(9, 0.1), (10, 0.05), (29, 0.025)]);
    check(|step| natural_exp_decay(0.1, step, 1.0, 0.2, false), &[(3, 0.1 * (-0.6f64).exp())]);
}

#[test]
fn inverse_time() {
    check(|step| inverse_time_decay(0.1, step, 1.0, 0.5, false), &[(0, 0.1), (2, 0.05), (6, 0.025)]);
}

#[test]
fn polynomial() {
    check(|step| polynomial_decay(0.1, step, 10.0, 0.01, 2.0, false), &[(5, 0.0325), (10, 0.01), (50, 0.01)]);
    check(|step| polynomial_decay(0.1, step, 10.0, 0.0, 1.0, true), &[(5, 0.05), (10, 0.0), (15, 0.025)]);
}

#[test]
fn cosine() {
    check(|step| cosine_decay(0.2, step, 10.0, 0.0), &[(0, 0.2), (5, 0.1), (10, 0.0), (20, 0.0)]);
    check(|step| cosine_decay(0.2, step, 10.0, 0.5), &[(5, 0.15), (10, 0.1)]);
}

#[test]
fn piecewise() {
    let rates = [1.0, 0.5, 0.1];
    check(|step| piecewise_constant(step, &[100, 200], &rates), &[(100, 1.0), (101, 0.5), (200, 0.5), (201, 0.1)]);
}
