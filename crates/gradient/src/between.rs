//! Finds the nodes on the paths from `xs` to `ys`: gradients pass only these.

use graph::{Graph, Node, NodeId, Output};
use tensor::DType;

/// For each node, whether it depends on one of `xs` through values that can have gradients. Outputs in `stop` pass no
/// gradients.
pub(crate) fn reached(graph: &Graph, xs: &[Output], stop: &[Output]) -> Vec<bool> {
    let root = graph.root();
    let mut reached = vec![false; graph.len()];
    for x in xs {
        mark(&mut reached, x.node().id());
    }
    let first = xs.iter().map(|x| x.node().id()).min().unwrap_or(0);
    for id in first as usize..reached.len() {
        if reached[id] {
            continue;
        }
        let Some(node) = Node::of(&root, id as NodeId) else { continue };
        reached[id] = node.all_inputs().iter().any(|input| {
            reached.get(input.node().id() as usize) == Some(&true) && trainable(input.dtype()) && !stop.contains(input)
        });
    }
    reached
}

/// The reached nodes that `ys` depend on, in reverse order of creation. A node is created after its inputs, so every
/// node comes before its inputs.
pub(crate) fn between(graph: &Graph, ys: &[Output], reached: &[bool], stop: &[Output]) -> Vec<Node> {
    let root = graph.root();
    let mut needed = vec![false; reached.len()];
    for y in ys {
        mark(&mut needed, y.node().id());
    }
    let mut nodes = Vec::new();
    for id in (0..reached.len()).rev() {
        if !needed[id] || !reached[id] {
            continue;
        }
        let Some(node) = Node::of(&root, id as NodeId) else { continue };
        for input in node.all_inputs() {
            if !stop.contains(&input) {
                mark(&mut needed, input.node().id());
            }
        }
        nodes.push(node);
    }
    nodes
}

fn mark(marks: &mut [bool], id: NodeId) {
    if let Some(mark) = marks.get_mut(id as usize) {
        *mark = true;
    }
}

/// Whether values of this type can have gradients.
pub(crate) fn trainable(dtype: DType) -> bool {
    let base = dtype.base();
    matches!(base, DType::F16 | DType::BF16 | DType::F32 | DType::F64 | DType::C64 | DType::C128)
        || matches!(base, DType::RESOURCE | DType::VARIANT)
}
