//! How handles own their resources: MakeWeakResourceHandle, IsResourceHandleRefCounting.

use graph::Forwards;
use op::shapes::scalar;
use op::{Grad, Op, PLAIN, handle_of, unary};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MakeWeakResourceHandle(handle: resource) -> dup: resource; stateful",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: |_| Ok(unary(|_, handle| handle_of(&handle).cloned().and_then(alone)).free()),
        facts: PLAIN.forwards(Forwards::First),
    },
    Op {
        def: "IsResourceHandleRefCounting(handle: resource) -> result: bool; stateful",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: |_| Ok(unary(|_, handle| Ok(Tensor::scalar(handle_of(&handle)?.container == op::ANONYMOUS))).free()),
        facts: PLAIN,
    },
];

fn alone(handle: tensor::ResourceHandle) -> status::Result<Tensor> {
    Tensor::from_handles(tensor::Shape::scalar(), vec![handle])
}
