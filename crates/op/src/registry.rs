//! The rows of all ops, found by name.

use crate::{Facts, Fusion, Grad, Kernel, PLAIN, Run, Setup};
use graph::{NodeDef, OpFacts, OpSet, ShapeQuery, Signature, Signatures};
use rustc_hash::FxHashMap;
use status::{Result, internal, not_found};
use std::sync::OnceLock;
use tensor::{DType, PartialShape};

/// One op: its signature, shape function, gradient, kernel, and the facts that the planner and the executor need.
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
    /// What other crates need to know about the op; `PLAIN` if nothing.
    pub facts: Facts,
}

/// The table of all ops.
pub struct Registry {
    rows: FxHashMap<&'static str, Row>,
    join: Join,
}

/// An op with its lazily parsed signature: a job uses a few ops of a thousand.
struct Row {
    op: Op,
    signature: OnceLock<Option<Box<Signature>>>,
}

impl Row {
    fn signature(&self) -> Option<&Signature> {
        self.signature.get_or_init(|| Signature::parse(self.op.def).ok().map(Box::new)).as_deref()
    }
}

/// Returns one node that does the work of two: the first, and the second applied to its result. Gets the part of each
/// in such a node.
pub type Join = fn((&NodeDef, Fusion), (&NodeDef, Fusion)) -> Option<NodeDef>;

impl Registry {
    /// Reads tables of ops; an op with two rows is an error. A row with an invalid signature is treated as an unknown
    /// op; `check` reports it.
    pub fn new(tables: &[&[Op]]) -> Result<Registry> {
        let mut rows = FxHashMap::default();
        rows.reserve(tables.iter().map(|table| table.len()).sum());
        for op in tables.iter().copied().flatten() {
            let name = op.def.split('(').next().unwrap_or_default().trim();
            if rows.insert(name, Row { op: *op, signature: OnceLock::new() }).is_some() {
                return Err(internal!("op {name} has two rows"));
            }
        }
        Ok(Registry { rows, join: |_, _| None })
    }

    /// Parses all signatures; the error names the invalid row.
    pub fn check(&self) -> Result<()> {
        self.rows.values().try_for_each(|row| Signature::parse(row.op.def).map(drop))
    }

    /// The same ops with a function that joins pairs of nodes that have a combined kernel.
    pub fn with_join(self, join: Join) -> Registry {
        Registry { join, ..self }
    }

    /// One node for two nodes of 32-bit floats, where the second is the only consumer of the first and reads it as
    /// its first input. It has the inputs of the first, followed by the other inputs of the second.
    pub fn joined(&self, first: &NodeDef, second: &NodeDef) -> Option<NodeDef> {
        let (first_part, second_part) = (self.facts(&first.op).fusion?, self.facts(&second.op).fusion?);
        (self.join)((first, first_part), (second, second_part))
    }

    /// The row of an op.
    pub fn op(&self, name: &str) -> Option<&Op> {
        self.rows.get(name).map(|row| &row.op)
    }

    /// The facts of an op; none for a function or an unknown op.
    pub fn facts(&self, name: &str) -> &Facts {
        self.op(name).map_or(&PLAIN, |op| &op.facts)
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
            kernel.elementwise = op.facts.elementwise;
        }
        Ok(kernel)
    }
}

impl Signatures for Registry {
    fn signature(&self, op: &str) -> Option<&Signature> {
        self.rows.get(op)?.signature()
    }

    fn op_facts(&self, op: &str) -> OpFacts {
        self.facts(op).graph
    }

    fn deprecated(&self, op: &str) -> Option<(i32, &'static str)> {
        self.op(op)?.facts.removed_in
    }
}

impl OpSet for Registry {
    fn infer(&self, query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
        match self.op(&query.def.op) {
            Some(op) => (op.shape)(query),
            None => Ok(vec![PartialShape::unknown(); query.outputs]), // a function
        }
    }
}
