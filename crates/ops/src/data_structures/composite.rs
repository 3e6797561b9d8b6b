//! A composite tensor, such as a ragged or a sparse tensor, as one variant: its tensors, and the description of its type.

use super::arithmetic::scalar_variant;
use graph::{AttrList, AttrValue, Node, Output};
use op::shapes::{scalar, unknown};
use op::{Grad, Gradient, Grads, Kernel, Op, Outputs, PLAIN, Setup, Value, grads, many, outputs};
use status::{Result, invalid};
use std::any::Any;
use std::fmt;
use tensor::{Bytes, DType, Tensor, Variant, VariantData, VariantObject, nesting_of};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CompositeTensorVariantFromComponents(components: [Tcomponents]) -> encoded: variant; metadata: string; \
              Tcomponents: list(type) >= 0",
        shape: scalar,
        grad: Grad::Rule(encode_rule),
        kernel: encode_kernel,
        facts: PLAIN,
    },
    Op {
        def: "CompositeTensorVariantToComponents(encoded: variant) -> components: [Tcomponents]; metadata: string; \
              Tcomponents: list(type) >= 0",
        shape: unknown,
        grad: Grad::Rules(decode_rule),
        kernel: decode_kernel,
        facts: PLAIN,
    },
];

/// The type name of a composite tensor in serialized variants.
pub(crate) const TYPE_NAME: &str = "CompositeTensorVariant";

fn encode_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let types = op.all_inputs().iter().map(Output::dtype).collect();
    let types = AttrValue::from(AttrList { types, ..AttrList::default() });
    let builder = dy.scope().op("CompositeTensorVariantToComponents").input(dy);
    let parts = builder.attr("metadata", op.attr("metadata")?).attr("Tcomponents", types).outputs();
    Ok(parts.into_iter().map(|part| Some(Gradient::Dense(part))).collect())
}

/// Components without a gradient keep their values, as in TensorFlow.
fn decode_rule(op: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    let Some(scope) = dys.iter().flatten().next().map(|dy| dy.scope().clone()) else { return Ok(vec![None]) };
    let part = |(index, dy): (usize, &Option<Output>)| dy.clone().unwrap_or_else(|| op.output(index));
    let parts: Vec<Output> = dys.iter().enumerate().map(part).collect();
    let builder = scope.op("CompositeTensorVariantFromComponents").inputs(&parts);
    Ok(grads![builder.attr("metadata", op.attr("metadata")?).output()])
}

fn encode_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let metadata = setup.bytes("metadata")?;
    class(&metadata).ok_or_else(|| invalid!("Error parsing metadata"))?;
    Ok(many(move |_, mut inputs| {
        let components = inputs.tensors_from(0)?;
        Ok(outputs![scalar_variant(Composite::new(metadata.clone(), components))?])
    })
    .free())
}

fn decode_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let expected = class(&setup.bytes("metadata")?).ok_or_else(|| invalid!("Error parsing `metadata`"))?;
    let types = setup.types("Tcomponents")?;
    Ok(many(move |_, mut inputs| components(&inputs.tensor(0)?, expected, &types)).free())
}

fn components(encoded: &Tensor, expected: u64, types: &[DType]) -> Result<Outputs> {
    let Some(variant) = encoded.variants()?.first() else {
        return Err(invalid!("Input `encoded` must not be an empty variant tensor, but got {encoded:?}"));
    };
    let composite = Composite::from_variant(variant).ok_or_else(|| {
        invalid!("The input `encoded` is not a valid CompositeTensorVariant tensor, got {encoded:?}")
    })??;
    let actual = class(&composite.metadata).unwrap_or_default();
    if expected != actual {
        return Err(invalid!(
            "Expected a {} (based on `type_spec`), but `encoded` contains a {}",
            class_name(expected),
            class_name(actual)
        ));
    }
    if types.len() != composite.components.len() {
        return Err(invalid!(
            "Encoded value has {} tensor components; expected {} components based on type_spec",
            composite.components.len(),
            types.len()
        ));
    }
    for (i, (component, dtype)) in composite.components.iter().zip(types).enumerate() {
        if component.dtype() != *dtype {
            return Err(invalid!(
                "Tensor component {i} had dtype {}; expected dtype {}",
                component.dtype().proto_name(),
                dtype.proto_name()
            ));
        }
    }
    Ok(composite.components.into_iter().map(Value::Tensor).collect())
}

