//! The description of a node from which its kernel is built; attributes are read here, once.

use crate::{Callable, Functions, Libraries, Resources, Siblings};
use graph::{AttrList, AttrValue, Function, FunctionLibrary, NodeDef, Signature};
use status::{Result, internal, invalid};
use std::sync::Arc;
use tensor::{Bytes, DType, PartialShape, Tensor};

/// The input of a kernel's constructor.
pub struct Setup<'a> {
    def: &'a NodeDef,
    signature: &'a Signature,
    input_types: &'a [DType],
    output_types: &'a [DType],
    device: &'a str,
    resources: &'a Arc<Resources>,
    functions: &'a dyn Functions,
    siblings: Option<Arc<dyn Siblings>>,
}

impl<'a> Setup<'a> {
    /// Combines everything a kernel may query about its node.
    pub fn new(
        def: &'a NodeDef,
        signature: &'a Signature,
        types: (&'a [DType], &'a [DType]),
        device: &'a str,
        resources: &'a Arc<Resources>,
        functions: &'a dyn Functions,
    ) -> Setup<'a> {
        let (input_types, output_types) = types;
        Setup { def, signature, input_types, output_types, device, resources, functions, siblings: None }
    }

    /// The same node in the body of a function, whose arguments may be handles of resources on these devices.
    pub fn in_function(self, siblings: Arc<dyn Siblings>) -> Setup<'a> {
        Setup { siblings: Some(siblings), ..self }
    }

    /// In the body of a function, the devices of the task.
    pub fn siblings(&self) -> Option<&Arc<dyn Siblings>> {
        self.siblings.as_ref()
    }

    /// The version of the producer of the graph.
    pub fn producer(&self) -> i32 {
        self.functions.producer()
    }

    /// The definitions of the functions that the node may use, if they are known.
    pub fn definitions(&self) -> Option<Arc<FunctionLibrary>> {
        self.functions.definitions()
    }

    /// What makes libraries for graphs that the kernel reads; none where no graph may be read.
    pub fn libraries(&self) -> Option<Arc<dyn Libraries>> {
        self.functions.libraries()
    }

    /// The op as registered.
    pub fn signature(&self) -> &Signature {
        self.signature
    }

    /// The node as described.
    pub fn def(&self) -> &NodeDef {
        self.def
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.def.name
    }

    /// Types of the inputs, references included.
    pub fn input_types(&self) -> &[DType] {
        self.input_types
    }

    /// Types of the outputs, references included.
    pub fn output_types(&self) -> &[DType] {
        self.output_types
    }

    /// Full name of the device the node runs on.
    pub fn device(&self) -> &str {
        self.device
    }

    /// Resources of that device.
    pub fn resources(&self) -> &Arc<Resources> {
        self.resources
    }

    /// An attribute, or its default.
    pub fn attr(&self, name: &str) -> Result<&AttrValue> {
        self.signature.value(self.def, name)
    }

    /// An optional attribute.
    pub fn find(&self, name: &str) -> Option<&AttrValue> {
        self.signature.value(self.def, name).ok()
    }

    /// A bool attribute.
    pub fn bool(&self, name: &str) -> Result<bool> {
        match self.attr(name)? {
            AttrValue::Bool(value) => Ok(*value),
            _ => Err(self.wrong(name, "bool")),
        }
    }

    /// An int attribute.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.attr(name)? {
            AttrValue::Int(value) => Ok(*value),
            _ => Err(self.wrong(name, "int")),
        }
    }

    /// A float attribute.
    pub fn float(&self, name: &str) -> Result<f32> {
        match self.attr(name)? {
            AttrValue::Float(value) => Ok(*value),
            _ => Err(self.wrong(name, "float")),
        }
    }

    /// A string attribute, as UTF-8.
    pub fn string(&self, name: &str) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes(name)?).into_owned())
    }

    /// A string attribute, as bytes.
    pub fn bytes(&self, name: &str) -> Result<Bytes> {
        match self.attr(name)? {
            AttrValue::String(value) => Ok(value.clone()),
            _ => Err(self.wrong(name, "string")),
        }
    }

    /// A type attribute.
    pub fn dtype(&self, name: &str) -> Result<DType> {
        match self.attr(name)? {
            AttrValue::Type(value) => Ok(*value),
            _ => Err(self.wrong(name, "type")),
        }
    }

    /// A shape attribute.
    pub fn shape(&self, name: &str) -> Result<PartialShape> {
        match self.attr(name)? {
            AttrValue::Shape(value) => Ok(value.clone()),
            _ => Err(self.wrong(name, "shape")),
        }
    }

    /// A tensor attribute, decoded.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        match self.attr(name)? {
            AttrValue::Tensor(value) => value.decode(),
            _ => Err(self.wrong(name, "tensor")),
        }
    }

    /// A list attribute of any kind.
    pub fn list(&self, name: &str) -> Result<&AttrList> {
        match self.attr(name)? {
            AttrValue::List(list) => Ok(list),
            _ => Err(self.wrong(name, "list")),
        }
    }

    /// A list of ints.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>> {
        Ok(self.list(name)?.ints.clone())
    }

    /// A list of types.
    pub fn types(&self, name: &str) -> Result<Vec<DType>> {
        Ok(self.list(name)?.types.clone())
    }

    /// A function attribute, instantiated.
    pub fn function(&self, name: &str) -> Result<Arc<dyn Callable>> {
        match self.attr(name)? {
            AttrValue::Func(function) => self.instantiate(function),
            _ => Err(self.wrong(name, "func")),
        }
    }

    /// Instantiates a function by name and attributes.
    pub fn instantiate(&self, function: &Function) -> Result<Arc<dyn Callable>> {
        self.functions.instantiate(function, self.device)
    }

    /// A number that is the same for equal functions, also in other processes; none if that is not known.
    pub fn fingerprint(&self, function: &Function) -> Option<u64> {
        self.functions.fingerprint(function)
    }

    /// The error for an element type without a kernel.
    pub fn no_kernel(&self) -> status::Error {
        let attrs: Vec<String> = self
            .def
            .attrs
            .iter()
            .filter_map(|(name, value)| match value {
                AttrValue::Type(dtype) => Some(format!("{name}={}", dtype.proto_name())),
                _ => None,
            })
            .collect();
        invalid!(
            "No OpKernel was registered to support Op '{}' used by {{{{node {}}}}} with these attrs: [{}]\n\
             Registered devices: [CPU]",
            self.def.op,
            self.def.name,
            attrs.join(", ")
        )
    }

    fn wrong(&self, name: &str, kind: &str) -> status::Error {
        internal!("attr '{name}' of {} is not of type '{kind}'", self.def.name)
    }
}
