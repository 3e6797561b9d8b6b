//! A map from tensors to tensors that is itself a value: changing it returns another map, in place if this is the only
//! owner.

use super::arithmetic::{joined, scalar_variant};
use crate::array::nodes;
use crate::control::flow::{merge_of, switch_on};
use crate::string::summary::summary;
use graph::{Node, Output, Scope};
use op::shapes::{scalar, unknown};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs, source, unary};
use status::{Result, invalid};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tensor::{AddTensors, Bytes, DType, Shape, Tensor, Variant, VariantData, VariantObject, nesting_of};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "EmptyTensorMap() -> handle: variant",
        shape: scalar,
        grad: Grad::Stop,
        kernel: |_| Ok(source(|_| scalar_variant(TensorMap::default())).free()),
        facts: PLAIN,
    },
    Op {
        def: "TensorMapSize(input_handle: variant) -> size: int32",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: |_| Ok(unary(|_, map| Ok(Tensor::scalar(TensorMap::take(map)?.entries.len() as i32))).free()),
        facts: PLAIN,
    },
    Op {
        def: "TensorMapLookup(input_handle: variant, key: key_dtype) -> value: value_dtype; key_dtype: type; \
              value_dtype: type",
        shape: unknown,
        grad: Grad::Rule(lookup_rule),
        kernel: lookup_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorMapInsert(input_handle: variant, key: key_dtype, value: value_dtype) -> output_handle: variant; \
              key_dtype: type; value_dtype: type",
        shape: scalar,
        grad: Grad::Rule(insert_rule),
        kernel: insert_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorMapErase(input_handle: variant, key: key_dtype) -> output_handle: variant; key_dtype: type; \
              value_dtype: type",
        shape: scalar,
        grad: Grad::Rule(erase_rule),
        kernel: erase_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorMapHasKey(input_handle: variant, key: key_dtype) -> has_key: bool; key_dtype: type",
        shape: scalar,
        grad: Grad::Unknown,
        kernel: has_key_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TensorMapStackKeys(input_handle: variant) -> keys: key_dtype; key_dtype: type",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: stack_keys_kernel,
        facts: PLAIN,
    },
];

/// The type name of a map in serialized variants.
pub(crate) const TYPE_NAME: &str = "tensorflow::TensorMap";

/// A map without entries.
pub fn empty_tensor_map(scope: &Scope) -> Output {
    scope.op("EmptyTensorMap").output()
}

/// The map with this value for this key.
pub fn tensor_map_insert(map: &Output, key: &Output, value: &Output) -> Output {
    map.scope().op("TensorMapInsert").input(map).input(key).input(value).output()
}

/// The value of a key that the map has.
pub fn tensor_map_lookup(map: &Output, key: &Output, value_dtype: DType) -> Output {
    map.scope().op("TensorMapLookup").input(map).input(key).attr("value_dtype", value_dtype).output()
}

/// The map without a key that it has.
pub fn tensor_map_erase(map: &Output, key: &Output, value_dtype: DType) -> Output {
    map.scope().op("TensorMapErase").input(map).input(key).attr("value_dtype", value_dtype).output()
}

/// Whether the map has a value for this key.
pub fn tensor_map_has_key(map: &Output, key: &Output) -> Output {
    map.scope().op("TensorMapHasKey").input(map).input(key).output()
}

fn lookup_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![tensor_map_insert(&empty_tensor_map(dy.scope()), &op.input(1), dy), NoGradient])
}

/// The gradient of the value is what the gradient of the map has for the key, or zeros.
fn insert_rule(op: &Node, dmap: &Output) -> Result<Grads> {
    let (key, value) = (op.input(1).seen_from(dmap.scope()), op.input(2).seen_from(dmap.scope()));
    let has = tensor_map_has_key(dmap, &key);
    let (maps, keys, values) = (switch_on(dmap, &has), switch_on(&key, &has), switch_on(&value, &has));
    let found = tensor_map_lookup(&maps.output(1), &keys.output(1), value.dtype());
    let rest = tensor_map_erase(&maps.output(1), &keys.output(1), value.dtype());
    let meet = |without: Output, with: Output| merge_of(&[without, with]).map(|node| node.output(0));
    Ok(grads![meet(maps.output(0), rest), NoGradient, meet(nodes::zeros_like(&values.output(0)), found)])
}

fn erase_rule(_: &Node, dmap: &Output) -> Result<Grads> {
    Ok(grads![dmap.clone(), NoGradient])
}

/// A key by its type, shape and elements.
type Key = (i32, Vec<usize>, Vec<Bytes>);

/// A map from tensors to tensors.
#[derive(Clone, Default)]
pub struct TensorMap {
    entries: Arc<BTreeMap<Key, (Tensor, Tensor)>>,
    /// At least that of the values.
    nesting: usize,
}

impl TensorMap {
    /// The map in a scalar variant; the tensor is consumed, so that its last owner changes the map in place.
    fn take(handle: Tensor) -> Result<TensorMap> {
        let ([variant], 0) = (handle.variants()?, handle.shape().rank()) else {
            return Err(invalid!("Input map must be a scalar. Saw: {}", handle.shape()));
        };
        TensorMap::from_variant(variant).ok_or_else(|| invalid!("Input handle is not a map. Saw: '{variant:?}'"))?
    }

