//! Attributes of a case's node: the written ones, and those that follow from the inputs.

use crate::case::{Case, Kind};
use crate::expected::sentence;
use crate::text::{inside, items, unquote, words};
use crate::values::{partial_shape, tensor};
use graph::{ArgType, AttrDef, AttrKind, AttrList, AttrValue, NodeDef, Signature};
use status::{Result, invalid};
use std::collections::BTreeMap;
use tensor::{Bytes, DType};

/// The node of a case, named `case`. Its inputs are named by their positions.
pub fn node(case: &Case, signature: &Signature) -> Result<NodeDef> {
    let mut attrs = BTreeMap::new();
    for (name, text) in &case.attrs {
        let def = signature.attr(name).ok_or_else(|| invalid!("{} has no attribute {name}", case.op))?;
        attrs.insert(name.clone(), value(def, text)?);
    }
    infer(case, signature, &mut attrs);
    let inputs = (0..case.inputs.len()).map(|i| format!("in{i}")).collect();
    Ok(NodeDef { name: "case".into(), op: case.op.clone(), inputs, attrs, ..NodeDef::default() })
}

/// Adds the types and counts that follow from the inputs.
fn infer(case: &Case, signature: &Signature, attrs: &mut BTreeMap<String, AttrValue>) {
    for arg in &signature.inputs {
        let mut types = Vec::new();
        for (_, input) in case.inputs.iter().filter(|(name, _)| *name == arg.name) {
            types.push(if input.kind == Kind::Resource { DType::RESOURCE } else { input.dtype });
        }
        if let Some(number) = &arg.number {
            attrs.entry(number.clone()).or_insert(AttrValue::Int(types.len() as i64));
        }
        match (&arg.ty, types.first()) {
            (ArgType::List(attr), _) => _ = attrs.entry(attr.clone()).or_insert(types.into()),
            (ArgType::Attr(attr), Some(&dtype)) => _ = attrs.entry(attr.clone()).or_insert(dtype.into()),
            _ => {}
        }
    }
}

/// The attribute of a text.
pub(crate) fn value(def: &AttrDef, text: &str) -> Result<AttrValue> {
    if !def.list {
        return single(def.kind, text);
    }
    let inner = inside(text, "[", ']').ok_or_else(|| invalid!("{text} is not a list"))?;
    let mut list = AttrList::default();
    for item in items(inner) {
        match single(def.kind, item)? {
            AttrValue::String(value) => list.strings.push(value),
            AttrValue::Int(value) => list.ints.push(value),
            AttrValue::Float(value) => list.floats.push(value),
            AttrValue::Bool(value) => list.bools.push(value),
            AttrValue::Type(value) => list.types.push(value),
            AttrValue::Shape(value) => list.shapes.push(value),
            AttrValue::Tensor(value) => list.tensors.push(value),
            AttrValue::Func(value) => list.funcs.push(value),
            _ => return Err(invalid!("{text} is a list of no known kind")),
        }
    }
    Ok(list.into())
}

fn single(kind: AttrKind, text: &str) -> Result<AttrValue> {
    let bad = || invalid!("{text} is not an attribute of kind {kind:?}");
    Ok(match kind {
        AttrKind::String if text.starts_with('"') => AttrValue::String(Bytes::from(unquote(text)?)),
        AttrKind::String => AttrValue::from(text),
        AttrKind::Int => AttrValue::Int(text.parse().map_err(|_| bad())?),
        AttrKind::Float => AttrValue::Float(text.parse().map_err(|_| bad())?),
        AttrKind::Bool => AttrValue::Bool(text.parse().map_err(|_| bad())?),
        AttrKind::Type => AttrValue::Type(DType::from_name(text).ok_or_else(bad)?),
        AttrKind::Shape => AttrValue::Shape(partial_shape(text)?),
        AttrKind::Tensor => AttrValue::from(tensor(&words(inside(text, "(", ')').ok_or_else(bad)?))?),
        AttrKind::Func if !text.starts_with('"') => graph::Function { name: text.into(), ..Default::default() }.into(),
        AttrKind::Func => graph::Function { name: sentence(text)?, ..Default::default() }.into(),
    })
}
