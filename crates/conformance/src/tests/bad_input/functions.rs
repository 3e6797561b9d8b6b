//! Functions that do not fit where they are named: of other types, without results, calling themselves.

use super::edit::{constant, node};
use crate::Program;
use graph::{Arg, ArgType, Function, FunctionDef, NodeDef, Signature};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{DType, Tensor};

/// Returns its argument, a float.
pub const FLOATS: &str = "bad_floats";
/// Takes nothing and returns a string.
const STRING: &str = "bad_string";
/// Takes and returns nothing.
const NOTHING: &str = "bad_nothing";
/// Calls itself.
const ITSELF: &str = "bad_itself";
/// Fails when it runs.
const FAILS: &str = "bad_fails";
/// Is not in the library.
const MISSING: &str = "bad_missing";

/// All of them.
pub const ALL: [&str; 6] = [FLOATS, STRING, NOTHING, ITSELF, FAILS, MISSING];

/// A function without attributes.
pub fn call(name: &str) -> Function {
    Function { name: name.to_string(), ..Function::default() }
}

/// Adds them to the library of a program.
pub fn add(program: &mut Program) {
    let float: &[(&str, DType)] = &[("x", DType::F32)];
    let same = node("y", "Identity", &["x"], &[("T", DType::F32.into())]);
    let text = constant("y", &Tensor::string("text"));
    let again = node("y", ITSELF, &["x"], &[]);
    let zero = constant("zero", &Tensor::scalar(0i32));
    let divided = node("d", "FloorDiv", &["zero:output:0", "zero:output:0"], &[("T", DType::I32.into())]);
    let cast = node("y", "Cast", &["d:z:0"], &[("SrcT", DType::I32.into()), ("DstT", DType::F32.into())]);
    let all = [
        function(FLOATS, float, float, vec![same], "y:output:0"),
        function(STRING, &[], &[("x", DType::STRING)], vec![text], "y:output:0"),
        function(NOTHING, &[], &[], Vec::new(), ""),
        function(ITSELF, float, float, vec![again], "y:x:0"),
        function(FAILS, float, float, vec![zero, divided, cast], "y:y:0"),
    ];
    for function in all {
        program.graph.library.functions.insert(function.signature.name.clone(), Arc::new(function));
    }
}

fn function(
    name: &str,
    args: &[(&str, DType)],
    results: &[(&str, DType)],
    nodes: Vec<NodeDef>,
    ret: &str,
) -> FunctionDef {
    let arg = |(name, dtype): &(&str, DType)| Arg {
        name: name.to_string(),
        ty: ArgType::Fixed(*dtype),
        number: None,
        is_ref: false,
    };
    let signature = Signature {
        name: name.to_string(),
        inputs: args.iter().map(arg).collect(),
        outputs: results.iter().map(arg).collect(),
        ..Signature::default()
    };
    let ret: BTreeMap<String, String> = results.iter().map(|(name, _)| (name.to_string(), ret.to_string())).collect();
    FunctionDef { signature, nodes: nodes.into_iter().map(Arc::new).collect(), ret, ..FunctionDef::default() }
}
