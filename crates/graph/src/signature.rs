//! Signatures: inputs, outputs and attributes of an op, and their types at a given node.

use crate::{AttrValue, NodeDef, OpFacts};
use smallvec::SmallVec;
use status::{Result, invalid};
use tensor::DType;

/// Arguments, results and attributes of an op or a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signature {
    /// Name of the op.
    pub name: String,
    /// Arguments, in order.
    pub inputs: Vec<Arg>,
    /// Results, in order.
    pub outputs: Vec<Arg>,
    /// Attributes, in order.
    pub attrs: Vec<AttrDef>,
    /// Nodes that must run for a function's side effects.
    pub control_outputs: Vec<String>,
    /// Keeps state or has side effects: never folded, merged or run twice.
    pub stateful: bool,
    /// The order of its two inputs does not matter.
    pub commutative: bool,
    /// Sums its inputs.
    pub aggregate: bool,
    /// Accepts a variable without a value.
    pub allows_uninitialized_input: bool,
    /// Communicates with other tasks.
    pub distributed_communication: bool,
}

/// An argument or a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Its name.
    pub name: String,
    /// The types it may have.
    pub ty: ArgType,
    /// The attribute with the number of its tensors; one tensor if none.
    pub number: Option<String>,
    /// A reference to a variable.
    pub is_ref: bool,
}

/// The type of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgType {
    /// Always this type.
    Fixed(DType),
    /// The type in this attribute.
    Attr(String),
    /// One tensor for each type in this attribute's list.
    List(String),
}

/// The definition of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct AttrDef {
    /// Its name.
    pub name: String,
    /// The kind of its value.
    pub kind: AttrKind,
    /// True if the value is a list of that kind.
    pub list: bool,
    /// The value if a node does not set it.
    pub default: Option<AttrValue>,
    /// The minimum of an integer, or the minimum length of a list.
    pub minimum: Option<i64>,
    /// The allowed values; all if none.
    pub allowed: Option<AttrValue>,
}

/// Kinds of attribute values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AttrKind {
    String,
    Int,
    Float,
    Bool,
    Type,
    Shape,
    Tensor,
    Func,
}

