//! Builds one node: collects inputs and attributes, infers types, validates the rest.

use crate::build::graph::{Built, Inner};
use crate::build::node::INVALID_NODE;
use crate::build::scope::DeviceRule;
use crate::flat::unknown_op;
use crate::{
    Arg, ArgType, AttrList, AttrValue, DeviceSpec, Edge, Node, NodeDef, NodeId, OpSet, Output, Scope, ShapeQuery,
    Signature,
};
use status::{Result, failed_precondition, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

/// A node under construction.
pub struct OpBuilder {
    scope: Scope,
    op: String,
    name: Option<String>,
    scope_name: bool,
    inputs: Vec<Vec<Output>>,
    controls: Vec<NodeId>,
    attrs: BTreeMap<String, AttrValue>,
    device: Option<String>,
}

impl OpBuilder {
    pub(crate) fn new(scope: &Scope, op: &str) -> OpBuilder {
        OpBuilder {
            scope: scope.clone(),
            op: op.to_string(),
            name: None,
            scope_name: false,
            inputs: Vec::new(),
            controls: Vec::new(),
            attrs: BTreeMap::new(),
            device: None,
        }
    }

    /// Sets the name; the default is the name of the op.
    pub fn named(mut self, name: &str) -> OpBuilder {
        self.name = Some(name.to_string());
        self
    }

    /// Uses the name of the scope itself, for a node that stands for its scope: `w` beside `w/read`.
    pub fn named_as_scope(mut self) -> OpBuilder {
        self.scope_name = true;
        self
    }

    /// The next argument.
    pub fn input(mut self, input: &Output) -> OpBuilder {
        self.inputs.push(vec![input.clone()]);
        self
    }

    /// The next argument, which is a list of tensors.
    pub fn inputs<'a>(mut self, inputs: impl IntoIterator<Item = &'a Output>) -> OpBuilder {
        self.inputs.push(inputs.into_iter().cloned().collect());
        self
    }

    /// Sets an attribute that does not follow from the inputs.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> OpBuilder {
        self.attrs.insert(name.to_string(), value.into());
        self
    }

    /// Adds a control input: `node` runs first.
    pub fn after(mut self, node: &Node) -> OpBuilder {
        self.controls.push(node.id());
        self
    }

    /// Sets a device, merged into the scope's.
    pub fn on(mut self, device: &str) -> OpBuilder {
        self.device = Some(device.to_string());
        self
    }

    /// The node's first output.
    pub fn output(self) -> Output {
        self.node().output(0)
    }

    /// All outputs of the node.
    pub fn outputs(self) -> Vec<Output> {
        self.node().outputs()
    }

    /// The node. If it cannot be built, the graph records the error and the returned node is a placeholder.
    pub fn node(mut self) -> Node {
        let entered = self.enter_function();
        let scope = self.scope.clone();
        match entered.and_then(|()| self.build()) {
            Ok(id) => Node::new(&scope, id),
            Err(error) => {
                scope.graph().fail(error);
                Node::new(&scope, INVALID_NODE)
            }
        }
    }

    /// Moves the node into the body of the innermost function from which it reads, which captures its other inputs.
    fn enter_function(&mut self) -> Result<()> {
        let own = self.scope.graph().clone();
        if self.inputs.iter().flatten().all(|input| input.scope().graph().is_same(&own)) {
            return Ok(());
        }
        let scopes = self.inputs.iter().flatten().map(Output::scope);
        if let Some(deepest) = scopes.max_by_key(|scope| scope.graph().depth())
            && deepest.graph().depth() > own.depth()
        {
            self.scope = deepest.clone();
        }
        let graph = self.scope.graph().clone();
        for input in self.inputs.iter_mut().flatten().filter(|input| !input.scope().graph().is_same(&graph)) {
            if graph.depth() <= input.scope().graph().depth() {
                return Err(invalid!(
                    "Tensor {} must be from the same graph as the {} that reads it",
                    input.name(),
                    self.op
                ));
            }
            *input = graph.captured(input);
        }
        Ok(())
    }

    fn build(mut self) -> Result<NodeId> {
        let graph = self.scope.graph().clone();
        let mut inner = graph.lock();
        if inner.finalized {
            return Err(failed_precondition!("Graph is finalized and cannot be modified."));
        }
        let function = inner.library.functions.get(&self.op).cloned();
        let signature = function.as_ref().map(|function| &function.signature);
        let signature = signature.or_else(|| graph.ops().signature(&self.op)).ok_or_else(|| unknown_op(&self.op))?;
        self.infer_attrs(signature, &inner)?;
        let scope_name = self.scope.prefix().trim_end_matches('/');
        let name = match self.scope_name && !scope_name.is_empty() && !inner.names.contains_key(scope_name) {
            true => scope_name.to_string(),
            false => {
                let own = self.name.as_deref().unwrap_or(&self.op);
                inner.unique_name(&format!("{}{own}", self.scope.prefix()))
            }
        };
        let def = self.describe(name, &inner)?;
        signature.check_attrs(&def)?;
        self.check_types(signature, &def, &inner)?;
        let built = self.infer(signature, graph.ops().as_ref(), def, &inner)?;
        let id = inner.nodes.len() as NodeId;
        inner.names.insert(built.def.name.clone(), id);
        inner.nodes.push(built);
        Ok(id)
    }

    /// Infers types, list lengths and type lists from the inputs.
    fn infer_attrs(&mut self, signature: &Signature, inner: &Inner) -> Result<()> {
        if self.inputs.len() != signature.inputs.len() {
            return Err(invalid!(
                "Op {} takes {} arguments, got {}",
                self.op,
                signature.inputs.len(),
                self.inputs.len()
            ));
        }
        for (arg, outputs) in signature.inputs.iter().zip(&self.inputs) {
            let types: Vec<DType> = outputs.iter().map(|output| type_of(inner, output)).collect::<Result<_>>()?;
            match &arg.ty {
                ArgType::List(attr) => {
                    let types = types.iter().map(|dtype| dtype.base()).collect();
                    let list = AttrValue::from(AttrList { types, ..AttrList::default() });
                    self.attrs.entry(attr.clone()).or_insert(list);
                }
                ArgType::Attr(attr) => {
                    if let Some(first) = types.first() {
                        self.attrs.entry(attr.clone()).or_insert(AttrValue::Type(first.base()));
                    }
                }
                ArgType::Fixed(_) => {}
            }
            if let Some(number) = &arg.number {
                self.attrs.entry(number.clone()).or_insert(AttrValue::Int(outputs.len() as i64));
            }
        }
        Ok(())
    }

    fn describe(&self, name: String, inner: &Inner) -> Result<NodeDef> {
        let mut inputs = Vec::new();
        for output in self.inputs.iter().flatten() {
            let source = &inner.nodes[output.node().id() as usize].def.name;
            inputs.push(match output.index() {
                0 => source.clone(),
                index => format!("{source}:{index}"),
            });
        }
        let mut controls: Vec<NodeId> = self.scope.inner().controls.iter().chain(&self.controls).copied().collect();
        controls.sort_unstable();
        controls.dedup();
        for control in controls.into_iter().filter(|&id| id != INVALID_NODE) {
            inputs.push(format!("^{}", inner.nodes[control as usize].def.name));
        }
        let mut attrs = self.attrs.clone();
        if !self.scope.inner().colocate.is_empty() && !attrs.contains_key("_class") {
            let groups = self.scope.inner().colocate.iter().map(|name| format!("loc:@{name}").into()).collect();
            attrs.insert("_class".to_string(), AttrValue::from(AttrList { strings: groups, ..AttrList::default() }));
        }
        let mut def = NodeDef { name, op: self.op.clone(), inputs, device: String::new(), attrs, extra: None };
        def.device = self.device_of(&def)?;
        Ok(def)
    }

    /// The node's own device, completed by the scopes around it from the inside out.
    fn device_of(&self, def: &NodeDef) -> Result<String> {
        let mut spec = match &self.device {
            Some(device) => DeviceSpec::parse(device)?,
            None => DeviceSpec::default(),
        };
        for rule in self.scope.inner().devices.iter().rev() {
            spec = match rule {
                DeviceRule::Spec(outer) => spec.or(outer),
                DeviceRule::Function(rule) => rule(def, &spec)?,
            };
        }
        Ok(spec.to_string())
    }

    fn check_types(&self, signature: &Signature, def: &NodeDef, inner: &Inner) -> Result<()> {
        for (arg, outputs) in signature.inputs.iter().zip(&self.inputs) {
            let wanted = signature.arg_types(arg, def)?;
            if wanted.len() != outputs.len() {
                return Err(invalid!(
                    "Argument '{}' of {} ({}) takes {} tensors, got {}",
                    arg.name,
                    def.name,
                    def.op,
                    wanted.len(),
                    outputs.len()
                ));
            }
            for (output, &dtype) in outputs.iter().zip(&wanted) {
                check_type(arg, def, type_of(inner, output)?, dtype, output, inner)?;
            }
        }
        Ok(())
    }

    fn infer(self, signature: &Signature, ops: &dyn OpSet, def: NodeDef, inner: &Inner) -> Result<Built> {
        let types = signature.output_types(&def)?;
        let edges: Vec<Edge> = self
            .inputs
            .iter()
            .flatten()
            .map(|output| Edge { node: output.node().id(), index: output.index() as u32 })
            .collect();
        let source = |edge: &Edge| &inner.nodes[edge.node as usize];
        let shapes: Vec<PartialShape> =
            edges.iter().map(|edge| source(edge).shapes[edge.index as usize].clone()).collect();
        let constants: Vec<Option<Tensor>> =
            edges.iter().map(|edge| source(edge).constant.clone().filter(|_| edge.index == 0)).collect();
        let variables: Vec<Option<(DType, PartialShape)>> =
            edges.iter().map(|edge| source(edge).variable.clone().filter(|_| edge.index == 0)).collect();
        let query = ShapeQuery {
            def: &def,
            signature,
            inputs: &shapes,
            constants: &constants,
            variables: &variables,
            outputs: types.len(),
        };
        let outputs = ops.infer(&query).map_err(|error| {
            let sources = edges.iter().map(|edge| (source(edge).def.as_ref(), edge.index));
            shape_error(error, &def, &shapes, sources)
        })?;
        let facts = ops.op_facts(&def.op);
        let constant = super::output_constant(&def, facts.static_value, &shapes, &constants);
        let variable = super::output_variable(&def, facts, &variables);
        Ok(Built { def: Arc::new(def), inputs: edges, types, shapes: outputs, constant, variable })
    }
}

