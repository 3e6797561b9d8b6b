//! The raw builders and the page of ops against the rows.

use crate::builders::{function_name, raw_builders};
use crate::ops_page::{names, ops_page, reason};
use flowgrid::prelude::*;
use flowgrid::raw_ops;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn raw_builders_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, text) in raw_builders() {
        let found = std::fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(found == text, "{name} does not match the rows; run cargo xtask builders");
    }
}

#[test]
fn the_page_of_ops_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops.md");
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == ops_page(), "docs/ops.md does not match the rows; run cargo xtask builders");
}

#[test]
fn every_op_of_tensorflow_has_a_row_or_a_reason() {
    let registry = data::registry();
    let unexplained: Vec<&str> = names().filter(|name| registry.op(name).is_none() && reason(name).is_none()).collect();
    assert!(unexplained.is_empty(), "no row and no reason: {unexplained:?}");
}

#[test]
fn every_row_has_a_builder_of_its_own() {
    let text: String = raw_builders().into_values().collect();
    let registry = data::registry();
    let names: BTreeSet<String> = registry.names().map(function_name).collect();
    assert_eq!(names.len(), registry.names().count());
    let missing: Vec<&String> = names.iter().filter(|name| !text.contains(&format!("pub fn {name}("))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The names that `gen_*_ops.py` of TensorFlow 2.21 has for these ops.
#[test]
fn builders_are_named_as_in_python() {
    let names = ["MatMul", "Conv2D", "BiasAddV1", "FFT2D", "LRNGrad", "CTCLossV2", "_Arg"].map(function_name);
    assert_eq!(names, ["mat_mul", "conv2d", "bias_add_v1", "fft2d", "lrn_grad", "ctc_loss_v2", "internal_arg"]);
}

#[test]
fn raw_builders_build_nodes_that_run() {
    let graph = Graph::new();
    let constant = |value: Tensor| raw_ops::const_(&graph.root(), &value, value.dtype()).output();
    let a = constant(Tensor::vector(&[1f32, 2.0, 3.0]));
    let axis = constant(Tensor::scalar(0i32));
    let joined = raw_ops::concat_v2(&[a.clone(), a.clone()], &axis).output();
    let parts = raw_ops::split(&axis, &joined, 3).outputs();
    let sum = raw_ops::add_n(&graph.root(), &parts).named("total").output();
    let sum = raw_ops::cast(&sum, DType::I64).attr("Truncate", false).output();
    let value: Tensor = Session::local(&graph).run(&sum).unwrap();
    assert_eq!(value.values::<i64>().unwrap(), [6, 6]);
}

#[test]
fn a_shape_error_names_the_node_its_inputs_and_their_shapes() {
    let graph = Graph::new();
    let placeholder = |name: &str, dims: &[i64]| {
        let built = raw_ops::placeholder(&graph.root(), DType::F32).attr("shape", PartialShape::new(dims));
        built.named(name).output()
    };
    let (images, weights) = (placeholder("images", &[2, 3]), placeholder("weights", &[4, 5]));
    raw_ops::mat_mul(&images, &weights).named("logits").node();
    let message = graph.check().unwrap_err().message;
    let wanted = "Dimensions must be equal, but are 3 and 4 for 'logits' (op: 'MatMul') with input shapes: [2,3], [4,5] \
                  from inputs: 'images:0' (op: 'Placeholder'), 'weights:0' (op: 'Placeholder')";
    assert_eq!(message, wanted);
}
