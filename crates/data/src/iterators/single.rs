//! DatasetToSingleElement: the only element of a dataset.

use super::compute::{Compute, compute};
use super::get_next::element_shapes;
use crate::attrs::spec;
use crate::{Input, Pipeline, Place, PollContext, Spec, dataset_of};
use op::{Grad, Home, Kernel, Op, Outputs, PLAIN, Setup, Value, later};
use status::{Result, invalid};
use std::task::{Poll, ready};

pub(crate) const OPS: &[Op] = &[Op {
    def: "DatasetToSingleElement(dataset: variant) -> components: [output_types]; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
    shape: element_shapes,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), spec(setup)?);
    Ok(later(move |ctx, inputs, done| {
        let started = inputs.look(0).and_then(dataset_of).and_then(|dataset| {
            let pipeline = Pipeline::of(&home, ctx.env, &dataset)?;
            let place = Place::root(&pipeline, "SingleElementIterator", &dataset);
            let iterator = place.begin(&dataset)?;
            Ok((pipeline, Single { iterator, spec: spec.clone(), found: None }))
        });
        match started {
            Ok((pipeline, single)) => compute(ctx, pipeline, single, done),
            Err(error) => done(Err(error)),
        }
    }))
}

struct Single {
    iterator: Input,
    spec: Spec,
    /// The first element.
    found: Option<Outputs>,
}

impl Compute for Single {
    fn poll(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<Outputs>> {
        if self.found.is_none() {
            let Some(element) = ready!(self.iterator.poll_next(ctx))? else {
                return Poll::Ready(Err(invalid!("Dataset was empty.")));
            };
            self.spec.check_element(&element)?;
            self.found = Some(element.into_iter().map(Value::Tensor).collect());
        }
        if ready!(self.iterator.poll_next(ctx))?.is_some() {
            return Poll::Ready(Err(invalid!("Dataset had more than one element.")));
        }
        Poll::Ready(Ok(self.found.take().unwrap_or_default()))
    }
}
