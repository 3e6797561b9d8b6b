//! Signatures written as one line of text.
//!
//! ```text
//! ConcatV2(values: N * T, axis: Tidx) -> output: T; N: int >= 2; T: type; Tidx: {int32, int64} = int32
//! VariableV2() -> ref: Ref(dtype); shape: shape; dtype: type; container: string = ""; stateful
//! ```
//! An argument is `name: type`, where the type is a type, a type attribute, `N * T`, or `[Tlist]` for
//! one tensor per type of a list attribute. An attribute is `name: kind [>= minimum] [= default]`, and
//! a kind may be a set of allowed types or strings. `numbertype` and `realnumbertype` are the usual sets.

use crate::{Arg, ArgType, AttrDef, AttrKind, AttrList, AttrValue, Signature};
use bytes::Bytes;
use status::{Result, internal};
use tensor::{DType, PartialShape};

const REAL_NUMBERS: &str = "float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64";
const NUMBERS: &str = "float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, \
                       qint16, quint16, uint16, complex128, half, uint32, uint64";

impl Signature {
    /// Parses a signature; the error names the part that could not be parsed.
    pub fn parse(text: &str) -> Result<Signature> {
        let mut parts = split(text, ';').into_iter();
        let head = parts.next().unwrap_or_default();
        let mut signature = head_of(head).ok_or_else(|| internal!("op text '{text}': bad head"))?;
        for part in parts.filter(|part| !part.is_empty()) {
            match part {
                "stateful" => signature.stateful = true,
                "commutative" => signature.commutative = true,
                "aggregate" => signature.aggregate = true,
                "uninitialized" => signature.allows_uninitialized_input = true,
                "distributed" => signature.distributed_communication = true,
                attr => signature
                    .attrs
                    .push(attr_of(attr).ok_or_else(|| internal!("op text '{text}': bad attribute '{attr}'"))?),
            }
        }
        Ok(signature)
    }
}

fn head_of(head: &str) -> Option<Signature> {
    let (name, rest) = head.split_once('(')?;
    let (inputs, outputs) = match rest.split_once("->") {
        Some((inputs, outputs)) => (inputs.trim().strip_suffix(')')?, outputs.trim()),
        None => (rest.trim().strip_suffix(')')?, ""),
    };
    Some(Signature {
        name: name.trim().to_string(),
        inputs: args_of(inputs)?,
        outputs: args_of(outputs)?,
        ..Signature::default()
    })
}

fn args_of(text: &str) -> Option<Vec<Arg>> {
    split(text, ',').into_iter().filter(|part| !part.is_empty()).map(arg_of).collect()
}

fn arg_of(text: &str) -> Option<Arg> {
    let (name, ty) = text.split_once(':')?;
    let ty = ty.trim();
    let (is_ref, ty) = match ty.strip_prefix("Ref(") {
        Some(inner) => (true, inner.strip_suffix(')')?),
        None => (false, ty),
    };
    let (number, ty) = match ty.split_once('*') {
        Some((number, ty)) => (Some(number.trim().to_string()), ty.trim()),
        None => (None, ty),
    };
    let ty = match ty.strip_prefix('[') {
        Some(list) => ArgType::List(list.strip_suffix(']')?.to_string()),
        None => DType::from_name(ty).map_or_else(|| ArgType::Attr(ty.to_string()), ArgType::Fixed),
    };
    Some(Arg { name: name.trim().to_string(), ty, number, is_ref })
}

fn attr_of(text: &str) -> Option<AttrDef> {
    let (name, rest) = text.split_once(':')?;
    let (kind, default) = split_default(rest.trim());
    let (kind, minimum) = match kind.split_once(">=") {
        Some((kind, minimum)) => (kind.trim(), Some(minimum.trim().parse().ok()?)),
        None => (kind, None),
    };
    let (kind, list) = match kind.strip_prefix("list(") {
        Some(inner) => (inner.strip_suffix(')')?.trim(), true),
        None => (kind, false),
    };
    let (kind, allowed) = kind_of(kind)?;
    let default = match default {
        Some(text) => Some(value_of(kind, list, text)?),
        None => None,
    };
    Some(AttrDef { name: name.trim().to_string(), kind, list, default, minimum, allowed })
}