fn type_of(inner: &Inner, output: &Output) -> Result<DType> {
    let built = inner.nodes.get(output.node().id() as usize);
    built
        .and_then(|built| built.types.get(output.index()).copied())
        .ok_or_else(|| invalid!("An input could not be built, or has no output {}", output.index()))
}

fn check_type(arg: &Arg, def: &NodeDef, found: DType, wanted: DType, output: &Output, inner: &Inner) -> Result<()> {
    if found.base() == wanted.base() && (!arg.is_ref || found.is_ref()) {
        return Ok(());
    }
    let source = &inner.nodes[output.node().id() as usize].def.name;
    Err(invalid!(
        "Argument '{}' of {} ({}) must be {wanted}{}, but {source}:{} is {found}",
        arg.name,
        def.name,
        def.op,
        if arg.is_ref { " reference" } else { "" },
        output.index()
    ))
}

/// Says what was built, the shapes it got, and which node each shape comes from.
fn shape_error<'a>(
    mut error: status::Error,
    def: &NodeDef,
    shapes: &[PartialShape],
    sources: impl Iterator<Item = (&'a NodeDef, u32)>,
) -> status::Error {
    let shapes: Vec<String> = shapes.iter().map(|shape| shape.to_string()).collect();
    let sources: Vec<String> =
        sources.map(|(source, index)| format!("'{}:{index}' (op: '{}')", source.name, source.op)).collect();
    error.message = format!(
        "{} for '{}' (op: '{}') with input shapes: {} from inputs: {}",
        error.message,
        def.name,
        def.op,
        shapes.join(", "),
        sources.join(", ")
    );
    error
}