    /// The map a variant is; none if it is something else.
    pub fn from_variant(variant: &Variant) -> Option<Result<TensorMap>> {
        match variant {
            Variant::Data(data) => (data.type_name == TYPE_NAME).then(|| TensorMap::decode(data)),
            Variant::Object(_) => variant.object::<TensorMap>().cloned().map(Ok),
        }
    }

    /// A map as it travelled: keys and values in turn.
    pub fn decode(data: &VariantData) -> Result<TensorMap> {
        let (pairs, []) = data.tensors.as_chunks::<2>() else {
            return Err(invalid!("The data of a TensorMap cannot be read"));
        };
        let entry = |[key, value]: &[Tensor; 2]| Ok((identity(key)?, (key.clone(), value.clone())));
        let nesting = nesting_of(&data.tensors);
        Ok(TensorMap { entries: Arc::new(pairs.iter().map(entry).collect::<Result<_>>()?), nesting })
    }

    fn insert(&mut self, id: Key, entry: (Tensor, Tensor)) {
        self.nesting = self.nesting.max(nesting_of([&entry.1]));
        self.change().insert(id, entry);
    }

    fn change(&mut self) -> &mut BTreeMap<Key, (Tensor, Tensor)> {
        Arc::make_mut(&mut self.entries)
    }
}

fn identity(key: &Tensor) -> Result<Key> {
    let elements = match (key.dtype(), key.buffer()) {
        (DType::STRING, _) => key.strings()?.to_vec(),
        (_, Some(buffer)) => vec![Bytes::copy_from_slice(buffer.bytes())],
        (dtype, None) => return Err(invalid!("A tensor of type {dtype} cannot be the key of a map")),
    };
    Ok((key.dtype().number(), key.shape().dims().to_vec(), elements))
}

fn lookup_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("value_dtype")?;
    Ok(binary(move |_, map, key| {
        let map = TensorMap::take(map)?;
        let Some((_, value)) = map.entries.get(&identity(&key)?) else {
            return Err(invalid!("Trying to lookup non-existent key. Could not find key \"{}\".", summary(&key, 100)?));
        };
        match value.dtype() == dtype {
            true => Ok(value.clone()),
            false => Err(invalid!("The value of the key is of type {}, expected {dtype}", value.dtype())),
        }
    })
    .free())
}

fn insert_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let (mut map, key) = (TensorMap::take(inputs.tensor(0)?)?, inputs.tensor(1)?);
        let value = inputs.tensor(2)?;
        map.insert(identity(&key)?, (key, value));
        Ok(outputs![scalar_variant(map)?])
    })
    .free())
}

fn erase_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, map, key| {
        let (mut map, id) = (TensorMap::take(map)?, identity(&key)?);
        if !map.entries.contains_key(&id) {
            return Err(invalid!("Trying to erase non-existent item. Could not find key \"{}\".", summary(&key, 100)?));
        }
        map.change().remove(&id);
        scalar_variant(map)
    })
    .free())
}

fn has_key_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, map, key| Ok(Tensor::scalar(TensorMap::take(map)?.entries.contains_key(&identity(&key)?)))).free())
}

fn stack_keys_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("key_dtype")?;
    Ok(unary(move |_, map| {
        let map = TensorMap::take(map)?;
        let keys: Vec<Tensor> = map.entries.values().map(|(key, _)| key.clone()).collect();
        let Some(first) = keys.first() else {
            return Err(invalid!("TensorMapStackKeys cannot be called on empty map."));
        };
        if keys.iter().any(|key| key.dtype() != dtype) {
            return Err(invalid!("Key does not match requested dtype."));
        }
        if keys.iter().any(|key| key.shape() != first.shape()) {
            return Err(invalid!("Keys must all have the same shape."));
        }
        let shape = Shape::from([&[keys.len()], first.shape().dims()].concat());
        joined(dtype, shape, &keys)
    }))
}

impl VariantObject for TensorMap {
    fn encode(&self) -> Result<VariantData> {
        let tensors = self.entries.values().flat_map(|(key, value)| [key.clone(), value.clone()]).collect();
        Ok(VariantData { type_name: TYPE_NAME.to_string(), tensors, ..VariantData::default() })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn nesting(&self) -> usize {
        self.nesting.max(1)
    }

    /// A map without a key has the gradient zero for it.
    fn zeros_like(&self) -> Result<Variant> {
        Ok(Variant::Object(Arc::new(TensorMap::default())))
    }

    /// The entries of both; the values of keys that both have are added.
    fn add(&self, other: &Variant, add: &AddTensors<'_>) -> Result<Variant> {
        let other =
            TensorMap::from_variant(other).ok_or_else(|| invalid!("Input handle is not a map. Saw: '{other:?}'"))??;
        let mut sum = self.clone();
        for (id, (key, value)) in other.entries.iter() {
            let value = match self.entries.get(id) {
                Some((_, ours)) => add(value, ours)?,
                None => value.clone(),
            };
            sum.insert(id.clone(), (key.clone(), value));
        }
        Ok(Variant::Object(Arc::new(sum)))
    }
}

impl fmt::Debug for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TensorMap")
    }
}
