//! Equal functions have equal fingerprints, whatever their names are; other functions have other ones.

use crate::{
    Arg, ArgType, AttrValue, Function, FunctionDef, FunctionLibrary, NodeDef, Signature, function_fingerprint,
};
use std::sync::Arc;
use tensor::{DType, Tensor};

fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
    let inputs = inputs.iter().map(|input| input.to_string()).collect();
    NodeDef { name: name.into(), op: op.into(), inputs, ..NodeDef::default() }
}

fn constant(name: &str, value: i64) -> NodeDef {
    let mut node = node(name, "Const", &[]);
    node.attrs.insert("value".into(), AttrValue::Tensor(Tensor::scalar(value).into()));
    node
}

fn call(name: &str, function: &str, input: &str) -> NodeDef {
    let mut node = node(name, "PartitionedCall", &[input]);
    let function = Function { name: function.into(), ..Function::default() };
    node.attrs.insert("f".into(), AttrValue::Func(Arc::new(function)));
    node
}

/// A function of one argument, `x`, whose result is `y`.
fn function(name: &str, nodes: Vec<NodeDef>, result: &str) -> FunctionDef {
    let arg = |name: &str| Arg { name: name.into(), ty: ArgType::Fixed(DType::I64), number: None, is_ref: false };
    let (inputs, outputs) = (vec![arg("x")], vec![arg("y")]);
    FunctionDef {
        signature: Signature { name: name.into(), inputs, outputs, ..Signature::default() },
        nodes: nodes.into_iter().map(Arc::new).collect(),
        ret: [("y".to_string(), result.to_string())].into(),
        ..FunctionDef::default()
    }
}

/// The fingerprint of the first one.
fn fingerprint(functions: Vec<FunctionDef>) -> Option<u64> {
    let first = Function { name: functions[0].signature.name.clone(), ..Function::default() };
    let named = functions.into_iter().map(|def| (def.signature.name.clone(), Arc::new(def)));
    function_fingerprint(&FunctionLibrary { functions: named.collect(), ..FunctionLibrary::default() }, &first)
}

fn adds(value: i64, [name, constant_name, sum]: [&str; 3]) -> FunctionDef {
    let nodes = vec![constant(constant_name, value), node(sum, "AddV2", &["x", &format!("{constant_name}:output:0")])];
    function(name, nodes, &format!("{sum}:z:0"))
}

#[test]
fn names_do_not_count_and_constants_do() {
    let first = fingerprint(vec![adds(1, ["map_12", "Const", "add"])]);
    assert!(first.is_some());
    assert_eq!(first, fingerprint(vec![adds(1, ["map_57", "one", "sum"])]));
    assert_ne!(first, fingerprint(vec![adds(2, ["map_12", "Const", "add"])]));
}

#[test]
fn devices_hints_and_unused_nodes_do_not_count() {
    let plain = adds(1, ["f", "one", "sum"]);
    let mut other = plain.clone();
    let mut sum = (*other.nodes[1]).clone();
    sum.device = "/job:worker/task:1".into();
    sum.attrs.insert("_output_shapes".into(), AttrValue::Int(3));
    other.nodes[1] = Arc::new(sum);
    other.nodes.push(Arc::new(constant("unused", 7)));
    assert_eq!(fingerprint(vec![plain]), fingerprint(vec![other]));
}

#[test]
fn the_order_of_inputs_counts() {
    let with = |inputs: [&str; 2]| {
        fingerprint(vec![function("f", vec![constant("c", 1), node("s", "Sub", &inputs)], "s:z:0")])
    };
    assert_ne!(with(["x", "c:output:0"]), with(["c:output:0", "x"]));
}

#[test]
fn functions_that_are_called_count() {
    let calling = |name: &str, value: i64| {
        let caller = function("f", vec![call("c", name, "x")], "c:output:0");
        fingerprint(vec![caller, adds(value, [name, "one", "sum"])])
    };
    assert!(calling("g_1", 1).is_some());
    assert_eq!(calling("g_1", 1), calling("g_2", 1));
    assert_ne!(calling("g_1", 1), calling("g_1", 2));
    assert_eq!(fingerprint(vec![function("f", vec![call("c", "missing", "x")], "c:output:0")]), None);
}

#[test]
fn recursive_functions_and_loops_have_a_fingerprint() {
    let recursive = |name: &str| function(name, vec![call("c", name, "x")], "c:output:0");
    assert!(fingerprint(vec![recursive("f")]).is_some());
    assert_eq!(fingerprint(vec![recursive("f")]), fingerprint(vec![recursive("g")]));
    let two = |back: [&str; 2]| {
        let nodes = vec![
            node("a", "Merge", &["x", "next_a:output:0"]),
            node("b", "Merge", &["x", "next_b:output:0"]),
            node("next_a", "NextIteration", &[back[0]]),
            node("next_b", "NextIteration", &[back[1]]),
            node("sum", "AddV2", &["a:output:0", "b:output:0"]),
        ];
        fingerprint(vec![function("f", nodes, "sum:z:0")])
    };
    assert!(two(["a:output:0", "b:output:0"]).is_some());
    assert_ne!(two(["a:output:0", "b:output:0"]), two(["b:output:0", "a:output:0"]));
}
