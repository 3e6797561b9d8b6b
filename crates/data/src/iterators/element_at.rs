//! GetElementAtIndex: one element of a dataset, without those before it.

use super::compute::{Compute, compute};
use super::get_next::element_shapes;
use crate::attrs::{reading, scalar, spec};
use crate::rewrite::rewritten;
use crate::{PendingElement, Pipeline, PollContext, Rewrite, Spec, dataset_of};
use op::{Ctx, Grad, Home, Inputs, Kernel, Op, Outputs, PLAIN, Setup, Value, later};
use status::{Result, out_of_range};
use std::sync::Arc;
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "GetElementAtIndex(dataset: variant, index: int64) -> components: [output_types]; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
    shape: element_shapes,
    grad: Grad::Stop,
    kernel: |setup| reading(setup, kernel),
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), spec(setup)?);
    Ok(later(move |ctx, mut inputs, done| match start(ctx, &home, &mut inputs) {
        Ok((pipeline, element)) => compute(ctx, pipeline, At { element, spec: spec.clone() }, done),
        Err(error) => done(Err(error)),
    }))
}

fn start(ctx: &Ctx<'_>, home: &Home, inputs: &mut Inputs) -> Result<(Arc<Pipeline>, PendingElement)> {
    let dataset = dataset_of(inputs.look(0)?)?;
    let index: i64 = scalar(inputs, 1, "index")?;
    let Ok(position) = usize::try_from(index) else {
        let count = dataset.cardinality().number();
        return Err(out_of_range!("Index out of range [0, {count}):{index}"));
    };
    let pipeline = Pipeline::of(home, ctx.env, &dataset)?;
    let removed = pipeline.options().rewrites.contains(&Rewrite::NoopElimination).then_some(Rewrite::NoopElimination);
    // A map that changes nothing hides how many elements there are.
    let element = rewritten(&dataset, &removed.into_iter().collect()).element_at(&pipeline, position)?;
    Ok((pipeline, element))
}

struct At {
    element: PendingElement,
    spec: Spec,
}

impl Compute for At {
    fn poll(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<Outputs>> {
        let element = ready!((self.element)(ctx))?;
        self.spec.check_element(&element)?;
        Poll::Ready(Ok(element.into_iter().map(Value::Tensor).collect()))
    }
}
