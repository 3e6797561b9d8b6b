//! Tensors that remain on their device between steps, identified by a handle.

use crate::dispatch::undeclared;
use graph::ShapeQuery;
use op::shapes::{none, scalar, unknown};
use op::{Grad, Home, Kernel, Op, PLAIN, Resource, Setup, many, outputs, unary};
use status::{Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "GetSessionHandle(value: T) -> handle: string; T: type; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: handle_kernel,
        facts: PLAIN,
    },
    Op {
        def: "GetSessionHandleV2(value: T) -> handle: resource; T: type; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: handle_kernel,
        facts: PLAIN,
    },
    Op {
        def: "GetSessionTensor(handle: string) -> value: dtype; dtype: type; stateful",
        shape: tensor_shape,
        grad: Grad::Stop,
        kernel: tensor_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeleteSessionTensor(handle: string); stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: delete_kernel,
        facts: PLAIN,
    },
];

/// A tensor that remains on the device.
struct SessionTensor(Tensor);

impl Resource for SessionTensor {
    const TYPE_NAME: &'static str = "TensorHandle";
}

/// The container of all such tensors.
const CONTAINER: &str = "TensorHandle";

fn tensor_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs[0].merge(&PartialShape::scalar())?;
    unknown(query)
}

/// Keeps a tensor; the handle is the node's name, a number, and the device, as clients take it apart.
fn handle_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (home, node) = (Home::of(setup), setup.name().to_string());
    let as_resource = setup.output_types()[0] == tensor::DType::RESOURCE;
    Ok(unary(move |_, value| {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{node};{number};{}", home.device());
        home.resources().create(CONTAINER, &name, Arc::new(SessionTensor(value)))?;
        match as_resource {
            true => {
                let handle = home.handle::<SessionTensor>(CONTAINER, &name, Vec::new());
                Tensor::from_handles(Shape::scalar(), vec![handle])
            }
            false => Ok(Tensor::string(name)),
        }
    })
    .free())
}

fn tensor_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, dtype, node) = (Home::of(setup), setup.dtype("dtype")?, setup.name().to_string());
    Ok(unary(move |_, handle| {
        if handle.shape().rank() != 0 {
            return Err(invalid!("handle must be scalar"));
        }
        let name = String::from_utf8_lossy(&handle.to_string_scalar()?).into_owned();
        let Some(kept) = home.resources().get::<SessionTensor>(CONTAINER, &name) else {
            return Err(invalid!("The tensor with handle '{name}' is not in the session store."));
        };
        match kept.0.dtype() == dtype {
            true => Ok(kept.0.clone()),
            false => Err(undeclared(&node, kept.0.dtype(), dtype)),
        }
    })
    .free())
}

fn delete_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        let handle = inputs.tensor(0)?;
        if handle.shape().rank() != 0 {
            return Err(invalid!("`handle` must be scalar"));
        }
        let name = String::from_utf8_lossy(&handle.to_string_scalar()?).into_owned();
        match home.resources().remove::<SessionTensor>(CONTAINER, &name) {
            true => Ok(outputs![]),
            false => Err(invalid!("Failed to delete a tensor with handle '{name}' in the session store.")),
        }
    }))
}
