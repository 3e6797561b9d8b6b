//! Barriers: keys wait until all their components have arrived.

mod state;

use self::state::Barrier;
use crate::data_structures::arithmetic::row;
use crate::data_structures::named::{Unnamed, find, listed, maker, signature_mismatch};
use crate::data_structures::queue::spec::{known_shapes, shape_list};
use crate::data_structures::queue::two_strings;
use crate::data_structures::waiting::{Answer, answering};
use op::shapes::{none, scalar, unknown};
use op::{Ctx, Home, Inputs, Kernel, Op, Setup, later, unary};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "Barrier() -> handle: Ref(string); component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; \
     capacity: int = -1; container: string = \"\"; shared_name: string = \"\"; stateful", two_strings, barrier_kernel;
    "BarrierInsertMany(handle: Ref(string), keys: string, values: T); T: type; component_index: int",
        none, insert_many_kernel;
    "BarrierTakeMany(handle: Ref(string), num_elements: int32) -> indices: int64, keys: string, \
     values: [component_types]; component_types: list(type) >= 1; allow_small_batch: bool = false; \
     wait_for_incomplete: bool = false; timeout_ms: int = -1", unknown, take_many_kernel;
    "BarrierClose(handle: Ref(string)); cancel_pending_enqueues: bool = false", none, close_kernel;
    "BarrierReadySize(handle: Ref(string)) -> size: int32", scalar, ready_size_kernel;
    "BarrierIncompleteSize(handle: Ref(string)) -> size: int32", scalar, incomplete_size_kernel;
};

fn barrier_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (types, shapes) = (setup.types("component_types")?, known_shapes(&setup.list("shapes")?.shapes)?);
    if types.len() != shapes.len() {
        return Err(invalid!("All of the component shapes must be specified"));
    }
    if setup.int("capacity")? != -1 {
        return Err(invalid!(
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited \
             capacity."
        ));
    }
    let wanted = (types.clone(), shapes.clone());
    let make = move |name: &str| Barrier::new(name, types.clone(), shapes.clone());
    maker(setup, Unnamed::Private, make, move |barrier: &Barrier| {
        if barrier.types != wanted.0 {
            return Err(invalid!(
                "Shared barrier '{}' has component types {} but requested component types were {}",
                barrier.name,
                listed(&barrier.types),
                listed(&wanted.0)
            ));
        }
        match barrier.shapes == wanted.1 {
            true => Ok(()),
            false => Err(invalid!(
                "Shared barrier '{}' has component shapes {} but requested component shapes were {}",
                barrier.name,
                shape_list(&barrier.shapes),
                shape_list(&wanted.1)
            )),
        }
    })
}

/// A kernel that does something with the barrier of its first input: `prepare` checks, `run` answers.
fn with_barrier<P: 'static>(
    setup: &Setup<'_>,
    prepare: impl Fn(&Barrier, &mut Inputs) -> Result<P> + Send + Sync + 'static,
    run: impl Fn(&Ctx<'_>, &Barrier, P, Answer) + Send + Sync + 'static,
) -> Result<Kernel> {
    let home = Home::of(setup);
    let prepare = move |inputs: &mut Inputs| -> Result<(Arc<Barrier>, P)> {
        let barrier = find::<Barrier>(&home, &inputs.tensor(0)?)?;
        let prepared = prepare(&barrier, inputs)?;
        Ok((barrier, prepared))
    };
    Ok(later(move |ctx, mut inputs, done| match prepare(&mut inputs) {
        Ok((barrier, prepared)) => run(ctx, &barrier, prepared, answering(done)),
        Err(error) => done(Err(error)),
    }))
}

fn insert_many_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (component, types) = (setup.int("component_index")?, setup.input_types().to_vec());
    let prepare = move |barrier: &Barrier, inputs: &mut Inputs| {
        let count = barrier.types.len();
        let Some((index, &dtype)) = usize::try_from(component).ok().and_then(|i| barrier.types.get(i).map(|t| (i, t)))
        else {
            return Err(invalid!("The component ID is out of range {component} > num_components (= {count})"));
        };
        if types[2] != dtype {
            return Err(signature_mismatch(&types, &[], &[types[0], DType::STRING, dtype], &[]));
        }
        let (keys, values) = (inputs.tensor(1)?, inputs.tensor(2)?);
        if keys.elements() > 0 && values.elements() == 0 {
            return Err(invalid!(
                "Tensors with no elements are not supported {}: received shape {}",
                barrier.name,
                values.shape()
            ));
        }
        if keys.elements() > 0 && values.shape().first() != Some(&keys.elements()) {
            return Err(invalid!("{} keys come with values of shape {}", keys.elements(), values.shape()));
        }
        let rows: Result<Vec<Tensor>> = (0..keys.elements()).map(|i| row(&values, i)).collect();
        Ok((index, keys, rows?))
    };
    with_barrier(setup, prepare, |ctx, barrier, (component, keys, values), answer| match keys.strings() {
        Ok(keys) => barrier.insert_many(ctx.env, component, keys, values, answer),
        Err(error) => answer(Err(error)),
    })
}

fn take_many_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let small_batch = setup.bool("allow_small_batch")?;
    if setup.int("timeout_ms")? != -1 {
        return Err(invalid!("Timeout not supported yet."));
    }
    let (input_types, output_types) = (setup.input_types().to_vec(), setup.output_types().to_vec());
    let prepare = move |barrier: &Barrier, inputs: &mut Inputs| {
        let count = inputs.tensor(1)?;
        if count.shape().rank() != 0 {
            return Err(invalid!("num_elements must be a scalar."));
        }
        let expected = [&[DType::I64, DType::STRING], &barrier.types[..]].concat();
        if output_types != expected {
            return Err(signature_mismatch(&input_types, &output_types, &input_types, &expected));
        }
        let count = count.to_scalar::<i32>()?;
        usize::try_from(count).map_err(|_| invalid!("num_elements must not be negative, but is {count}"))
    };
    with_barrier(setup, prepare, move |ctx, barrier, count, answer| {
        barrier.take_many(ctx.env, count, small_batch, answer);
    })
}

fn close_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let cancel_pending = setup.bool("cancel_pending_enqueues")?;
    with_barrier(setup, |_, _| Ok(()), move |ctx, barrier, (), answer| barrier.close(ctx.env, cancel_pending, answer))
}

fn ready_size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(unary(move |_, handle| Ok(Tensor::scalar(find::<Barrier>(&home, &handle)?.ready_size() as i32))).free())
}

fn incomplete_size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(unary(move |_, handle| Ok(Tensor::scalar(find::<Barrier>(&home, &handle)?.incomplete_size() as i32))).free())
}
