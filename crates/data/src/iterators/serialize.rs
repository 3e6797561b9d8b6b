//! SerializeIterator and DeserializeIterator: the state of an iterator as a tensor.

use super::IteratorResource;
use super::get_next::cancellable;
use crate::StateReader;
use crate::graphs::GraphReader;
use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Setup, handle_of, later, many, outputs};
use status::{Error, Result, invalid};
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SerializeIterator(resource_handle: resource) -> serialized: variant; external_state_policy: int = 0; \
              stateful",
        shape: |_| Ok(vec![PartialShape::of_rank(1)]),
        grad: Grad::Stop,
        kernel: serialize_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeserializeIterator(resource_handle: resource, serialized: variant); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: deserialize_kernel,
        facts: PLAIN,
    },
];

/// The policy that refuses functions with state.
const FAIL: i64 = 2;

fn serialize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, policy) = (Home::of(setup), setup.int("external_state_policy")?);
    Ok(later(move |ctx, inputs, done| {
        let running = inputs.look(0).and_then(|handle| {
            if handle.shape().rank() != 0 {
                return Err(invalid!("resource_handle must be a scalar"));
            }
            let iterator = home.find::<IteratorResource>(handle_of(handle)?)?;
            let running = iterator.running("Save() failed", "saving it")?;
            if policy == FAIL {
                iterator.check_external_state()?;
            }
            Ok(running)
        });
        match running {
            Err(error) => done(Err(error)),
            Ok(running) => cancellable(ctx, done, |done| {
                running.save(Box::new(move |state| done(state.map(|state| outputs![state]))))
            }),
        }
    }))
}

fn deserialize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, reader) = (Home::of(setup), GraphReader::of(setup));
    Ok(many(move |ctx, inputs| {
        let iterator = home.find::<IteratorResource>(handle_of(inputs.look(0)?)?)?;
        let mut state = StateReader::new(inputs.look(1)?)?;
        state.read_datasets(ctx, &reader)?;
        iterator.restore(&home, ctx.env, state).map_err(|error| Error {
            message: format!(
                "Failed to restore dataset iterator from checkpoint: {}. Make sure the dataset definition has not \
                 changed between the process that saved the checkpoint and the process that is restoring it.",
                error.message
            ),
            ..error
        })?;
        Ok(outputs![])
    }))
}
