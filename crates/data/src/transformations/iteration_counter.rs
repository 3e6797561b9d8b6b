//! DummyIterationCounter: the handle of a counter that nothing counts with.

use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Resource, Setup, source};
use status::Result;
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "DummyIterationCounter() -> handle: resource; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// The type that the handle names. No counter is created.
struct IterationCounter;

impl Resource for IterationCounter {
    const TYPE_NAME: &'static str = "N10tensorflow4data16IterationCounterE";
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let handle = Home::of(setup).handle::<IterationCounter>("", "dummy_resource", Vec::new());
    Ok(source(move |_| Tensor::from_handles(Shape::scalar(), vec![handle.clone()])))
}
