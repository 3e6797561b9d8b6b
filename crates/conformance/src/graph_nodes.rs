//! The nodes of a graph case: edges by name, types and counts from the inputs.

use crate::attrs;
use crate::text::inside;
use graph::{Arg, ArgType, AttrDef, AttrKind, AttrValue, NodeDef, Signature};
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::DType;

/// Nodes of a graph, or of the body of a function.
#[derive(Default)]
pub(crate) struct Nodes {
    /// The nodes, in the order of the file.
    pub defs: Vec<Arc<NodeDef>>,
    /// The type of each output of each node, and its name in the body of a function.
    outputs: BTreeMap<String, Vec<(DType, String)>>,
    in_body: bool,
}

impl Nodes {
    /// No nodes, but arguments.
    pub fn body(args: &[(String, DType)]) -> Nodes {
        let outputs = args.iter().map(|(name, dtype)| (name.clone(), vec![(*dtype, name.clone())]));
        Nodes { defs: Vec::new(), outputs: outputs.collect(), in_body: true }
    }

    /// True if there is a node with this name.
    pub fn has(&self, name: &str) -> bool {
        self.outputs.contains_key(name)
    }

    /// Adds a node that has only attributes.
    pub fn add_with(&mut self, name: &str, signature: &Signature, attrs: &[(&str, AttrValue)]) -> Result<()> {
        let attrs = attrs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        self.push(signature, NodeDef { name: name.into(), op: signature.name.clone(), attrs, ..NodeDef::default() })
    }

    /// Adds the node of the line `node name op words`.
    pub fn add(&mut self, name: &str, signature: &Signature, words: &[&str]) -> Result<()> {
        let mut def = NodeDef { name: name.into(), op: signature.name.clone(), ..NodeDef::default() };
        let (mut inputs, mut controls) = (Vec::new(), Vec::new());
        for word in words {
            if let Some((name, text)) = attribute(word) {
                let value = match signature.attr(name) {
                    Some(attr) => attrs::value(attr, text)?,
                    None => attrs::value(&guessed(name, text), text)?,
                };
                def.attrs.insert(name.to_string(), value);
            } else if word.starts_with('^') {
                controls.push(word.to_string());
            } else if let Some(device) = word.strip_prefix('@') {
                def.device = device.to_string();
            } else {
                inputs.push(*word);
            }
        }
        self.infer_attrs(signature, &mut def, &inputs)?;
        for word in inputs {
            def.inputs.push(if self.in_body { self.output(word)?.1 } else { word.to_string() });
        }
        def.inputs.extend(controls);
        self.push(signature, def)
    }

    fn push(&mut self, signature: &Signature, def: NodeDef) -> Result<()> {
        let mut outputs = Vec::new();
        for arg in &signature.outputs {
            for (i, dtype) in signature.arg_types(arg, &def)?.into_iter().enumerate() {
                outputs.push((dtype, format!("{}:{}:{i}", def.name, arg.name)));
            }
        }
        self.outputs.insert(def.name.clone(), outputs);
        self.defs.push(Arc::new(def));
        Ok(())
    }

    /// The type of the output `node` or `node:1`, and its name in the body of a function.
    pub fn output(&self, word: &str) -> Result<(DType, String)> {
        let (name, index) = word.split_once(':').unwrap_or((word, "0"));
        let index: usize = index.parse().map_err(|_| invalid!("{word} is not an output"))?;
        let found = self.outputs.get(name).and_then(|outputs| outputs.get(index));
        found.cloned().ok_or_else(|| invalid!("nothing above has an output {word}"))
    }

    /// Adds the types and counts that follow from the inputs.
    fn infer_attrs(&self, signature: &Signature, def: &mut NodeDef, inputs: &[&str]) -> Result<()> {
        let mut at = 0;
        for (place, arg) in signature.inputs.iter().enumerate() {
            let rest = || -> Result<usize> {
                let later =
                    signature.inputs[place + 1..].iter().map(|arg| known_count(arg, def)).sum::<Option<usize>>();
                let later = later.ok_or_else(|| invalid!("say how many inputs {} has", arg.name))?;
                Result::Ok(inputs.len().saturating_sub(at + later))
            };
            let count = known_count(arg, def).map_or_else(rest, Ok)?;
            let words = inputs.get(at..at + count).ok_or_else(|| invalid!("{} has no input {}", def.name, arg.name))?;
            at += count;
            // Back edges of loops are added further below.
            let types: Vec<DType> = words.iter().filter_map(|word| Some(self.output(word).ok()?.0)).collect();
            if let Some(number) = &arg.number {
                def.attrs.entry(number.clone()).or_insert(AttrValue::Int(count as i64));
            }
            match (&arg.ty, types.first()) {
                (ArgType::List(attr), _) => _ = def.attrs.entry(attr.clone()).or_insert(types.into()),
                (ArgType::Attr(attr), Some(&dtype)) => _ = def.attrs.entry(attr.clone()).or_insert(dtype.into()),
                _ => {}
            }
        }
        if at != inputs.len() {
            return Err(invalid!("{} inputs, but {} takes {at}", inputs.len(), signature.name));
        }
        Ok(())
    }
}

/// The number of tensors of an argument, if it does not depend on the inputs.
fn known_count(arg: &Arg, def: &NodeDef) -> Option<usize> {
    match (&arg.number, &arg.ty) {
        (Some(number), _) => match def.attrs.get(number)? {
            AttrValue::Int(count) => usize::try_from(*count).ok(),
            _ => None,
        },
        (None, ArgType::List(attr)) => match def.attrs.get(attr)? {
            AttrValue::List(list) => Some(list.types.len()),
            _ => None,
        },
        _ => Some(1),
    }
}

/// `name=value`.
fn attribute(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some((name, value))
}

/// The kind of an attribute that the op does not declare, such as `_lower_using_switch_merge`.
fn guessed(name: &str, text: &str) -> AttrDef {
    let list = inside(text, "[", ']').is_some();
    let kind = match text {
        "true" | "false" => AttrKind::Bool,
        text if text.parse::<i64>().is_ok() => AttrKind::Int,
        _ => AttrKind::String,
    };
    AttrDef { name: name.into(), kind, list, default: None, minimum: None, allowed: None }
}
