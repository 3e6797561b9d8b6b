//! GraphDefVersion: the version of the graph that holds the node.

use op::shapes::scalar;
use op::{Grad, Kernel, Op, PLAIN, Setup, source};
use status::Result;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "GraphDefVersion() -> version: int32; stateful",
    shape: scalar,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let version = setup.producer();
    Ok(source(move |_| Ok(Tensor::scalar(version))).free())
}
