//! A scope: where new nodes go, what they are called, and what they wait for.

use crate::{DeviceSpec, Graph, Node, NodeId, OpBuilder};
use std::sync::Arc;

/// A graph with a name prefix, a device, control inputs and colocation for the nodes made in it.
/// A cheap shared handle: every change makes a new scope.
#[derive(Clone)]
pub struct Scope(Arc<Inner>);

#[derive(Clone)]
pub(crate) struct Inner {
    pub graph: Graph,
    pub prefix: String,
    pub device: DeviceRule,
    pub controls: Vec<NodeId>,
    pub colocate: Vec<String>,
}

/// How a node gets its device.
#[derive(Clone)]
pub(crate) enum DeviceRule {
    /// This one.
    Spec(DeviceSpec),
    /// Whatever the function says of the node's op and the device of inner scopes; evaluated once, when
    /// the node is made.
    Function(Arc<dyn Fn(&str, &str, &DeviceSpec) -> DeviceSpec + Send + Sync>, DeviceSpec),
}

impl Scope {
    pub(crate) fn root(graph: &Graph) -> Scope {
        Scope(Arc::new(Inner {
            graph: graph.clone(),
            prefix: String::new(),
            device: DeviceRule::Spec(DeviceSpec::default()),
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

    /// The same scope on this device; parts it leaves open come from the scope around it.
    /// A name that cannot be read is remembered as the graph's error.
    pub fn on(&self, device: &str) -> Scope {
        match DeviceSpec::parse(device) {
            Ok(spec) => self.with(|inner| {
                inner.device = match &inner.device {
                    DeviceRule::Spec(outer) => DeviceRule::Spec(spec.or(outer)),
                    DeviceRule::Function(rule, outer) => DeviceRule::Function(rule.clone(), spec.or(outer)),
                }
            }),
            Err(error) => {
                self.0.graph.fail(error);
                self.clone()
            }
        }
    }

    /// The same scope without any device.
    pub fn on_any_device(&self) -> Scope {
        self.with(|inner| inner.device = DeviceRule::Spec(DeviceSpec::default()))
    }

    /// The same scope with a device function: given a node's op, its name and the device that inner
    /// scopes ask for, it says the device.
    pub fn on_device_of(&self, rule: impl Fn(&str, &str, &DeviceSpec) -> DeviceSpec + Send + Sync + 'static) -> Scope {
        self.with(|inner| inner.device = DeviceRule::Function(Arc::new(rule), DeviceSpec::default()))
    }

    /// The same scope, whose nodes run only after `nodes`.
    pub fn after<'a>(&self, nodes: impl IntoIterator<Item = &'a Node>) -> Scope {
        self.with(|inner| inner.controls.extend(nodes.into_iter().map(Node::id)))
    }

    /// The same scope without control inputs.
    pub fn without_controls(&self) -> Scope {
        self.with(|inner| inner.controls.clear())
    }

    /// The same scope, whose nodes go to the device of `node`.
    pub fn beside(&self, node: &Node) -> Scope {
        let name = node.name();
        self.with(|inner| {
            inner.colocate.push(name);
            inner.device = DeviceRule::Spec(DeviceSpec::default());
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
