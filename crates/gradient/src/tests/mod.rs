//! Gradients of graphs of toy ops, as the formulas that compute them.

mod toy;

use crate::{GradientOptions, differentiate, gradients, gradients_with};
use graph::{FunctionDef, FunctionLibrary, NodeDef, Output, Signature};
use status::{Code, Result};
use std::collections::BTreeMap;
use std::slice::from_ref;
use std::sync::Arc;
use tensor::DType;
use toy::{formula, placeholder, registry, root, rows, text, unary};

const F32: DType = DType::F32;
const I32: DType = DType::I32;
const I64: DType = DType::I64;

/// The gradient of `y` by `x`, when the gradient of `y` is `dy`.
fn by(y: &Output, x: &Output) -> Result<Option<String>> {
    by_with(y, x, GradientOptions::default())
}

fn by_with(y: &Output, x: &Output, options: GradientOptions) -> Result<Option<String>> {
    let dy = placeholder(&x.scope().graph().root(), "dy", y.dtype());
    let options = GradientOptions { grad_ys: vec![Some(dy)], ..options };
    let found = gradients_with(&registry(), from_ref(y), from_ref(x), &options)?;
    Ok(found[0].as_ref().map(text))
}

fn dense(formula: &str) -> Result<Option<String>> {
    Ok(Some(formula.to_string()))
}

#[test]
fn rules_are_chained_from_the_result_back() {
    let x = placeholder(&root(), "x", F32);
    let y = unary("Square", &unary("Identity", &x));
    assert_eq!(by(&y, &x), dense("Mul(dy, Identity(x))"));
}

#[test]
fn the_gradient_of_the_result_itself_is_one_unless_it_is_given() {
    let x = placeholder(&root(), "x", F32);
    let found = gradients(&registry(), from_ref(&x), from_ref(&x)).unwrap();
    assert_eq!(found[0].as_ref().map(text).unwrap(), "Fill(Shape(x), Identity([1.0]))");
}

#[test]
fn gradients_of_all_uses_are_summed() {
    let x = placeholder(&root(), "x", F32);
    assert_eq!(by(&(&x * &x), &x), dense("AddN(Mul(dy, x), Mul(dy, x))"));
}

#[test]
fn a_value_that_does_not_matter_has_no_gradient() {
    let scope = root();
    let (x, other) = (placeholder(&scope, "x", F32), placeholder(&scope, "other", F32));
    assert_eq!(by(&unary("Square", &x), &other), Ok(None));
    assert_eq!(by(&unary("Square", &unary("Round", &x)), &x), Ok(None));
    let whole = placeholder(&scope, "whole", I32);
    assert_eq!(by(&unary("Square", &whole), &whole), Ok(None));
}

#[test]
fn no_gradient_passes_a_value_that_stops_it() {
    let x = placeholder(&root(), "x", F32);
    let (inner, y) = (unary("Square", &x), unary("Square", &x));
    let y = &inner * &y;
    let options = GradientOptions { stop: vec![inner], ..GradientOptions::default() };
    assert_eq!(by_with(&y, &x, options), dense("Mul(Mul(dy, Square(x)), x)"));
}

#[test]
fn a_rule_for_several_outputs_sees_which_have_gradients() {
    let x = placeholder(&root(), "x", F32);
    let halves = x.scope().op("Halves").input(&x).outputs();
    assert_eq!(by(&halves[1], &x), dense("dy"));
}

#[test]
fn an_op_without_a_rule_is_an_error_that_names_the_node() {
    let x = placeholder(&root(), "x", F32);
    let error = by(&unary("Opaque", &x), &x).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert_eq!(error.message, "No gradient defined for operation 'Opaque' (op type: Opaque)");
}

#[test]
fn a_rule_must_return_one_gradient_for_each_input() {
    let x = placeholder(&root(), "x", F32);
    let error = by(&unary("Wrong", &x), &x).unwrap_err();
    assert_eq!(error.code, Code::Internal);
}

#[test]
fn a_gradient_must_fit_the_shape_of_its_input() {
    let scope = root();
    let sized = |name: &str, dim: i64| {
        let shape = tensor::PartialShape::new(&[dim]);
        scope.op("Placeholder").named(name).attr("dtype", F32).attr("shape", shape).output()
    };
    let (x, dy) = (sized("x", 2), sized("dy", 3));
    let options = GradientOptions { grad_ys: vec![Some(dy)], ..GradientOptions::default() };
    let error = gradients_with(&registry(), &[unary("Reshaped", &x)], &[x], &options).unwrap_err();
    assert!(error.message.starts_with("Incompatible shapes between op input and calculated"), "{}", error.message);
}

#[test]
fn slices_stay_slices_behind_an_op_that_passes_gradients() {
    let scope = root();
    let (table, indices) = (placeholder(&scope, "table", F32), placeholder(&scope, "indices", I32));
    let passed = rows(&unary("Identity", &table), &indices);
    assert_eq!(by(&passed, &table), dense("dy @ indices"));
}

#[test]
fn slices_become_dense_before_any_other_rule() {
    let scope = root();
    let (table, indices) = (placeholder(&scope, "table", F32), placeholder(&scope, "indices", I32));
    let squared = rows(&unary("Square", &table), &indices);
    let whole = "UnsortedSegmentSum(dy, indices, StridedSlice(Shape(Square(table)), [0], [1], [1]))";
    assert_eq!(by(&squared, &table), dense(&format!("Mul({whole}, table)")));
}

