//! Where a dataset comes from: the node that made it, and the inputs of the node.

use graph::wire::attr_to_bytes;
use graph::{AttrValue, FunctionLibrary, NodeDef, hash64};
use op::{Home, Setup};
use std::sync::Arc;
use tensor::Tensor;

/// A node that makes datasets.
pub struct Maker {
    /// The node, with the attributes that have defaults, and without hints.
    pub node: NodeDef,
    /// The fingerprint of its op and attributes; none if it uses a function whose definition is not known.
    pub fingerprint: Option<u64>,
    /// The inputs that do not count when datasets are compared.
    pub seeds: Vec<usize>,
    /// Its device, unless no input refers to a resource.
    pub home: Option<Home>,
    /// The functions that it may use.
    pub functions: Option<Arc<FunctionLibrary>>,
    /// The version of the producer of its graph.
    pub producer: i32,
}

/// The node that made a dataset, and its inputs.
pub struct Origin {
    /// The node.
    pub maker: Arc<Maker>,
    /// All inputs of the node.
    pub inputs: Vec<Tensor>,
}

impl Maker {
    /// The node of a kernel; datasets are equal whatever the inputs at the positions `seeds` are.
    pub fn of(setup: &Setup<'_>, seeds: Vec<usize>) -> Arc<Maker> {
        let names = setup.signature().attrs.iter().map(|attr| &attr.name);
        let attrs = names.filter_map(|name| Some((name.clone(), setup.find(name)?.clone()))).collect();
        let def = setup.def();
        Arc::new(Maker {
            node: NodeDef { name: def.name.clone(), op: def.op.clone(), attrs, ..NodeDef::default() },
            fingerprint: fingerprint_of_node(setup),
            seeds,
            home: Some(Home::of(setup)),
            functions: setup.definitions(),
            producer: setup.producer(),
        })
    }

    /// A node that is in no graph, for a dataset that an iterator made.
    pub fn described(node: NodeDef) -> Arc<Maker> {
        Arc::new(Maker { node, fingerprint: None, seeds: Vec::new(), home: None, functions: None, producer: 0 })
    }
}

impl Origin {
    /// The inputs that count when datasets are compared.
    pub fn compared(&self) -> impl Iterator<Item = &Tensor> {
        let counts = |(index, _): &(usize, &Tensor)| !self.maker.seeds.contains(index);
        self.inputs.iter().enumerate().filter(counts).map(|(_, input)| input)
    }
}

fn fingerprint_of_node(setup: &Setup<'_>) -> Option<u64> {
    let mut text = setup.def().op.clone();
    let counts = |name: &str| !name.starts_with('_') && name != "metadata";
    for (name, value) in setup.def().attrs.iter().filter(|(name, _)| counts(name)) {
        text += &format!(";{name}={}", fingerprint_of_attr(setup, value)?);
    }
    Some(hash64(text.as_bytes()))
}

fn fingerprint_of_attr(setup: &Setup<'_>, value: &AttrValue) -> Option<u64> {
    match value {
        AttrValue::Func(function) => setup.fingerprint(function),
        AttrValue::List(list) if !list.funcs.is_empty() => {
            let each = list.funcs.iter().map(|function| setup.fingerprint(function));
            Some(hash64(format!("{:?}", each.collect::<Option<Vec<u64>>>()?).as_bytes()))
        }
        _ => Some(hash64(&attr_to_bytes(value))),
    }
}
