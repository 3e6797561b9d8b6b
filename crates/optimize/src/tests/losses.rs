//! Each optimizer, on both kinds of variables and both kinds of gradients, gives TensorFlow's losses.

use super::{graph, values};
use crate::*;
use layers::collection::global_variables_initializer;
use layers::{Initializer, Kind, ScopeOps, TensorOps, Variable};
use op::Gradient;
use ops::nn::sparse_softmax_cross_entropy_with_logits;
use session::Session;

/// What real TensorFlow wrote; see `fixtures/losses.py`.
const EXPECTED: &str = include_str!("../../fixtures/losses.txt");

#[test]
fn losses_are_tensorflows() {
    let mut failures = Vec::new();
    for line in EXPECTED.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, kind, sparse, numbers @ ..] = &words[..] else { panic!("{line}") };
        let wanted: Vec<f32> = numbers.iter().map(|number| number.parse().unwrap()).collect();
        let kind = if *kind == "resource" { Kind::Resource } else { Kind::Reference };
        let found = losses(name, kind, *sparse == "sparse", wanted.len());
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 2e-5 * b.abs().max(1e-3);
        if !found.iter().zip(&wanted).all(close) {
            failures.push(format!("{name} {kind:?} {sparse}: {found:?} instead of {wanted:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn losses(name: &str, kind: Kind, sparse: bool, count: usize) -> Vec<f32> {
    let graph = graph();
    let root = graph.root();
    let variable = |name: &str, shape: &[usize], scale: f64| {
        Variable::builder(&root, name).initializer(Initializer::Value(values(shape, scale))).kind(kind).build()
    };
    let table = variable("table", &[5, 3], 1.0);
    let w = variable("w", &[3, 4], 0.7);
    let b = variable("b", &[4], 0.2);
    let step = create_global_step(&graph).unwrap();
    let x = match sparse {
        true => table.gather(&root.constant([0i32, 3, 3, 1])),
        false => ops::array::slice(&table, &root.constant([0i32, 0]), &root.constant([4i32, 3])),
    };
    let logits = (x.matmul(&w) + &b).tanh();
    let wanted = root.constant([0i32, 2, 1, 3]);
    let loss = sparse_softmax_cross_entropy_with_logits(&logits, &wanted).mean();
    let optimizer = optimizer(name, &step);
    let mut pairs = optimizer.compute_gradients(&loss).unwrap();
    assert_eq!(pairs.len(), 3);
    if name == "Clipped" {
        let gradients: Vec<Gradient> = pairs.iter().filter_map(|(gradient, _)| gradient.clone()).collect();
        let (clipped, _) = clip::clip_by_global_norm(&root, &gradients, 0.2);
        pairs.iter_mut().zip(clipped).for_each(|(pair, gradient)| pair.0 = Some(gradient));
    }
    for gradient in pairs.iter_mut().filter_map(|(gradient, _)| gradient.as_mut()) {
        match name {
            "ClippedByNorm" => *gradient = clip::clip_by_norm(gradient, 0.1),
            "ClippedByValue" => *gradient = clip::clip_by_value(gradient, -0.05, 0.02),
            _ => {}
        }
    }
    let train = optimizer.apply_gradients_with(&pairs, MinimizeOptions::new().step(&step)).unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(session.run(&loss).unwrap());
        session.execute(&train).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert_eq!(session.run::<i64>(&step).unwrap(), count as i64);
    found
}

fn optimizer(name: &str, step: &Variable) -> Optimizer {
    match name {
        "GradientDescent" => Optimizer::new(GradientDescent::new(0.1)),
        "Momentum" => Optimizer::new(Momentum::new(0.05, 0.9)),
        "Nesterov" => Optimizer::new(Momentum::new(0.05, 0.9).nesterov()),
        "Adagrad" => Optimizer::new(Adagrad::new(0.1)),
        "Adadelta" => Optimizer::new(Adadelta::new(1.0)),
        "Adam" => Optimizer::new(Adam::new(0.05)),
        "RMSProp" => Optimizer::new(RmsProp { momentum: 0.5, ..RmsProp::new(0.01) }),
        "CenteredRMSProp" => Optimizer::new(RmsProp { momentum: 0.5, centered: true, ..RmsProp::new(0.01) }),
        "Ftrl" => Optimizer::new(Ftrl { l1: 0.01, l2: 0.01, ..Ftrl::new(0.2) }),
        "ProximalGradientDescent" => {
            Optimizer::new(ProximalGradientDescent { l1: 0.01, l2: 0.01, ..ProximalGradientDescent::new(0.1) })
        }
        "ProximalAdagrad" => Optimizer::new(ProximalAdagrad { l1: 0.01, l2: 0.01, ..ProximalAdagrad::new(0.1) }),
        "AdagradDA" => Optimizer::new(AdagradDa { l1: 0.001, ..AdagradDa::new(0.1) }),
        "Clipped" | "ClippedByNorm" | "ClippedByValue" => Optimizer::new(GradientDescent::new(0.5)),
        "Decayed" => Optimizer::new(Adam::new(schedule::exponential_decay(0.1, step, 3.0, 0.5, true))),
        "ShrunkFtrl" => Optimizer::new(Ftrl { l2: 0.01, l2_shrinkage: 0.1, ..Ftrl::new(0.2) }),
        "AdaMax" => Optimizer::new(AdaMax::new(0.05)),
        "AddSign" => Optimizer::new(AddSign { sign_decay: Rate::Number(0.8), ..AddSign::new(0.1) }),
        "PowerSign" => Optimizer::new(PowerSign { sign_decay: Rate::Number(0.8), ..PowerSign::new(0.1) }),
        other => panic!("no optimizer is called {other}"),
    }
}
