//! Where optimizers keep what all variables share, and as what: as TensorFlow 2.21 does.

use super::graph;
use crate::{AdaMax, Adam, Optimizer, UpdateRule, replica_device_setter};
use graph::{AttrValue, Graph, Node};
use layers::collection::{global_variables, global_variables_initializer};
use layers::{Initializer, Kind, TensorOps, Variable};
use session::Session;
use tensor::DType;

/// The devices of the powers that are kept for variables of these names, each on a ps task of its own.
fn devices(rule: impl UpdateRule + 'static, names: &[&str], kind: Kind) -> Vec<String> {
    let graph = graph();
    let scope = replica_device_setter(names.len()).worker_device("/job:worker/task:0").on(&graph.root());
    let square = |name: &&str| Variable::builder(&scope, name).kind(kind).build().square();
    let squares: Vec<_> = names.iter().map(square).collect();
    Optimizer::new(rule).minimize(&scope.op("AddN").inputs(&squares).output()).unwrap();
    powers(&graph).iter().map(device).collect()
}

fn powers(graph: &Graph) -> Vec<Variable> {
    global_variables(graph).into_iter().filter(|variable| variable.name().ends_with("_power")).collect()
}

/// The device of the variable that this one is beside.
fn device(variable: &Variable) -> String {
    let def = variable.handle().node().def();
    let Some(AttrValue::List(groups)) = def.attrs.get("_class") else { panic!("{variable:?} is beside nothing") };
    let group = std::str::from_utf8(&groups.strings[0]).unwrap();
    let other = Node::find(&variable.graph().root(), group.strip_prefix("loc:@").unwrap()).unwrap();
    other.def().device.clone()
}

#[test]
fn powers_are_beside_the_variable_that_is_first_by_name() {
    for kind in [Kind::Resource, Kind::Reference] {
        // Names end in `:0`, which is before letters and after digits and slashes; capitals are before small letters.
        for names in [&["w", "b"][..], &["a", "a/b"], &["w", "w1"], &["a", "B"], &["b", "a_1", "a"]] {
            let wanted = format!("/job:ps/task:{}", names.len() - 1);
            assert_eq!(devices(Adam::new(0.1), names, kind), [wanted.clone(), wanted.clone()], "{names:?}");
            assert_eq!(devices(AdaMax::new(0.1), names, kind), [wanted], "{names:?}");
        }
    }
}

#[test]
fn a_variable_without_a_gradient_is_not_the_first() {
    let graph = graph();
    let scope = replica_device_setter(3).on(&graph.root());
    let [_unused, c, b] = ["a", "c", "b"].map(|name| Variable::zeros(&scope, name, []));
    Optimizer::new(Adam::new(0.1)).minimize(&(c.square() + b.square())).unwrap();
    let devices: Vec<String> = powers(&graph).iter().map(device).collect();
    assert_eq!(devices, ["/job:ps/task:2", "/job:ps/task:2"]);
}

#[test]
fn powers_and_shares_are_floats_even_for_doubles() {
    for kind in [Kind::Resource, Kind::Reference] {
        let graph = graph();
        let first = Initializer::Value([1f64, 2.0].into());
        let w = Variable::builder(&graph.root(), "w").initializer(first).kind(kind).build();
        let train = Optimizer::new(Adam::new(0.1)).minimize(&(w.square() * &*w).sum()).unwrap();
        let session = Session::local(&graph);
        session.execute(&global_variables_initializer(&graph)).unwrap();
        (0..3).for_each(|_| session.execute(&train).unwrap());
        let found: Vec<f64> = session.run(&w).unwrap();
        let wanted = [0.7041548174225166, 1.7014887526648736];
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} instead of {wanted:?}");
        for (power, wanted) in powers(&graph).iter().zip([0.6561f32, 0.996006]) {
            assert_eq!(power.dtype(), DType::F32);
            assert!((session.run::<f32>(power).unwrap() - wanted).abs() < 1e-6);
        }
    }
}
