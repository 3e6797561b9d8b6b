//! OneShotIterator: an iterator that initializes itself with the dataset that a function returns.

use super::IteratorResource;
use crate::attrs::spec;
use op::shapes;
use op::{Ctx, Done, Grad, Home, Inputs, Kernel, Op, Outputs, PLAIN, Setup, Value, later, outputs};
use parking_lot::Mutex;
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "OneShotIterator() -> handle: resource; dataset_factory: func; output_types: list(type) >= 1; \
          output_shapes: list(shape) >= 1; container: string = \"\"; shared_name: string = \"\"; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// The iterator of a node. Its first run initializes it; runs that come meanwhile wait for that.
struct OneShot {
    home: Home,
    container: String,
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    New,
    Initializing(Vec<Done>),
    Ended(Result<()>),
}

impl Drop for OneShot {
    fn drop(&mut self) {
        self.home.resources().remove::<IteratorResource>(&self.container, &self.name);
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if !setup.string("shared_name")?.is_empty() {
        return Err(invalid!("OneShotIteratorOp does not currently support the 'shared_name' attr."));
    }
    let (home, spec) = (Home::of(setup), spec(setup)?);
    let factory = setup.function("dataset_factory")?;
    let container = setup.resources().container(&setup.string("container")?).to_string();
    let name = setup.resources().unique_name(setup.name());
    let one_shot = Arc::new(OneShot { home, container, name, state: Mutex::default() });
    Ok(later(move |ctx, _, done| {
        let mut state = one_shot.state.lock();
        match &mut *state {
            State::Ended(result) => {
                let result = result.clone();
                drop(state);
                done(result.and_then(|()| one_shot.handle()));
            }
            State::Initializing(waiting) => waiting.push(done),
            State::New => {
                *state = State::Initializing(vec![done]);
                drop(state);
                let (shared, env, resource) = (one_shot.clone(), ctx.env.clone(), IteratorResource::new(spec.clone()));
                factory.call(
                    ctx,
                    Inputs::default(),
                    Box::new(move |made| {
                        let ctx = Ctx { env: &env, frame: 0, iteration: 0 };
                        shared.end(made.and_then(|outputs| shared.initialize(&ctx, resource, outputs)));
                    }),
                );
            }
        }
    }))
}

impl OneShot {
    fn initialize(&self, ctx: &Ctx<'_>, resource: IteratorResource, outputs: Outputs) -> Result<()> {
        let wrong = || invalid!("The `dataset_factory` function must return a single scalar of dtype DT_VARIANT.");
        let mut outputs = outputs.into_iter();
        let (Some(Value::Tensor(dataset)), None) = (outputs.next(), outputs.next()) else { return Err(wrong()) };
        if dataset.variants().is_err() || dataset.shape().rank() != 0 {
            return Err(wrong());
        }
        resource.begin(&self.home, ctx.env, &dataset)?;
        self.home.resources().create(&self.container, &self.name, Arc::new(resource))
    }

    fn end(&self, result: Result<()>) {
        let ended = State::Ended(result.clone());
        let State::Initializing(waiting) = std::mem::replace(&mut *self.state.lock(), ended) else { return };
        for done in waiting {
            done(result.clone().and_then(|()| self.handle()));
        }
    }

    fn handle(&self) -> Result<Outputs> {
        let handle = self.home.handle::<IteratorResource>(&self.container, &self.name, Vec::new());
        Ok(outputs![Tensor::from_handles(Shape::scalar(), vec![handle])?])
    }
}
