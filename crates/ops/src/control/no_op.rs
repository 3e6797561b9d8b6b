//! An op that only waits for others: NoOp.

use graph::{Node, Scope};
use op::shapes::none;
use op::{Grad, Kernel, Op, Setup, many, outputs};
use status::Result;

pub(crate) const OPS: &[Op] = &[Op { def: "NoOp()", shape: none, grad: Grad::Unknown, kernel: no_op_kernel }];

/// A node without inputs or outputs.
pub fn no_op(scope: &Scope) -> Node {
    scope.op("NoOp").node()
}

/// A node that runs after all of these.
pub fn group<'a>(scope: &Scope, nodes: impl IntoIterator<Item = &'a Node>) -> Node {
    nodes.into_iter().fold(scope.op("NoOp").named("group_deps"), |group, node| group.after(node)).node()
}

fn no_op_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, _| Ok(outputs![])).free())
}
