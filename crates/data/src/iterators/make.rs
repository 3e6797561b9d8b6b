//! MakeIterator: initializes an iterator with a dataset.

use super::IteratorResource;
use crate::attrs::reading;
use crate::dataset_of;
use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Setup, handle_of, many, outputs};
use status::Result;

pub(crate) const OPS: &[Op] = &[Op {
    def: "MakeIterator(dataset: variant, iterator: resource); stateful",
    shape: shapes::none,
    grad: Grad::Stop,
    kernel: |setup| reading(setup, kernel),
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |ctx, inputs| {
        let dataset = inputs.look(0)?;
        dataset_of(dataset)?; // its error comes first
        let iterator = home.find::<IteratorResource>(handle_of(inputs.look(1)?)?)?;
        iterator.begin(&home, ctx.env, dataset)?;
        Ok(outputs![])
    }))
}
