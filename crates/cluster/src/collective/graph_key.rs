//! The key of a graph with collective operations, which is the same in all programs that take part.

use graph::{AttrValue, Function, FunctionLibrary, GraphDef, NodeDef, Signatures};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// TensorFlow's key of a graph whose operations are known at run time only, and the beginning of other keys.
const START: u64 = 0x8774_aa60_5c72_9c72;

/// The attribute or input that names an operation. No other op has one of that name.
const INSTANCE_KEY: &str = "instance_key";
/// The input that stands for a group whose operations are counted.
const COMMUNICATOR: &str = "communicator";

/// The key of the graphs of a step; zero if none takes part in a collective operation.
pub(crate) fn graph_key<'a>(graphs: impl Iterator<Item = &'a GraphDef>, ops: &dyn Signatures) -> i64 {
    let mut found = Found::default();
    for graph in graphs {
        let (mut next, mut called) = (Vec::new(), FxHashSet::default());
        graph.nodes.iter().for_each(|node| found.add(node, ops, &graph.library, &mut next));
        while let Some(name) = next.pop() {
            if let Some(function) = graph.library.functions.get(name)
                && called.insert(name)
            {
                function.nodes.iter().for_each(|node| found.add(node, ops, &graph.library, &mut next));
            }
        }
    }
    found.key()
}

#[derive(Default)]
struct Found {
    /// The operations that attributes name.
    keys: BTreeSet<i32>,
    /// Whether other nodes name theirs at run time.
    at_run_time: bool,
}

impl Found {
    /// Adds a node, and the functions that it calls to those that are visited next.
    fn add<'a>(&mut self, node: &'a NodeDef, ops: &dyn Signatures, library: &FunctionLibrary, next: &mut Vec<&'a str>) {
        if library.functions.contains_key(&node.op) {
            next.push(&node.op);
        }
        next.extend(node.attrs.values().flat_map(called).map(|function| &*function.name));
        if let Some(AttrValue::Int(key)) = node.attrs.get(INSTANCE_KEY) {
            self.keys.insert(*key as i32);
            return;
        }
        let signature = ops.signature(&node.op);
        let mut args = signature.iter().flat_map(|signature| signature.inputs.iter().chain(&signature.outputs));
        self.at_run_time |= args.any(|arg| [INSTANCE_KEY, COMMUNICATOR].contains(&&*arg.name));
    }

    fn key(self) -> i64 {
        match (self.keys.is_empty(), self.at_run_time) {
            (true, false) => 0,
            _ => self.keys.iter().fold(START, |hash, &key| combine(key as i64 as u64, hash)) as i64,
        }
    }
}

fn called(value: &AttrValue) -> &[std::sync::Arc<Function>] {
    match value {
        AttrValue::Func(function) => std::slice::from_ref(function),
        AttrValue::List(list) => &list.funcs,
        _ => &[],
    }
}

/// TensorFlow's combination of two hashes.
fn combine(a: u64, b: u64) -> u64 {
    a ^ b.wrapping_add(0x9e37_79b9_7f4a_7800).wrapping_add(a << 10).wrapping_add(a >> 4)
}
