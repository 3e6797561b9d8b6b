//! Ops of iterators whose elements go to several devices in turn.

use super::anonymous::{Lifetime, anonymous, delete_kernel};
use super::get_next::{cancellable, element_shapes};
use super::handle::{from_string, to_string};
use super::sharded::MultiDeviceIterator;
use crate::attrs::{DATASET, input_dataset, reading, scalar, spec};
use crate::{Element, Spec};
use op::shapes;
use op::{Grad, Home, Inputs, Kernel, Op, Outputs, PLAIN, Setup, Value, handle_of, later, many, outputs};
use ops::data_structures::named::{Unnamed, maker};
use status::{Result, invalid, out_of_range};
use std::sync::Arc;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MultiDeviceIterator() -> handle: resource; devices: list(string) >= 1; shared_name: string; \
              container: string; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "AnonymousMultiDeviceIterator() -> handle: resource, deleter: variant; devices: list(string) >= 1; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| anonymous_kernel(setup, Lifetime::Deleter),
        facts: DATASET,
    },
    Op {
        def: "AnonymousMultiDeviceIteratorV3() -> handle: resource; devices: list(string) >= 1; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| anonymous_kernel(setup, Lifetime::Step),
        facts: PLAIN,
    },
    Op {
        def: "MultiDeviceIteratorInit(dataset: variant, multi_device_iterator: resource, max_buffer_size: int64) -> \
              incarnation_id: int64; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, init_kernel),
        facts: PLAIN,
    },
    Op {
        def: "MultiDeviceIteratorGetNextFromShard(multi_device_iterator: resource, shard_num: int32, \
              incarnation_id: int64) -> components: [output_types]; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: element_shapes,
        grad: Grad::Stop,
        kernel: next_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MultiDeviceIteratorToStringHandle(multi_device_iterator: resource) -> string_handle: string; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| Ok(to_string::<MultiDeviceIterator>(setup)),
        facts: PLAIN,
    },
    Op {
        def: "MultiDeviceIteratorFromStringHandle(string_handle: string) -> multi_device_iterator: resource; \
              output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| from_string(setup, MultiDeviceIterator::spec),
        facts: PLAIN,
    },
    Op {
        def: "DeleteMultiDeviceIterator(multi_device_iterator: resource, iterators: N * resource, \
              deleter: variant); N: int >= 0; stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: delete_kernel,
        facts: PLAIN,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, devices) = (spec(setup)?, devices(setup)?);
    let expected = spec.clone();
    let make = move |_: &str| Ok(MultiDeviceIterator::new(spec.clone(), devices));
    maker(setup, Unnamed::Private, make, move |found: &MultiDeviceIterator| expected.check(found.spec()))
}

fn anonymous_kernel(setup: &Setup<'_>, lifetime: Lifetime) -> Result<Kernel> {
    let (spec, devices) = (spec(setup)?, devices(setup)?);
    anonymous(setup, lifetime, move || MultiDeviceIterator::new(spec.clone(), devices))
}

fn devices(setup: &Setup<'_>) -> Result<usize> {
    match setup.list("devices")?.strings.len() {
        0 => Err(invalid!("Length for attr 'devices' of 0 must be at least minimum 1")),
        count => Ok(count),
    }
}

fn init_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |ctx, mut inputs| {
        let dataset = input_dataset(&mut inputs, 0)?;
        let capacity: i64 = scalar(&mut inputs, 2, "max_buffer_size")?;
        let iterator = home.find::<MultiDeviceIterator>(handle_of(inputs.look(1)?)?)?;
        let incarnation = iterator.begin(&home, ctx.env, dataset, usize::try_from(capacity).unwrap_or(0))?;
        Ok(outputs![Tensor::scalar(incarnation)])
    }))
}

fn next_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), Arc::new(spec(setup)?));
    Ok(later(move |ctx, mut inputs, done| {
        let spec = spec.clone();
        match request(&home, &mut inputs) {
            Err(error) => done(Err(error)),
            Ok((iterator, shard, incarnation)) => cancellable(ctx, done, |done| {
                let answer = Box::new(move |next: Result<_>| done(next.and_then(|next| components(next, &spec))));
                iterator.next(shard, incarnation, answer)
            }),
        }
    }))
}

fn request(home: &Home, inputs: &mut Inputs) -> Result<(Arc<MultiDeviceIterator>, i32, i64)> {
    let (shard, incarnation) = (scalar(inputs, 1, "shard_num")?, scalar(inputs, 2, "incarnation_id")?);
    Ok((home.find(handle_of(inputs.look(0)?)?)?, shard, incarnation))
}

fn components(next: Option<Element>, spec: &Spec) -> Result<Outputs> {
    let element = next.ok_or_else(|| out_of_range!("End of sequence"))?;
    spec.check_element(&element)?;
    Ok(element.into_iter().map(Value::Tensor).collect())
}
