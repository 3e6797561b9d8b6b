//! An op that only waits for others: NoOp.

use graph::{Node, Scope};
use op::shapes::none;
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::Result;
use std::collections::BTreeMap;

pub(crate) const OPS: &[Op] =
    &[Op { def: "NoOp()", shape: none, grad: Grad::Unknown, kernel: no_op_kernel, facts: PLAIN }];

/// A node without inputs or outputs.
pub fn no_op(scope: &Scope) -> Node {
    scope.op("NoOp").node()
}

/// A node that runs after all of these, called `group_deps`.
pub fn group<'a>(scope: &Scope, nodes: impl IntoIterator<Item = &'a Node>) -> Node {
    group_in(&scope.named("group_deps"), nodes)
}

/// A node that runs after all of these and has the name of `scope`.
///
/// If the nodes are on several devices, each device gets a `NoOp` of its own and the result waits for those. So a
/// task reports the end of its part once, not once for each node.
pub fn group_in<'a>(scope: &Scope, nodes: impl IntoIterator<Item = &'a Node>) -> Node {
    let mut by_device: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
    for node in nodes {
        by_device.entry(node.device()).or_default().push(node);
    }
    if by_device.len() > 1 {
        let parts = by_device.into_iter().map(|(device, nodes)| scope.on(&device).after(nodes).op("NoOp").node());
        return scope.after(&parts.collect::<Vec<Node>>()).op("NoOp").named_as_scope().node();
    }
    let (device, nodes) = by_device.into_iter().next().unwrap_or_default();
    scope.on(&device).after(nodes).op("NoOp").named_as_scope().node()
}

fn no_op_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, _| Ok(outputs![])).free())
}
