//! IteratorV2 and Iterator: create an iterator, or find the one of their name. Handles of iterators as strings.

use super::IteratorResource;
use crate::attrs::spec;
use op::shapes;
use op::{Grad, Home, Kernel, Op, PLAIN, Resource, Setup, handle_of, unary};
use ops::data_structures::named::{Unnamed, maker};
use status::{Result, invalid};
use tensor::{Bytes, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Iterator() -> handle: resource; shared_name: string; container: string; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "IteratorV2() -> handle: resource; shared_name: string; container: string; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "IteratorToStringHandle(resource_handle: resource) -> string_handle: string; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: to_string_kernel,
        facts: PLAIN,
    },
    Op {
        def: "IteratorFromStringHandle(string_handle: string) -> resource_handle: resource; \
              output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: from_string_kernel,
        facts: PLAIN,
    },
    Op {
        def: "IteratorFromStringHandleV2(string_handle: string) -> resource_handle: resource; \
              output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: from_string_kernel,
        facts: PLAIN,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    let expected = spec.clone();
    let make = move |_: &str| Ok(IteratorResource::new(spec.clone()));
    maker(setup, Unnamed::Private, make, move |found: &IteratorResource| expected.check(found.spec()))
}

fn to_string_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(unary(move |_, handle| {
        if handle.shape().rank() != 0 {
            return Err(invalid!("resource_handle must be a scalar"));
        }
        let handle = handle_of(&handle)?;
        home.find::<IteratorResource>(handle)?;
        Ok(Tensor::string(tensor::wire::handle_to_bytes(handle)))
    }))
}

fn from_string_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), spec(setup)?);
    if !spec.types.is_empty() && !spec.shapes.is_empty() && spec.types.len() != spec.shapes.len() {
        return Err(invalid!("If both 'output_types' and 'output_shapes' are set, they must have the same length."));
    }
    Ok(unary(move |_, text| {
        if text.shape().rank() != 0 {
            return Err(invalid!("string_handle must be a scalar"));
        }
        let handle = parsed(&text.to_string_scalar()?)?;
        if handle.device != home.device() {
            return Err(invalid!(
                "Attempted create an iterator on device \"{}\" from handle defined on device \"{}\"",
                home.device(),
                handle.device
            ));
        }
        let found = home.find::<IteratorResource>(&handle)?;
        if !spec.types.is_empty() {
            spec.check_types(&found.spec().types)?;
        }
        if !spec.shapes.is_empty() && !spec.types.is_empty() {
            spec.check(found.spec())?;
        }
        Tensor::from_handles(Shape::scalar(), vec![handle])
    }))
}

fn parsed(text: &Bytes) -> Result<tensor::ResourceHandle> {
    tensor::wire::handle_from_bytes(text)
        .ok()
        .filter(|handle| !handle.device.is_empty() || handle.type_name == IteratorResource::TYPE_NAME)
        .ok_or_else(|| invalid!("Could not parse string_handle as a valid ResourceHandle"))
}
