//! Resources that outlive steps: one node creates them, others find them by the handle it returns.

use op::{Home, Inputs, Kernel, Resource, Setup, Value, Variable, handle_of, many};
use parking_lot::Mutex;
use status::{Result, invalid};
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use tensor::{Bytes, DType, Shape, Tensor};

/// The place of the resource that a node creates. A resource without a shared name is removed with its node.
struct Place<T: Resource> {
    home: Home,
    container: String,
    name: String,
    private: bool,
    resource: PhantomData<fn() -> T>,
}

impl<T: Resource> Drop for Place<T> {
    fn drop(&mut self) {
        if self.private {
            self.home.resources().remove::<T>(&self.container, &self.name);
        }
    }
}

/// The name of a resource whose node has no shared name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Unnamed {
    /// A unique name that no other node can use.
    Private,
    /// The name of its node.
    ByNode,
}

/// The kernel of a node that makes a resource, or finds the one of its name, and passes on its handle. What was found
/// must pass `verify`.
pub fn maker<T: Resource>(
    setup: &Setup<'_>,
    unnamed: Unnamed,
    make: impl Fn(&str) -> Result<T> + Send + Sync + 'static,
    verify: impl Fn(&T) -> Result<()> + Send + Sync + 'static,
) -> Result<Kernel> {
    maker_of(setup, unnamed, move |name, _| make(name), verify)
}

/// As `maker`, for a resource that also depends on the inputs of the node.
pub fn maker_of<T: Resource>(
    setup: &Setup<'_>,
    unnamed: Unnamed,
    make: impl Fn(&str, &mut Inputs) -> Result<T> + Send + Sync + 'static,
    verify: impl Fn(&T) -> Result<()> + Send + Sync + 'static,
) -> Result<Kernel> {
    let place = place_of::<T>(setup, unnamed)?;
    let value = announcement(setup.output_types()[0], &place)?;
    let last: Mutex<Weak<T>> = Mutex::default();
    Ok(many(move |_, mut inputs| {
        let mut last = last.lock();
        if last.strong_count() == 0 {
            let resources = place.home.resources();
            let resource = resources.get_or_create(&place.container, &place.name, || make(&place.name, &mut inputs))?;
            verify(&resource)?;
            *last = Arc::downgrade(&resource);
        }
        Ok(std::iter::once(value.clone()).collect())
    })
    .free())
}

fn place_of<T: Resource>(setup: &Setup<'_>, unnamed: Unnamed) -> Result<Place<T>> {
    let (container, name, private) = place_name(setup, unnamed)?;
    Ok(Place { home: Home::of(setup), container, name, private, resource: PhantomData })
}

/// The container and name in a node's attributes, and whether the name is private to the node.
pub fn place_name(setup: &Setup<'_>, unnamed: Unnamed) -> Result<(String, String, bool)> {
    let (container, shared_name) = (setup.string("container")?, setup.string("shared_name")?);
    if !container.is_empty() && !is_container_name(&container) {
        return Err(invalid!("container contains invalid characters: {container}"));
    }
    if shared_name.starts_with('_') {
        return Err(invalid!("shared_name cannot start with '_':{shared_name}"));
    }
    let (name, private) = match (shared_name.is_empty(), unnamed) {
        (false, _) => (shared_name, false),
        (true, Unnamed::ByNode) => (setup.name().to_string(), false),
        (true, Unnamed::Private) => (setup.resources().unique_name(setup.name()), true),
    };
    Ok((setup.resources().container(&container).to_string(), name, private))
}

/// Letters, digits and dots, and after the first one also dashes and slashes.
fn is_container_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    name.bytes().enumerate().all(|(i, byte)| plain(byte) || i > 0 && matches!(byte, b'-' | b'/'))
}

/// How a node passes on its resource: as a handle, or as the pair of strings that older graphs use.
fn announcement<T: Resource>(dtype: DType, place: &Place<T>) -> Result<Value> {
    if dtype == DType::RESOURCE {
        let handle = place.home.handle::<T>(&place.container, &place.name, Vec::new());
        return Ok(Tensor::from_handles(Shape::scalar(), vec![handle])?.into());
    }
    pair(&place.container, &place.name)
}

/// A reference to a container and a name: the handle of older graphs.
pub fn pair(container: &str, name: &str) -> Result<Value> {
    let strings = [container, name].map(|text| Bytes::copy_from_slice(text.as_bytes()));
    let variable = Variable::new(name, DType::STRING);
    variable.assign(Tensor::from_strings([2], strings.to_vec())?);
    Ok(Value::Ref(Arc::new(variable)))
}

/// The resource that a handle of either form names.
pub fn find<T: Resource>(home: &Home, handle: &Tensor) -> Result<Arc<T>> {
    if handle.dtype() == DType::RESOURCE {
        return home.find(handle_of(handle)?);
    }
    match handle.strings()? {
        [container, name] => {
            let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
            home.resources().find(&text(container), &text(name), T::TYPE_NAME)
        }
        _ => Err(invalid!("Resource handle must have 2 elements, but had shape: {}", handle.shape())),
    }
}

/// The error for a node whose types differ from those of the resource it uses.
pub fn signature_mismatch(
    inputs: &[DType],
    outputs: &[DType],
    expected_inputs: &[DType],
    expected_outputs: &[DType],
) -> status::Error {
    invalid!(
        "Signature mismatch, have: {}->{} expected: {}->{}",
        listed(inputs),
        listed(outputs),
        listed(expected_inputs),
        listed(expected_outputs)
    )
}

/// Types as they stand in messages.
pub fn listed(types: &[DType]) -> String {
    types.iter().map(DType::to_string).collect::<Vec<_>>().join(", ")
}