impl AttrKind {
    /// Every kind with its name in op definitions.
    const NAMES: [(AttrKind, &'static str); 8] = [
        (AttrKind::String, "string"),
        (AttrKind::Int, "int"),
        (AttrKind::Float, "float"),
        (AttrKind::Bool, "bool"),
        (AttrKind::Type, "type"),
        (AttrKind::Shape, "shape"),
        (AttrKind::Tensor, "tensor"),
        (AttrKind::Func, "func"),
    ];

    /// The name in op definitions and error messages.
    pub fn name(self) -> &'static str {
        // The table lists the kinds in the order of their declaration.
        AttrKind::NAMES[self as usize].1
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<AttrKind> {
        AttrKind::NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

/// A source of signatures and facts by op name.
pub trait Signatures {
    /// The signature of an op.
    fn signature(&self, op: &str) -> Option<&Signature>;

    /// The facts about an op; those of a plain op for a function or an unknown op.
    fn op_facts(&self, op: &str) -> OpFacts;

    /// The graph version from which on an op is rejected, and what to use instead.
    fn deprecated(&self, _op: &str) -> Option<(i32, &'static str)> {
        None
    }
}

/// Types of a node's inputs or outputs, references included.
pub type Types = SmallVec<[DType; 4]>;

impl Signature {
    /// The attribute called `name`.
    pub fn attr(&self, name: &str) -> Option<&AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    /// Types of the inputs of `node`.
    pub fn input_types(&self, node: &NodeDef) -> Result<Types> {
        self.types_of(&self.inputs, node)
    }

    /// Types of the outputs of `node`.
    pub fn output_types(&self, node: &NodeDef) -> Result<Types> {
        self.types_of(&self.outputs, node)
    }

    fn types_of(&self, args: &[Arg], node: &NodeDef) -> Result<Types> {
        let mut types = Types::new();
        for arg in args {
            for dtype in self.arg_types(arg, node)? {
                types.push(if arg.is_ref { dtype.to_ref() } else { dtype });
            }
        }
        Ok(types)
    }

    /// Types of the tensors of one argument at `node`.
    pub fn arg_types(&self, arg: &Arg, node: &NodeDef) -> Result<Types> {
        let dtype = match &arg.ty {
            ArgType::List(attr) => match self.value(node, attr)? {
                AttrValue::List(list) => return Ok(list.types.iter().copied().collect()),
                _ => return Err(wrong_kind(node, attr, "list(type)")),
            },
            ArgType::Fixed(dtype) => *dtype,
            ArgType::Attr(attr) => match self.value(node, attr)? {
                AttrValue::Type(dtype) => *dtype,
                _ => return Err(wrong_kind(node, attr, "type")),
            },
        };
        let count = match &arg.number {
            None => 1,
            Some(attr) => match self.value(node, attr)? {
                AttrValue::Int(count) => usize::try_from(*count)
                    .ok()
                    .filter(|&count| count <= 1 << 24)
                    .ok_or_else(|| invalid!("NodeDef {} has {attr} = {count}, which is out of range", node.name))?,
                _ => return Err(wrong_kind(node, attr, "int")),
            },
        };
        Ok(SmallVec::from_elem(dtype, count))
    }

    /// The value of an attribute at `node`, or its default.
    pub fn value<'a>(&'a self, node: &'a NodeDef, attr: &str) -> Result<&'a AttrValue> {
        node.attrs
            .get(attr)
            .or_else(|| self.attr(attr).and_then(|def| def.default.as_ref()))
            .ok_or_else(|| invalid!("NodeDef missing attr '{attr}' from Op<name={}>", self.name).at_node(&node.name))
    }

    /// Checks every attribute of `node` that this signature names: present, of the right kind, allowed.
    pub fn check_attrs(&self, node: &NodeDef) -> Result<()> {
        for attr in &self.attrs {
            let value = self.value(node, &attr.name)?;
            attr.check(value).map_err(|error| error.at_node(&node.name))?;
        }
        Ok(())
    }
}

impl AttrDef {
    /// Checks that this attribute may have `value`.
    pub fn check(&self, value: &AttrValue) -> Result<()> {
        if !self.holds(value) {
            return Err(invalid!(
                "AttrValue had value with type '{}' when '{}' expected for attr '{}'",
                kind_name(value),
                self.kind_name(),
                self.name
            ));
        }
        self.check_minimum(value)?;
        self.check_allowed(value)
    }

    fn holds(&self, value: &AttrValue) -> bool {
        use AttrKind as K;
        use AttrValue as V;
        match (value, self.kind) {
            (V::Placeholder(_), _) => true,
            (V::List(list), kind) if self.list => {
                let count = match kind {
                    K::String => list.strings.len(),
                    K::Int => list.ints.len(),
                    K::Float => list.floats.len(),
                    K::Bool => list.bools.len(),
                    K::Type => list.types.len(),
                    K::Shape => list.shapes.len(),
                    K::Tensor => list.tensors.len(),
                    K::Func => list.funcs.len(),
                };
                count == list.len()
            }
            (_, _) if self.list => false,
            (V::String(_), K::String) | (V::Int(_), K::Int) | (V::Float(_), K::Float) | (V::Bool(_), K::Bool) => true,
            (V::Type(_), K::Type) | (V::Shape(_), K::Shape) | (V::Tensor(_), K::Tensor) | (V::Func(_), K::Func) => true,
            _ => false,
        }
    }

    fn check_minimum(&self, value: &AttrValue) -> Result<()> {
        let Some(minimum) = self.minimum else { return Ok(()) };
        match value {
            AttrValue::Int(i) if *i < minimum => {
                Err(invalid!("Value for attr '{}' of {i} must be at least minimum {minimum}", self.name))
            }
            AttrValue::List(list) if (list.len() as i64) < minimum => {
                Err(invalid!("Length for attr '{}' of {} must be at least minimum {minimum}", self.name, list.len()))
            }
            _ => Ok(()),
        }
    }

    fn check_allowed(&self, value: &AttrValue) -> Result<()> {
        let Some(AttrValue::List(allowed)) = &self.allowed else { return Ok(()) };
        let refused = match value {
            AttrValue::Type(dtype) if !allowed.types.contains(&dtype.base()) => dtype.to_string(),
            AttrValue::String(text) if !allowed.strings.contains(text) => {
                format!("\"{}\"", String::from_utf8_lossy(text))
            }
            AttrValue::List(list) => match list.types.iter().find(|dtype| !allowed.types.contains(&dtype.base())) {
                Some(dtype) => dtype.to_string(),
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        let names: Vec<String> = match allowed.types.is_empty() {
            false => allowed.types.iter().map(|dtype| dtype.to_string()).collect(),
            true => allowed.strings.iter().map(|text| format!("\"{}\"", String::from_utf8_lossy(text))).collect(),
        };
        Err(invalid!(
            "Value for attr '{}' of {refused} is not in the list of allowed values: {}",
            self.name,
            names.join(", ")
        ))
    }

    /// `type`, `list(int)`, …
    pub fn kind_name(&self) -> String {
        let kind = self.kind.name();
        if self.list { format!("list({kind})") } else { kind.to_string() }
    }
}

fn kind_name(value: &AttrValue) -> &'static str {
    match value {
        AttrValue::String(_) => AttrKind::String.name(),
        AttrValue::Int(_) => AttrKind::Int.name(),
        AttrValue::Float(_) => AttrKind::Float.name(),
        AttrValue::Bool(_) => AttrKind::Bool.name(),
        AttrValue::Type(_) => AttrKind::Type.name(),
        AttrValue::Shape(_) => AttrKind::Shape.name(),
        AttrValue::Tensor(_) => AttrKind::Tensor.name(),
        AttrValue::Func(_) => AttrKind::Func.name(),
        AttrValue::List(_) => "list",
        AttrValue::Placeholder(_) => "placeholder",
        AttrValue::Nothing => "none",
    }
}

fn wrong_kind(node: &NodeDef, attr: &str, kind: &str) -> status::Error {
    invalid!("AttrValue of '{attr}' is not of type '{kind}'").at_node(&node.name)
}
