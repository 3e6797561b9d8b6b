//! Variables as values of collections: the names of the nodes they are made of.

use super::{Inner, Kind, SaveSlice, Variable};
use crate::collection::{GLOBAL_VARIABLES, LOCAL_VARIABLES};
use graph::{AttrValue, Function, Graph, Node, Output, Scope, TensorName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of record, named as TensorFlow names its message.
const RECORD: &str = "VariableDef";

impl Variable {
    /// The variable as a value of a collection.
    pub(crate) fn to_record(&self) -> AttrValue {
        let mut attrs: BTreeMap<String, AttrValue> = BTreeMap::new();
        let mut set = |name: &str, value: AttrValue| attrs.insert(name.to_string(), value);
        set("variable_name", self.handle().name().into());
        set("initializer_name", self.initializer().name().into());
        set("snapshot_name", self.value().name().into());
        set("initial_value_name", self.initial_value().name().into());
        set("is_resource", (self.kind() == Kind::Resource).into());
        set("trainable", self.is_trainable().into());
        set("dtype", self.dtype().into());
        if let Some(slice) = self.slice() {
            set("save_slice_info_def", slice.to_record());
        }
        AttrValue::Func(Arc::new(Function { name: RECORD.to_string(), attrs }))
    }

    /// The variable of this name, if the graph has one; further nodes are built of it in `scope`.
    pub(crate) fn find(scope: &Scope, name: &str) -> Option<Variable> {
        let handle = AttrValue::from(format!("{name}:0"));
        let is_it = |record: &AttrValue| match record {
            AttrValue::Func(record) => record.attrs.get("variable_name") == Some(&handle),
            _ => false,
        };
        let graph = scope.graph();
        let record =
            [GLOBAL_VARIABLES, LOCAL_VARIABLES].iter().find_map(|name| graph.collection(name).into_iter().find(is_it));
        let found = Variable::from_record(graph, &record?)?;
        let inner = &*found.0;
        let (handle, value) = (inner.handle.seen_from(scope), inner.value.seen_from(scope));
        Some(Variable(Arc::new(Inner { handle, value, ..inner.clone() })))
    }

    /// The variable that a value of a collection means.
    pub(crate) fn from_record(graph: &Graph, record: &AttrValue) -> Option<Variable> {
        let AttrValue::Func(record) = record else { return None };
        if record.name != RECORD {
            return None;
        }
        let text = |name: &str| match record.attrs.get(name) {
            Some(AttrValue::String(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        let output = |name: &str| find(graph, &text(name)?);
        let dtype = match record.attrs.get("dtype") {
            Some(AttrValue::Type(dtype)) => *dtype,
            _ => output("snapshot_name")?.dtype(),
        };
        let initializer = Node::find(&graph.root(), &text("initializer_name")?)?;
        Some(Variable(Arc::new(Inner {
            handle: output("variable_name")?,
            value: output("snapshot_name")?,
            // Old files do not name it; it is what is assigned.
            initial_value: output("initial_value_name").or_else(|| initializer.all_inputs().get(1).cloned())?,
            initializer,
            trainable: record.attrs.get("trainable") == Some(&AttrValue::Bool(true)),
            dtype,
            slice: record.attrs.get("save_slice_info_def").and_then(SaveSlice::from_record),
        })))
    }
}

fn find(graph: &Graph, name: &str) -> Option<Output> {
    let name = TensorName::parse(name);
    Some(Node::find(&graph.root(), name.node)?.output(name.index? as usize))
}
