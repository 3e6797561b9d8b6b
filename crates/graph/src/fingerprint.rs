//! Fingerprints of functions: numbers that are the same for functions with equal bodies.

use crate::wire::attr_to_bytes;
use crate::{Arg, AttrValue, Function, FunctionDef, FunctionLibrary, NodeDef, hash64};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A number that is the same for functions with equal bodies, also in other processes; none if the function, or one that
/// it uses, is not in the library.
///
/// Clients number the names of functions and nodes anew in every graph, so names do not count. Nor do devices, nodes on
/// which no result depends, attributes that begin with an underscore, and the names that users give to datasets
/// (`metadata`): they do not change the results.
pub fn function_fingerprint(library: &FunctionLibrary, function: &Function) -> Option<u64> {
    let mut bodies = Bodies { library, numbers: FxHashMap::default(), order: Vec::new() };
    let mut text = Text::default();
    bodies.put_call(function, &mut text)?;
    let mut done = 0;
    while let Some(&def) = bodies.order.get(done) {
        done += 1;
        bodies.put_body(def, &mut text)?;
    }
    Some(hash64(&text.0))
}

/// Pieces of a description, each as its hash, so that they cannot run into each other.
#[derive(Default)]
struct Text(Vec<u8>);

impl Text {
    fn put(&mut self, piece: impl AsRef<[u8]>) {
        self.0.extend(hash64(piece.as_ref()).to_le_bytes());
    }
}

/// The functions that were met, numbered in that order.
struct Bodies<'a> {
    library: &'a FunctionLibrary,
    numbers: FxHashMap<&'a str, usize>,
    order: Vec<&'a FunctionDef>,
}

impl<'a> Bodies<'a> {
    fn number(&mut self, name: &str) -> Option<usize> {
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        let (name, def) = self.library.functions.get_key_value(name)?;
        self.numbers.insert(name, self.order.len());
        self.order.push(def);
        Some(self.order.len() - 1)
    }

    fn put_call(&mut self, function: &Function, text: &mut Text) -> Option<()> {
        text.put(format!("function {}", self.number(&function.name)?));
        self.put_attrs(&function.attrs, text)
    }

    fn put_attrs(&mut self, attrs: &BTreeMap<String, AttrValue>, text: &mut Text) -> Option<()> {
        for (name, value) in attrs.iter().filter(|(name, _)| !name.starts_with('_') && *name != "metadata") {
            text.put(name);
            self.put_attr(value, text)?;
        }
        Some(())
    }

    fn put_attr(&mut self, value: &AttrValue, text: &mut Text) -> Option<()> {
        match value {
            AttrValue::Func(function) => self.put_call(function, text)?,
            AttrValue::List(list) if !list.funcs.is_empty() => {
                text.put(format!("{} functions", list.funcs.len()));
                list.funcs.iter().try_for_each(|function| self.put_call(function, text))?;
            }
            _ => text.put(attr_to_bytes(value)),
        }
        Some(())
    }

    fn put_body(&mut self, def: &FunctionDef, text: &mut Text) -> Option<()> {
        let mut nodes = Nodes::of(def);
        let (inputs, outputs) = (&def.signature.inputs, &def.signature.outputs);
        inputs.iter().chain(outputs).for_each(|arg| text.put(types(arg)));
        for output in outputs {
            text.put(nodes.source(def.ret.get(&output.name)?)?);
        }
        for node in def.control_ret.values() {
            text.put(nodes.source(node)?);
        }
        let mut done = 0;
        while let Some(&node) = nodes.order.get(done) {
            done += 1;
            self.put_node(node, &mut nodes, text)?;
        }
        Some(())
    }

    fn put_node<'n>(&mut self, node: &'n NodeDef, nodes: &mut Nodes<'n>, text: &mut Text) -> Option<()> {
        match self.number(&node.op) {
            Some(number) => text.put(format!("function {number}")),
            None => text.put(&node.op),
        }
        self.put_attrs(&node.attrs, text)?;
        text.put(format!("{} inputs", node.inputs.len()));
        node.inputs.iter().try_for_each(|input| nodes.source(input).map(|source| text.put(source)))
    }
}

fn types(arg: &Arg) -> String {
    format!("{:?} {:?} {}", arg.ty, arg.number, arg.is_ref)
}

/// The nodes of a body on which its results depend, numbered in the order in which they were met.
struct Nodes<'n> {
    arguments: FxHashMap<&'n str, usize>,
    by_name: FxHashMap<&'n str, &'n Arc<NodeDef>>,
    numbers: FxHashMap<&'n str, usize>,
    order: Vec<&'n NodeDef>,
}

impl<'n> Nodes<'n> {
    fn of(def: &'n FunctionDef) -> Nodes<'n> {
        let arguments = def.signature.inputs.iter().enumerate();
        Nodes {
            arguments: arguments.map(|(position, arg)| (arg.name.as_str(), position)).collect(),
            by_name: def.nodes.iter().map(|node| (node.name.as_str(), node)).collect(),
            numbers: FxHashMap::default(),
            order: Vec::new(),
        }
    }

    /// An input, with numbers in place of names: `arg`, `node:out:1` or `^node`.
    fn source(&mut self, input: &'n str) -> Option<String> {
        let (control, input) = input.strip_prefix('^').map_or(("", input), |node| ("^", node));
        let (name, output) = input.split_once(':').unwrap_or((input, ""));
        if let Some(position) = self.arguments.get(name) {
            return Some(format!("{control}argument {position}:{output}"));
        }
        let node = self.by_name.get(name)?;
        let next = self.numbers.len();
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.order.push(node);
        }
        Some(format!("{control}node {number}:{output}"))
    }
}