#[test]
fn slices_of_one_value_are_joined_with_indices_of_one_type() {
    let scope = root();
    let table = placeholder(&scope, "table", F32);
    let [narrow, wide] = [("narrow", I32), ("wide", I64)].map(|(name, dtype)| placeholder(&scope, name, dtype));
    let y = rows(&table, &narrow) * rows(&table, &wide);
    let found = by(&y, &table).unwrap().unwrap();
    assert!(found.ends_with("@ ConcatV2(wide, Cast(narrow), [0])"), "{found}");
}

#[test]
fn gated_gradients_wait_for_each_other() {
    let scope = root();
    let (x, y) = (placeholder(&scope, "x", F32), placeholder(&scope, "y", F32));
    let options = GradientOptions { gate: true, ..GradientOptions::default() };
    let found = gradients_with(&registry(), &[&x * &y], &[x.clone(), y], &options).unwrap();
    for gradient in found {
        let Some(op::Gradient::Dense(gradient)) = gradient else { panic!("no dense gradient") };
        let waits: Vec<String> = gradient.node().def().inputs.iter().filter(|i| i.starts_with('^')).cloned().collect();
        assert_eq!(gradient.node().op(), "Identity");
        assert!(matches!(&waits[..], [only] if only.ends_with("tuple/group_deps")), "{waits:?}");
    }
}

#[test]
fn wrong_questions_are_refused() {
    let (x, other) = (placeholder(&root(), "x", F32), placeholder(&root(), "x", F32));
    let options = GradientOptions { grad_ys: vec![None, None], ..GradientOptions::default() };
    assert!(gradients_with(&registry(), from_ref(&x), from_ref(&x), &options).is_err());
    assert!(gradients(&registry(), &[x], &[other]).is_err());
    let complex = placeholder(&root(), "z", DType::C64);
    let error = gradients(&registry(), from_ref(&complex), from_ref(&complex)).unwrap_err();
    assert!(error.message.contains("must set grad_ys"), "{}", error.message);
}

/// A function of one argument with these nodes, whose result is `ret`.
fn function(nodes: &[(&str, &str, &[&str])], ret: &str) -> FunctionDef {
    let node = |&(name, op, inputs): &(&str, &str, &[&str])| {
        let inputs = inputs.iter().map(|input| input.to_string()).collect();
        let attrs = BTreeMap::from([("T".to_string(), F32.into())]);
        Arc::new(NodeDef { name: name.into(), op: op.into(), inputs, attrs, ..NodeDef::default() })
    };
    FunctionDef {
        signature: Signature::parse("f(x: float) -> y: float").unwrap(),
        attrs: BTreeMap::new(),
        nodes: nodes.iter().map(node).collect(),
        ret: BTreeMap::from([("y".to_string(), ret.to_string())]),
        control_ret: BTreeMap::new(),
        arg_attrs: BTreeMap::new(),
        resource_arg_unique_id: BTreeMap::new(),
        encoded: Default::default(),
    }
}

#[test]
fn the_gradient_of_a_function_takes_its_arguments_and_the_gradients_of_its_results() {
    // The first node reads the second: the order of nodes in a function says nothing.
    let square = function(&[("b", "Square", &["a:output:0"]), ("a", "Identity", &["x"])], "b:y:0");
    let found = differentiate(&registry(), &square, &FunctionLibrary::default()).unwrap();
    let args: Vec<&str> = found.signature.inputs.iter().map(|arg| arg.name.as_str()).collect();
    assert_eq!((found.signature.name.as_str(), args), ("f_grad", vec!["x", "grad_y"]));
    let result = &found.ret["gradient_0"];
    let source = found.nodes.iter().find(|node| result.starts_with(&format!("{}:", node.name))).unwrap();
    assert_eq!(
        (source.op.as_str(), &source.inputs[..]),
        ("Mul", &["grad_y".to_string(), "a:output:0".to_string()][..])
    );
}

#[test]
fn a_function_whose_node_waits_for_itself_has_no_gradient() {
    let circle = function(&[("a", "Square", &["a:y:0"])], "a:y:0");
    let error = differentiate(&registry(), &circle, &FunctionLibrary::default()).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(error.message.contains("'a'"), "{}", error.message);
}

#[test]
fn formulas_show_what_they_are_of() {
    let x = placeholder(&root(), "x", F32);
    assert_eq!(formula(&(&x * 2.0)), "Mul(x, [2.0])");
}

#[test]
fn a_long_function_in_reverse_order_has_a_gradient_too() {
    let names: Vec<String> = (0..20_000).map(|place| format!("n{place}")).collect();
    let sources: Vec<String> =
        std::iter::once("x".to_string()).chain(names.iter().map(|n| format!("{n}:output:0"))).collect();
    let inputs: Vec<[&str; 1]> = sources.iter().map(|source| [source.as_str()]).collect();
    let nodes: Vec<(&str, &str, &[&str])> =
        names.iter().zip(&inputs).rev().map(|(name, input)| (name.as_str(), "Identity", &input[..])).collect();
    let long = function(&nodes, "n19999:output:0");
    let found = differentiate(&registry(), &long, &FunctionLibrary::default()).unwrap();
    assert_eq!(found.ret["gradient_0"], "grad_y");
}