/// Splits `kind = default`, leaving the `=` of `>=` alone.
fn split_default(text: &str) -> (&str, Option<&str>) {
    let bytes = text.as_bytes();
    let equals = (0..bytes.len()).find(|&i| bytes[i] == b'=' && (i == 0 || bytes[i - 1] != b'>'));
    match equals {
        Some(at) => (text[..at].trim(), Some(text[at + 1..].trim())),
        None => (text, None),
    }
}

fn kind_of(text: &str) -> Option<(AttrKind, Option<AttrValue>)> {
    if let Some(kind) = AttrKind::from_name(text) {
        return Some((kind, None));
    }
    match text {
        "numbertype" => Some((AttrKind::Type, Some(types_of(NUMBERS)?.into()))),
        "realnumbertype" => Some((AttrKind::Type, Some(types_of(REAL_NUMBERS)?.into()))),
        set => set_of(set.strip_prefix('{')?.strip_suffix('}')?),
    }
}

fn set_of(text: &str) -> Option<(AttrKind, Option<AttrValue>)> {
    if text.trim_start().starts_with('"') {
        return Some((AttrKind::String, Some(strings_of(text)?.into())));
    }
    Some((AttrKind::Type, Some(types_of(text)?.into())))
}

fn types_of(text: &str) -> Option<Vec<DType>> {
    let mut types = Vec::new();
    for name in items(text) {
        match name {
            "realnumbertype" => types.extend(types_of(REAL_NUMBERS)?),
            "numbertype" => types.extend(types_of(NUMBERS)?),
            name => types.push(DType::from_name(name)?),
        }
    }
    Some(types)
}

fn strings_of(text: &str) -> Option<Vec<Bytes>> {
    items(text).into_iter().map(string_of).collect()
}

fn string_of(text: &str) -> Option<Bytes> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    Some(Bytes::from(inner.replace("\\n", "\n").replace("\\\"", "\"")))
}

fn value_of(kind: AttrKind, list: bool, text: &str) -> Option<AttrValue> {
    if !list {
        return match kind {
            AttrKind::String => string_of(text).map(AttrValue::String),
            AttrKind::Int => text.parse().ok().map(AttrValue::Int),
            AttrKind::Float => text.parse().ok().map(AttrValue::Float),
            AttrKind::Bool => text.parse().ok().map(AttrValue::Bool),
            AttrKind::Type => DType::from_name(text).map(AttrValue::Type),
            AttrKind::Shape => shape_of(text).map(AttrValue::Shape),
            AttrKind::Tensor | AttrKind::Func => None,
        };
    }
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut values = AttrList::default();
    match kind {
        AttrKind::String => values.strings = strings_of(inner)?,
        AttrKind::Int => values.ints = items(inner).into_iter().map(|i| i.parse().ok()).collect::<Option<_>>()?,
        AttrKind::Float => values.floats = items(inner).into_iter().map(|f| f.parse().ok()).collect::<Option<_>>()?,
        AttrKind::Bool => values.bools = items(inner).into_iter().map(|b| b.parse().ok()).collect::<Option<_>>()?,
        AttrKind::Type => values.types = types_of(inner)?,
        AttrKind::Shape => values.shapes = items(inner).into_iter().map(shape_of).collect::<Option<_>>()?,
        AttrKind::Tensor | AttrKind::Func => inner.trim().is_empty().then_some(())?,
    }
    Some(values.into())
}

fn shape_of(text: &str) -> Option<PartialShape> {
    if text == "?" {
        return Some(PartialShape::unknown());
    }
    let dims: Option<Vec<i64>> =
        items(text.strip_prefix('[')?.strip_suffix(']')?).into_iter().map(|dim| dim.parse().ok()).collect();
    Some(PartialShape::new(&dims?))
}

fn items(text: &str) -> Vec<&str> {
    split(text, ',').into_iter().filter(|item| !item.is_empty()).collect()
}

/// Splits at `separator` outside quotes and brackets, and trims.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut depth, mut quoted, mut start) = (Vec::new(), 0, false, 0);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            c if c == separator && depth == 0 && !quoted => {
                parts.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}
