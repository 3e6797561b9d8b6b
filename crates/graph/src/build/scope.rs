//! Scopes: name prefix, device, control inputs and colocation of new nodes.

use crate::{DeviceSpec, Graph, Node, NodeDef, NodeId, OpBuilder};
use status::Result;
use std::sync::Arc;

/// A graph with a name prefix, a device, control inputs and colocation for the nodes made in it.
/// A cheap shared handle: every change makes a new scope.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

#[derive(Clone)]
pub(crate) struct Inner {
    pub graph: Graph,
    pub prefix: String,
    /// From the outermost scope to the innermost.
    pub devices: Vec<DeviceRule>,
    pub controls: Vec<NodeId>,
    pub colocate: Vec<String>,
}

/// How a scope determines the device of its nodes, given the result of the scopes inside it.
#[derive(Clone)]
pub(crate) enum DeviceRule {
    /// Fills the parts that are not set yet.
    Spec(DeviceSpec),
    /// Calls a function once for each new node.
    Function(Arc<DeviceFunction>),
}

/// Returns the device of a node from its description (without a device) and from what inner scopes request.
type DeviceFunction = dyn Fn(&NodeDef, &DeviceSpec) -> Result<DeviceSpec> + Send + Sync;

impl Scope {
    pub(crate) fn root(graph: &Graph) -> Scope {
        Scope(Arc::new(Inner {
            graph: graph.clone(),
            prefix: String::new(),
            devices: Vec::new(),
            controls: Vec::new(),
            colocate: Vec::new(),
        }))
    }

    /// The graph the nodes go to.
    pub fn graph(&self) -> &Graph {
        &self.0.graph
    }

    /// The same scope with `name/` before the names of its nodes; a name used before gets a number.
    pub fn named(&self, name: &str) -> Scope {
        let wanted = format!("{}{name}", self.0.prefix);
        let unique = self.0.graph.lock().unique_name(&wanted);
        self.with(|inner| inner.prefix = format!("{unique}/"))
    }

    /// The same scope with exactly this prefix, even if it was used before.
    pub fn reenter(&self, prefix: &str) -> Scope {
        self.with(|inner| inner.prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") })
    }

    /// The prefix of names, with its trailing slash.
    pub fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// The same scope on this device; parts that are not set come from the enclosing scope. A malformed name is
    /// recorded as the graph's error.
    pub fn on(&self, device: &str) -> Scope {
        match DeviceSpec::parse(device) {
            Ok(spec) => self.with(|inner| inner.devices.push(DeviceRule::Spec(spec))),
            Err(error) => {
                self.0.graph.fail(error);
                self.clone()
            }
        }
    }

    /// The same scope without any device.
    pub fn on_any_device(&self) -> Scope {
        self.with(|inner| inner.devices.clear())
    }

    /// The same scope with a device function. It gets a node's description (without a device) and what inner scopes
    /// request, and returns the device; parts it does not set come from the enclosing scope.
    pub fn on_device_of(
        &self,
        rule: impl Fn(&NodeDef, &DeviceSpec) -> Result<DeviceSpec> + Send + Sync + 'static,
    ) -> Scope {
        self.with(|inner| inner.devices.push(DeviceRule::Function(Arc::new(rule))))
    }

    /// The same scope, whose nodes run only after `nodes`.
    pub fn after<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> Scope {
        self.with(|inner| inner.controls.extend(nodes.into_iter().map(Node::id)))
    }

    /// The same scope without control inputs.
    pub fn without_controls(&self) -> Scope {
        self.with(|inner| inner.controls.clear())
    }

    /// The same scope with its nodes colocated with `node`.
    pub fn beside(&self, node: &Node) -> Scope {
        let name = node.name();
        self.with(|inner| {
            inner.colocate.push(name);
            inner.devices.clear();
        })
    }

    /// Starts a node of this op.
    pub fn op(&self, op: &str) -> OpBuilder {
        OpBuilder::new(self, op)
    }

    fn with(&self, change: impl FnOnce(&mut Inner)) -> Scope {
        let mut inner = (*self.0).clone();
        change(&mut inner);
        Scope(Arc::new(inner))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }
}
