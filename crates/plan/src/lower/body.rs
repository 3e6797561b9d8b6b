//! Function bodies with attributes substituted and names resolved.

use graph::{Function, FunctionDef, NodeDef, Signature};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::DType;

/// A function body that is being inlined.
pub(super) struct Body {
    pub nodes: Vec<NodeDef>,
    /// Names inside the function (arguments and outputs) to tensors of the graph.
    sources: FxHashMap<String, String>,
}

impl Body {
    /// Substitutes the attributes; node names get `prefix`, and `args` are the arguments.
    pub fn new<'s>(
        def: &FunctionDef,
        function: &Function,
        prefix: &str,
        args: &[(String, Vec<String>)],
        signature_of: impl Fn(&str) -> Result<&'s Signature>,
    ) -> Result<Body> {
        let mut body = Body { nodes: Vec::with_capacity(def.nodes.len()), sources: FxHashMap::default() };
        for (name, tensors) in args {
            body.declare(name, tensors);
        }
        for node in &def.nodes {
            let node = node.with_attrs_of(function)?;
            let signature = signature_of(&node.op)?;
            let mut next = 0;
            for arg in &signature.outputs {
                let count = signature.arg_types(arg, &node)?.len();
                let name = |index| super::output(&format!("{prefix}{}", node.name), index);
                let tensors: Vec<String> = (next..next + count).map(name).collect();
                body.declare(&format!("{}:{}", node.name, arg.name), &tensors);
                next += count;
            }
            body.nodes.push(node);
        }
        Ok(body)
    }

    fn declare(&mut self, name: &str, tensors: &[String]) {
        for (index, tensor) in tensors.iter().enumerate() {
            self.sources.insert(format!("{name}:{index}"), tensor.clone());
            if index == 0 {
                self.sources.insert(name.to_string(), tensor.clone());
            }
        }
    }

    /// The tensor of the graph for a name inside the function.
    pub fn source(&self, name: &str) -> Result<String> {
        let found = self.sources.get(name).cloned();
        found.ok_or_else(|| invalid!("Function body refers to unknown input '{name}'"))
    }

    /// The consecutive tensors of a list result, given its first.
    pub fn results(&self, first: &str, count: usize) -> Result<Vec<String>> {
        let base = first.rsplit_once(':').filter(|(_, last)| last.parse::<usize>().is_ok()).map_or(first, |(b, _)| b);
        match count {
            1 => Ok(vec![self.source(first)?]),
            _ => (0..count).map(|index| self.source(&format!("{base}:{index}"))).collect(),
        }
    }
}

/// Types of the tensors that an argument or result of a function stands for.
pub(super) fn arg_types(signature: &Signature, arg: &graph::Arg, function: &Function) -> Result<Vec<DType>> {
    let call = NodeDef { name: function.name.clone(), attrs: function.attrs.clone(), ..NodeDef::default() };
    Ok(signature.arg_types(arg, &call)?.to_vec())
}
