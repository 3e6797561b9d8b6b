//! Attributes of a node, as its kernel reads them.

use crate::{Callable, Functions, Kernel, Registry, Resources, Setup};
use graph::{AttrValue, Function, NodeDef, Signature};
use status::{Code, Result, not_found};
use std::sync::Arc;
use tensor::{Bytes, DType, PartialShape};

/// A node without a graph.
pub(super) struct Node {
    signature: Signature,
    def: NodeDef,
    types: (Vec<DType>, Vec<DType>),
}

impl Node {
    /// A node `n` of an op with this signature.
    pub fn new(signature: &str) -> Node {
        let signature = Signature::parse(signature).unwrap();
        let def = NodeDef { name: "n".to_string(), op: signature.name.clone(), ..NodeDef::default() };
        Node { signature, def, types: Default::default() }
    }

    pub fn op(mut self, op: &str) -> Node {
        self.def.op = op.to_string();
        self
    }

    pub fn types(mut self, inputs: &[DType], outputs: &[DType]) -> Node {
        self.types = (inputs.to_vec(), outputs.to_vec());
        self
    }

    fn attr(mut self, name: &str, value: AttrValue) -> Node {
        self.def.attrs.insert(name.to_string(), value);
        self
    }

    fn with_setup<R>(&self, read: impl FnOnce(&Setup<'_>) -> R) -> R {
        let resources = Arc::new(Resources::new("localhost"));
        let types = (&self.types.0[..], &self.types.1[..]);
        read(&Setup::new(&self.def, &self.signature, types, "/device:CPU:0", &resources, &NoFunctions))
    }
}

struct NoFunctions;

impl Functions for NoFunctions {
    fn instantiate(&self, function: &Function, _: &str) -> Result<Arc<dyn Callable>> {
        Err(not_found!("{}", function.name))
    }
}

/// The kernel of a node.
pub(super) fn kernel_of(registry: &Registry, node: &Node) -> Result<Kernel> {
    node.with_setup(|setup| registry.kernel(setup))
}

fn node() -> Node {
    Node::new("Op(); flag: bool = true; count: int; rate: float = 0.5; name: string; T: type; shape: shape; f: func")
        .attr("count", AttrValue::Int(3))
        .attr("name", AttrValue::String(Bytes::from_static(b"text")))
        .attr("T", AttrValue::Type(DType::F32))
        .attr("shape", AttrValue::Shape(PartialShape::new(&[2])))
}

#[test]
fn attributes_are_read_by_their_types() {
    node().with_setup(|setup| {
        assert_eq!(setup.int("count").unwrap(), 3);
        assert_eq!(setup.string("name").unwrap(), "text");
        assert_eq!(setup.dtype("T").unwrap(), DType::F32);
        assert_eq!(setup.shape("shape").unwrap(), PartialShape::new(&[2]));
        assert_eq!((setup.name(), setup.device()), ("n", "/device:CPU:0"));
    });
}

#[test]
fn missing_attributes_have_the_defaults_of_the_signature() {
    node().with_setup(|setup| {
        assert!(setup.bool("flag").unwrap());
        assert_eq!(setup.float("rate").unwrap(), 0.5);
        assert!(setup.find("_unknown").is_none());
        assert!(setup.attr("f").is_err()); // required, but not set
    });
    node().attr("flag", AttrValue::Bool(false)).with_setup(|setup| assert!(!setup.bool("flag").unwrap()));
}

#[test]
fn an_attribute_of_another_type_is_an_error() {
    node().with_setup(|setup| {
        let error = setup.int("name").unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::Internal, "attr 'name' of n is not of type 'int'"));
        assert!(setup.bool("count").is_err() && setup.list("count").is_err() && setup.function("T").is_err());
    });
}

#[test]
fn the_error_for_a_missing_kernel_lists_the_types() {
    let message = node().with_setup(|setup| setup.no_kernel()).message;
    assert!(message.starts_with("No OpKernel was registered to support Op 'Op' used by {{node n}}"), "{message}");
    assert!(message.contains("with these attrs: [T=DT_FLOAT]"), "{message}");
}
