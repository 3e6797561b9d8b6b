//! IteratorGetDevice and IteratorGetModelProto: what is known about an iterator.

use super::IteratorResource;
use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Setup, handle_of, unary};
use status::{Result, not_found};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "IteratorGetDevice(resource: resource) -> device: string; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: device_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalIteratorGetDevice(resource: resource) -> device: string; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: device_kernel,
        facts: PLAIN,
    },
    Op {
        def: "IteratorGetModelProto(iterator: resource) -> model_proto: string; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: model_kernel,
        facts: PLAIN,
    },
];

/// The node is on the device of its input.
fn device_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let device = setup.device().to_string();
    Ok(unary(move |_, _| Ok(Tensor::string(device.clone()))))
}

/// The model has no nodes: parallelism is chosen without one.
fn model_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(unary(move |_, handle| {
        let iterator = home.find::<IteratorResource>(handle_of(&handle)?)?;
        let running = iterator.running("GetModelProto() failed", "getting the next element")?;
        if crate::Options::of(running.dataset())?.autotune {
            return Ok(Tensor::string(""));
        }
        Err(not_found!(
            "Cannot find this iterator's analytical model. Did you disable autotune for the dataset used to create \
             this iterator? See more information at \
             https://www.tensorflow.org/api_docs/python/tf/data/experimental/AutotuneOptions ."
        ))
    }))
}
