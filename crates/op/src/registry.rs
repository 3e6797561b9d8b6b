//! The rows of all ops, found by name.

use crate::{Elementwise, Grad, Kernel, Run, Setup};
use graph::{NodeDef, OpSet, ShapeQuery, Signature, Signatures};
use rustc_hash::FxHashMap;
use status::{Result, internal, not_found};
use std::sync::OnceLock;
use tensor::{DType, PartialShape};

/// One op: what it takes and gives, how shapes follow, its derivative, and how it is computed.
#[derive(Clone, Copy)]
pub struct Op {
    /// The signature as text; see `graph::Signature::parse`.
    pub def: &'static str,
    /// Shapes of the outputs.
    pub shape: fn(&ShapeQuery<'_>) -> Result<Vec<PartialShape>>,
    /// The derivative.
    pub grad: Grad,
    /// Makes the kernel of a node, reading its attributes once.
    pub kernel: fn(&Setup<'_>) -> Result<Kernel>,
}

/// All ops that there are.
pub struct Registry {
    rows: FxHashMap<&'static str, Row>,
    elementwise: fn(&str) -> Option<Elementwise>,
    joined: Join,
    deprecated: fn(&str) -> Option<(i32, &'static str)>,
}

/// An op, and its signature once somebody asked for it: a job uses a few of a thousand.
struct Row {
    op: Op,
    signature: OnceLock<Option<Box<Signature>>>,
}

impl Row {
    fn signature(&self) -> Option<&Signature> {
        self.signature.get_or_init(|| Signature::parse(self.op.def).ok().map(Box::new)).as_deref()
    }
}

/// One node that does what two do: the first, and the second to its result.
pub type Join = fn(&NodeDef, &NodeDef) -> Option<NodeDef>;

impl Registry {
    /// Reads tables of ops; an op that comes twice is an error. A row that cannot be read is an op that there is not:
    /// `check` says which.
    pub fn new(tables: &[&[Op]]) -> Result<Registry> {
        let mut rows = FxHashMap::default();
        rows.reserve(tables.iter().map(|table| table.len()).sum());
        for op in tables.iter().copied().flatten() {
            let name = op.def.split('(').next().unwrap_or_default().trim();
            if rows.insert(name, Row { op: *op, signature: OnceLock::new() }).is_some() {
                return Err(internal!("op {name} has two rows"));
            }
        }
        Ok(Registry { rows, elementwise: |_| None, joined: |_, _| None, deprecated: |_| None })
    }

    /// Reads all rows; an error names the one that cannot be read.
    pub fn check(&self) -> Result<()> {
        self.rows.values().try_for_each(|row| Signature::parse(row.op.def).map(drop))
    }

    /// The same ops; `elementwise` says what an op does to every 32-bit float, if that is all it does.
    pub fn with_elementwise(self, elementwise: fn(&str) -> Option<Elementwise>) -> Registry {
        Registry { elementwise, ..self }
    }

    /// The same ops; `joined` says which two nodes have a kernel that does the work of both.
    pub fn with_joined(self, joined: Join) -> Registry {
        Registry { joined, ..self }
    }

    /// The same ops; `deprecated` says from which version of graphs on an op is gone, and what to use instead.
    pub fn with_deprecated(self, deprecated: fn(&str) -> Option<(i32, &'static str)>) -> Registry {
        Registry { deprecated, ..self }
    }

    /// One node for two 32-bit ones, of which the second alone reads the first, as its first input. It takes the
    /// inputs of the first and then the other inputs of the second.
    pub fn joined(&self, first: &NodeDef, second: &NodeDef) -> Option<NodeDef> {
        (self.joined)(first, second)
    }

    /// The row of an op.
    pub fn op(&self, name: &str) -> Option<&Op> {
        self.rows.get(name).map(|row| &row.op)
    }

    /// The names of all ops.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().copied()
    }

    /// The kernel of a node.
    pub fn kernel(&self, setup: &Setup<'_>) -> Result<Kernel> {
        let op = self.op(&setup.def().op).ok_or_else(|| not_found!("Op type not registered '{}'", setup.def().op))?;
        let mut kernel = (op.kernel)(setup).map_err(|error| error.at_node(&setup.def().name))?;
        let all_float = setup.input_types().iter().chain(setup.output_types()).all(|&dtype| dtype == DType::F32);
        if all_float && matches!(kernel.run, Run::Unary(_) | Run::Binary(_)) {
            kernel.elementwise = (self.elementwise)(&setup.def().op);
        }
        Ok(kernel)
    }
}

impl Signatures for Registry {
    fn signature(&self, op: &str) -> Option<&Signature> {
        self.rows.get(op)?.signature()
    }

    fn deprecated(&self, op: &str) -> Option<(i32, &'static str)> {
        (self.deprecated)(op)
    }
}

impl OpSet for Registry {
    fn signature(&self, op: &str) -> Option<&Signature> {
        Signatures::signature(self, op)
    }

    fn infer(&self, query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
        match self.op(&query.def.op) {
            Some(op) => (op.shape)(query),
            None => Ok(vec![PartialShape::unknown(); query.outputs]), // a function
        }
    }
}
