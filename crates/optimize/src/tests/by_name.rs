//! Optimizers by name.

use super::graph;
use crate::Optimizer;
use crate::{Adagrad, Adam, Ftrl, GradientDescent, Momentum, RmsProp};
use layers::collection::global_variables_initializer;
use layers::{Initializer, TensorOps, Variable};
use session::Session;
use status::Code;

/// What two steps make of two numbers.
fn learned(optimizer: &Optimizer) -> Vec<f32> {
    let graph = graph();
    let w = Variable::builder(&graph.root(), "w").initializer(Initializer::Value([1f32, -2.0].into())).build();
    let train = optimizer.minimize(&w.value().square().sum()).unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    for _ in 0..2 {
        session.execute(&train).unwrap();
    }
    session.run(&w).unwrap()
}

#[test]
fn a_name_stands_for_a_rule_with_its_defaults() {
    let rules = [
        ("Adagrad", Optimizer::new(Adagrad::new(0.1))),
        ("Adam", Optimizer::new(Adam::new(0.1))),
        ("Ftrl", Optimizer::new(Ftrl::new(0.1))),
        ("Momentum", Optimizer::new(Momentum::new(0.1, 0.9))),
        ("RMSProp", Optimizer::new(RmsProp::new(0.1))),
        ("SGD", Optimizer::new(GradientDescent::new(0.1))),
    ];
    for (name, rule) in &rules {
        assert_eq!(learned(&Optimizer::by_name(name, 0.1).unwrap()), learned(rule), "{name}");
    }
    let error = Optimizer::by_name("adam", 0.1).err().unwrap();
    assert_eq!(error.code, Code::InvalidArgument);
    let message = "Unsupported optimizer name: adam. Supported names are: Adagrad, Adam, Ftrl, Momentum, RMSProp, SGD";
    assert_eq!(error.message, message);
}
