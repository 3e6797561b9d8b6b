//! Resources that end with their step. They are found by handle, or by the pair of strings of older graphs.

use graph::hash64;
use op::{Ctx, Inputs, Resource, Value, Variable, handle_of};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{Bytes, DType, ResourceHandle, Shape, Tensor};

/// Returns the handle of a resource that a node created, in the form that the type of its output requires.
pub(crate) fn announce<T: Resource>(
    ctx: &Ctx<'_>,
    dtype: DType,
    device: &str,
    kind: &str,
    name: &str,
) -> Result<Value> {
    if dtype == DType::RESOURCE {
        let handle = ResourceHandle {
            device: device.to_string(),
            container: ctx.step_resources().container("").to_string(),
            name: format!("{kind}{name}"),
            hash_code: hash64(T::TYPE_NAME.as_bytes()),
            type_name: T::TYPE_NAME.to_string(),
            values: Vec::new(),
        };
        return Ok(Tensor::from_handles(Shape::scalar(), vec![handle])?.into());
    }
    let strings = vec![Bytes::copy_from_slice(kind.as_bytes()), Bytes::copy_from_slice(name.as_bytes())];
    let strings = Tensor::from_strings([2], strings)?;
    if !dtype.is_ref() {
        return Ok(strings.into());
    }
    let variable = Variable::new(name, DType::STRING);
    variable.assign(strings);
    Ok(Value::Ref(Arc::new(variable)))
}

/// Under which name a node's first input, a handle of either form, finds its resource.
pub(crate) fn key_of<T: Resource>(handle: &Tensor, what: &str) -> Result<String> {
    if handle.dtype() != DType::RESOURCE {
        return match handle.strings()? {
            [kind, name] => Ok(String::from_utf8_lossy(&[&kind[..], &name[..]].concat()).into_owned()),
            _ => Err(invalid!("{what}, but had shape: {}", handle.shape())),
        };
    }
    let handle = handle_of(handle)?;
    if handle.type_name != T::TYPE_NAME {
        return Err(invalid!(
            "Trying to access a handle's resource using the wrong type. The handle points to a resource (name '{}') of \
             type '{}' (hash code {}) but you are trying to access the resource as type '{}' (hash code {})",
            handle.name,
            handle.type_name,
            handle.hash_code,
            T::TYPE_NAME,
            hash64(T::TYPE_NAME.as_bytes())
        ));
    }
    Ok(handle.name.clone())
}

/// The resource that a node's first input names.
pub(crate) fn find<T: Resource>(ctx: &Ctx<'_>, inputs: &mut Inputs, what: &str) -> Result<Arc<T>> {
    let key = key_of::<T>(&inputs.tensor(0)?, what)?;
    ctx.step_resources().find("", &key, T::TYPE_NAME)
}
