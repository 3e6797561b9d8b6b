//! MakeIterator: initializes an iterator with a dataset.

use super::IteratorResource;
use crate::attrs::input_dataset;
use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Setup, handle_of, many, outputs};
use status::Result;

pub(crate) const OPS: &[Op] = &[Op {
    def: "MakeIterator(dataset: variant, iterator: resource); stateful",
    shape: shapes::none,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |ctx, mut inputs| {
        let dataset = input_dataset(&mut inputs, 0)?;
        let iterator = home.find::<IteratorResource>(handle_of(inputs.look(1)?)?)?;
        iterator.begin(&home, ctx.env, dataset)?;
        Ok(outputs![])
    }))
}
