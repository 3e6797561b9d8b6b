//! AnonymousMemoryCache, DeleteMemoryCache and DummyMemoryCache: the handles of caches that datasets share.

use super::memory::Contents;
use op::shapes;
use op::{ANONYMOUS, Grad, Home, Kernel, Op, PLAIN, Resource, Setup, handle_of, many, outputs, source};
use status::{Result, internal, unimplemented_op};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tensor::{ResourceHandle, Shape, Tensor, Variant, VariantData, VariantObject};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AnonymousMemoryCache() -> handle: resource, deleter: variant; stateful",
        shape: |_| Ok(vec![tensor::PartialShape::scalar(), tensor::PartialShape::scalar()]),
        grad: Grad::Stop,
        kernel: anonymous_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DeleteMemoryCache(handle: resource, deleter: variant); stateful",
        shape: shapes::none,
        grad: Grad::Stop,
        kernel: delete_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DummyMemoryCache() -> handle: resource; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: dummy_kernel,
        facts: PLAIN,
    },
];

fn anonymous_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, _| {
        let name = home.resources().unique_name("MemoryCache");
        home.resources().create(ANONYMOUS, &name, Arc::<Contents>::default())?;
        let handle = home.handle::<Contents>(ANONYMOUS, &name, Vec::new());
        let deleter = Deleter { home: home.clone(), name };
        Ok(outputs![
            Tensor::from_handles(Shape::scalar(), vec![handle])?,
            Tensor::from_variants(Shape::scalar(), vec![Variant::Object(Arc::new(deleter))])?,
        ])
    }))
}

/// TensorFlow refuses to delete what a deleter owns; only a cache that is gone already is accepted.
fn delete_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, inputs| {
        let handle = handle_of(inputs.look(0)?)?;
        match home.resources().get::<Contents>(&handle.container, &handle.name) {
            None => Ok(outputs![]),
            Some(_) => Err(internal!(
                "Cannot delete an unowned Resource {}/{}/<unknown> from ResourceMgr. This indicates ref-counting \
                 ResourceHandle is exposed to weak ResourceHandle code paths.",
                handle.container,
                handle.name
            )),
        }
    }))
}

/// A handle that refers to no cache: datasets make their own.
fn dummy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(source(move |_| {
        let dummy = home.handle::<Dummy>("", "dummy_resource", Vec::new());
        Tensor::from_handles(Shape::scalar(), vec![ResourceHandle { container: String::new(), ..dummy }])
    }))
}

/// The type of dummy handles.
struct Dummy;

impl Resource for Dummy {
    const TYPE_NAME: &'static str = "N10tensorflow4data11MemoryCacheE";
}

/// Removes a cache when the last copy of its deleter is dropped.
struct Deleter {
    home: Home,
    name: String,
}

impl Drop for Deleter {
    fn drop(&mut self) {
        self.home.resources().remove::<Contents>(ANONYMOUS, &self.name);
    }
}

impl fmt::Debug for Deleter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceDeleter({})", self.name)
    }
}

impl VariantObject for Deleter {
    fn encode(&self) -> Result<VariantData> {
        Err(unimplemented_op!("The deleter of a memory cache cannot be sent to another task or fetched"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
