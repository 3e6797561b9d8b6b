//! IteratorV2 and Iterator: create an iterator, or find the one of their name. Handles of iterators as strings.

use super::IteratorResource;
use crate::Spec;
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
        kernel: |setup| Ok(to_string::<IteratorResource>(setup)),
        facts: PLAIN,
    },
    Op {
        def: "IteratorFromStringHandle(string_handle: string) -> resource_handle: resource; \
              output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| from_string(setup, IteratorResource::spec),
        facts: PLAIN,
    },
    Op {
        def: "IteratorFromStringHandleV2(string_handle: string) -> resource_handle: resource; \
              output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| from_string(setup, IteratorResource::spec),
        facts: PLAIN,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    let expected = spec.clone();
    let make = move |_: &str| Ok(IteratorResource::new(spec.clone()));
    maker(setup, Unnamed::Private, make, move |found: &IteratorResource| expected.check(found.spec()))
}

/// The kernel of a node that returns the handle of a resource as a string.
pub(super) fn to_string<T: Resource>(setup: &Setup<'_>) -> Kernel {
    let home = Home::of(setup);
    unary(move |_, handle| {
        if handle.shape().rank() != 0 {
            return Err(invalid!("resource_handle must be a scalar"));
        }
        let handle = handle_of(&handle)?;
        home.find::<T>(handle)?;
        Ok(Tensor::string(tensor::wire::handle_to_bytes(handle)))
    })
}

/// The kernel of a node that finds a resource by the string that `to_string` returned.
pub(super) fn from_string<T: Resource>(setup: &Setup<'_>, spec_of: fn(&T) -> &Spec) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), spec(setup)?);
    if !spec.types.is_empty() && !spec.shapes.is_empty() && spec.types.len() != spec.shapes.len() {
        return Err(invalid!("If both 'output_types' and 'output_shapes' are set, they must have the same length."));
    }
    Ok(unary(move |_, text| {
        if text.shape().rank() != 0 {
            return Err(invalid!("string_handle must be a scalar"));
        }
        let handle = parsed::<T>(&text.to_string_scalar()?)?;
        if handle.device != home.device() {
            return Err(invalid!(
                "Attempted create an iterator on device \"{}\" from handle defined on device \"{}\"",
                home.device(),
                handle.device
            ));
        }
        let resource = home.find::<T>(&handle)?;
        let found = spec_of(&resource);
        if !spec.types.is_empty() {
            spec.check_types(&found.types)?;
        }
        if !spec.shapes.is_empty() && !spec.types.is_empty() {
            spec.check(found)?;
        }
        Tensor::from_handles(Shape::scalar(), vec![handle])
    }))
}

fn parsed<T: Resource>(text: &Bytes) -> Result<tensor::ResourceHandle> {
    tensor::wire::handle_from_bytes(text)
        .ok()
        .filter(|handle| !handle.device.is_empty() || handle.type_name == T::TYPE_NAME)
        .ok_or_else(|| invalid!("Could not parse string_handle as a valid ResourceHandle"))
}