/// A composite tensor as a value.
#[derive(Clone)]
pub struct Composite {
    /// The type, a `CompositeTensorVariantMetadata` message.
    metadata: Bytes,
    components: Vec<Tensor>,
    nesting: usize,
}

impl Composite {
    fn new(metadata: Bytes, components: Vec<Tensor>) -> Composite {
        Composite { nesting: nesting_of(&components), metadata, components }
    }

    /// The composite tensor a variant is; none if it is something else.
    pub fn from_variant(variant: &Variant) -> Option<Result<Composite>> {
        match variant {
            Variant::Data(data) => (data.type_name == TYPE_NAME).then(|| Composite::decode(data)),
            Variant::Object(_) => variant.object::<Composite>().cloned().map(Ok),
        }
    }

    /// A composite tensor as it travelled.
    pub fn decode(data: &VariantData) -> Result<Composite> {
        class(&data.metadata).ok_or_else(|| invalid!("The metadata of a CompositeTensorVariant cannot be read"))?;
        Ok(Composite::new(data.metadata.clone(), data.tensors.clone()))
    }
}

/// The class of the type in serialized metadata: field 1 of the message in field 1. None if they cannot be read.
fn class(metadata: &[u8]) -> Option<u64> {
    let mut spec = Vec::new();
    fields(metadata, |field| {
        if let (1, Field::Bytes(bytes)) = field {
            spec.extend_from_slice(bytes); // the fields of repeated messages are merged
        }
    })?;
    let mut class = 0;
    fields(&spec, |field| {
        if let (1, Field::Number(number)) = field {
            class = number;
        }
    })?;
    Some(class)
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

/// Calls `each` with the number and value of every field of a message; none if it cannot be read.
fn fields<'a>(mut rest: &'a [u8], mut each: impl FnMut((u64, Field<'a>))) -> Option<()> {
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let value = match key & 7 {
            0 => Field::Number(varint(&mut rest)?),
            1 => taken(&mut rest, 8).map(|_| Field::Fixed)?,
            2 => {
                let len = usize::try_from(varint(&mut rest)?).ok()?;
                Field::Bytes(taken(&mut rest, len)?)
            }
            5 => taken(&mut rest, 4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        each((key >> 3, value));
    }
    Some(())
}

fn taken<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn class_name(class: u64) -> &'static str {
    const NAMES: [&str; 14] = [
        "UNKNOWN",
        "SPARSE_TENSOR_SPEC",
        "INDEXED_SLICES_SPEC",
        "RAGGED_TENSOR_SPEC",
        "TENSOR_ARRAY_SPEC",
        "DATA_DATASET_SPEC",
        "DATA_ITERATOR_SPEC",
        "OPTIONAL_SPEC",
        "PER_REPLICA_SPEC",
        "VARIABLE_SPEC",
        "ROW_PARTITION_SPEC",
        "",
        "REGISTERED_TYPE_SPEC",
        "EXTENSION_TYPE_SPEC",
    ];
    usize::try_from(class).ok().and_then(|class| NAMES.get(class).copied()).unwrap_or_default()
}

impl VariantObject for Composite {
    fn encode(&self) -> Result<VariantData> {
        let (metadata, tensors) = (self.metadata.clone(), self.components.clone());
        Ok(VariantData { type_name: TYPE_NAME.to_string(), metadata, tensors })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn nesting(&self) -> usize {
        self.nesting
    }
}

impl fmt::Debug for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = class_name(class(&self.metadata).unwrap_or_default());
        let components: Vec<String> = self.components.iter().map(|part| format!("{part:?}")).collect();
        write!(f, "<CompositeTensorVariant type={class}, components=[{}]>", components.join(", "))
    }
}
