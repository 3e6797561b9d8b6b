//! Iterators that only their handle names: AnonymousIterator, AnonymousIteratorV2, AnonymousIteratorV3, and
//! DeleteIterator.

use super::IteratorResource;
use crate::attrs::{DATASET, spec};
use op::shapes;
use op::{ANONYMOUS, Ctx, Grad, Home, Kernel, Op, Outputs, PLAIN, Resource, Setup, handle_of, many, outputs};
use status::{Result, unimplemented_op};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use tensor::{Shape, Tensor, Variant, VariantData, VariantObject};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AnonymousIterator() -> handle: resource; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Lifetime::Device),
        facts: PLAIN,
    },
    Op {
        def: "AnonymousIteratorV2() -> handle: resource, deleter: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Lifetime::Deleter),
        facts: DATASET,
    },
    Op {
        def: "AnonymousIteratorV3() -> handle: resource; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, Lifetime::Step),
        facts: PLAIN,
    },
    Op {
        def: "DeleteIterator(handle: resource, deleter: variant); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: delete_kernel,
        facts: PLAIN,
    },
];

/// When an anonymous resource is removed, if nothing deletes it before.
#[derive(Clone, Copy)]
pub(super) enum Lifetime {
    /// With its container.
    Device,
    /// At the end of the step and when its deleter, the second output, is dropped.
    Deleter,
    /// At the end of the step: handles do not keep resources alive.
    Step,
}

fn kernel(setup: &Setup<'_>, lifetime: Lifetime) -> Result<Kernel> {
    let spec = spec(setup)?;
    anonymous(setup, lifetime, move || IteratorResource::new(spec.clone()))
}

/// The kernel of a node that makes a resource in each run.
pub(super) fn anonymous<T: Resource>(
    setup: &Setup<'_>,
    lifetime: Lifetime,
    make: impl Fn() -> T + Send + Sync + 'static,
) -> Result<Kernel> {
    let (home, node) = (Home::of(setup), setup.def().op.clone());
    Ok(many(move |ctx, _| {
        let name = home.resources().unique_name(&node);
        home.resources().create(ANONYMOUS, &name, Arc::new(make()))?;
        let handle = home.handle::<T>(ANONYMOUS, &name, Vec::new());
        let handle = Tensor::from_handles(Shape::scalar(), vec![handle])?;
        let owner = || Owner { home: home.clone(), name, resource: PhantomData::<fn() -> T> };
        passed_on(ctx, lifetime, handle, owner)
    }))
}

fn passed_on<T: Resource>(
    ctx: &Ctx<'_>,
    lifetime: Lifetime,
    handle: Tensor,
    owner: impl FnOnce() -> Owner<T>,
) -> Result<Outputs> {
    if let Lifetime::Device = lifetime {
        return Ok(outputs![handle]);
    }
    let owner = Arc::new(owner());
    ctx.step_resources().create(ANONYMOUS, &owner.name, owner.clone())?;
    match lifetime {
        Lifetime::Deleter => {
            let deleter = Variant::Object(owner);
            Ok(outputs![handle, Tensor::from_variants(Shape::scalar(), vec![deleter])?])
        }
        _ => Ok(outputs![handle]),
    }
}

/// Removes a resource when it is dropped.
struct Owner<T: Resource> {
    home: Home,
    name: String,
    resource: PhantomData<fn() -> T>,
}

impl<T: Resource> Drop for Owner<T> {
    fn drop(&mut self) {
        self.home.resources().remove::<T>(ANONYMOUS, &self.name);
    }
}

impl<T: Resource> VariantObject for Owner<T> {
    fn encode(&self) -> Result<VariantData> {
        Err(unimplemented_op!("The deleter of a resource cannot be sent to another task or fetched"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<T: Resource> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceDeleter({})", self.name)
    }
}

/// The kernel of a node that removes the resource behind its first input.
pub(super) fn delete_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, inputs| {
        home.destroy(handle_of(inputs.look(0)?)?)?;
        Ok(outputs![])
    }))
}
