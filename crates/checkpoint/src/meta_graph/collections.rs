//! Collections of a graph to and from their form in files.

use crate::{QueueRunnerDef, queue_runner_from_record, queue_runner_to_record};
use bytes::Bytes;
use graph::{AttrValue, Function, Graph, Node, TensorName};
use io::saved_model::{Collection, Saver as SaverDef, SliceDef, VariableDef};
use layers::collection::{
    GLOBAL_STEP, GLOBAL_VARIABLES, LOCAL_VARIABLES, METRIC_VARIABLES, MODEL_VARIABLES, MOVING_AVERAGE_VARIABLES,
    QUEUE_RUNNERS, TRAINABLE_VARIABLES,
};
use status::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Collections that hold variables.
const OF_VARIABLES: &[&str] = &[
    GLOBAL_VARIABLES,
    TRAINABLE_VARIABLES,
    LOCAL_VARIABLES,
    MOVING_AVERAGE_VARIABLES,
    MODEL_VARIABLES,
    METRIC_VARIABLES,
    GLOBAL_STEP,
];
/// A record that is a variable.
const VARIABLE: &str = "VariableDef";
/// A record that is a part of a larger variable.
const SLICE: &str = "SaveSliceInfoDef";
/// A record that is a saver.
const SAVER: &str = "SaverDef";
/// A record of bytes whose format is unknown.
const BYTES: &str = "bytes";
/// A record that is an `Any` message.
const ANY: &str = "any";
/// The attribute of such records that has their bytes.
const SERIALIZED: &str = "serialized";

/// The values of a collection.
pub(super) fn export(graph: &Graph, name: &str) -> Collection {
    let values = graph.collection(name);
    let names: Option<Vec<String>> = values.iter().map(|value| node_name(graph, value)).collect();
    let ints: Option<Vec<i64>> = values.iter().map(int).collect();
    let floats: Option<Vec<f32>> = values.iter().map(float).collect();
    if values.is_empty() {
        return Collection::Empty;
    }
    match (names, ints, floats) {
        (Some(names), _, _) => Collection::Nodes(names),
        (_, Some(ints), _) => Collection::Ints(ints),
        (_, _, Some(floats)) => Collection::Floats(floats),
        _ if values.iter().all(|value| is_record(value, ANY)) => {
            Collection::Any(values.iter().filter_map(bytes).collect())
        }
        // Values that have no form in files are left out, as in Python.
        _ => Collection::Bytes(values.iter().filter_map(bytes).collect()),
    }
}

/// Adds values to a collection; names get the prefix of their nodes.
pub(super) fn import(graph: &Graph, name: &str, values: &Collection, prefix: &str) -> Result<()> {
    let records: Vec<AttrValue> = match values {
        Collection::Nodes(names) => names.iter().map(|name| format!("{prefix}{name}").into()).collect(),
        Collection::Ints(values) => values.iter().map(|&value| value.into()).collect(),
        Collection::Floats(values) => values.iter().map(|&value| value.into()).collect(),
        Collection::Any(values) => values.iter().map(|value| serialized(ANY, value.clone())).collect(),
        Collection::Bytes(values) => {
            values.iter().map(|value| from_bytes(name, value, prefix)).collect::<Result<_>>()?
        }
        Collection::Empty => Vec::new(),
    };
    for record in records {
        graph.add_to_collection(name, record);
    }
    Ok(())
}

fn from_bytes(name: &str, value: &Bytes, prefix: &str) -> Result<AttrValue> {
    if OF_VARIABLES.contains(&name) {
        return Ok(variable_record(&VariableDef::read(value.clone())?, prefix));
    }
    if name == crate::saver::SAVERS {
        return Ok(serialized(SAVER, prefixed_saver(&SaverDef::read(value.clone())?, prefix).to_bytes()));
    }
    if name == QUEUE_RUNNERS {
        return Ok(queue_runner_to_record(prefixed_runner(QueueRunnerDef::decode(value)?, prefix)));
    }
    Ok(serialized(BYTES, value.clone()))
}

/// A queue runner whose nodes have a prefix.
fn prefixed_runner(runner: QueueRunnerDef, prefix: &str) -> QueueRunnerDef {
    let prefixed = |name: &String| format!("{prefix}{name}");
    QueueRunnerDef {
        queue: prefixed(&runner.queue),
        enqueue_ops: runner.enqueue_ops.iter().map(prefixed).collect(),
        close_op: prefixed(&runner.close_op),
        cancel_op: prefixed(&runner.cancel_op),
        closed: runner.closed,
    }
}

/// A saver whose nodes have a prefix.
pub(super) fn prefixed_saver(saver: &SaverDef, prefix: &str) -> SaverDef {
    SaverDef {
        filename_tensor: format!("{prefix}{}", saver.filename_tensor),
        save_tensor: format!("{prefix}{}", saver.save_tensor),
        restore_op: format!("{prefix}{}", saver.restore_op),
        ..saver.clone()
    }
}

fn node_name(graph: &Graph, value: &AttrValue) -> Option<String> {
    let AttrValue::String(text) = value else { return None };
    let text = String::from_utf8(text.to_vec()).ok()?;
    Node::find(&graph.root(), TensorName::parse(&text).node)?;
    Some(text)
}

fn int(value: &AttrValue) -> Option<i64> {
    match value {
        AttrValue::Int(value) => Some(*value),
        _ => None,
    }
}

fn float(value: &AttrValue) -> Option<f32> {
    match value {
        AttrValue::Float(value) => Some(*value),
        _ => None,
    }
}

fn is_record(value: &AttrValue, kind: &str) -> bool {
    matches!(value, AttrValue::Func(record) if record.name == kind)
}

fn serialized(kind: &str, value: Bytes) -> AttrValue {
    let attrs = BTreeMap::from([(SERIALIZED.to_string(), AttrValue::String(value))]);
    AttrValue::Func(Arc::new(Function { name: kind.to_string(), attrs }))
}

fn bytes(value: &AttrValue) -> Option<Bytes> {
    match value {
        AttrValue::String(text) => Some(text.clone()),
        AttrValue::Func(record) if record.name == VARIABLE => Some(variable_def(record).to_bytes()),
        AttrValue::Func(record) => match record.attrs.get(SERIALIZED) {
            Some(AttrValue::String(bytes)) => Some(bytes.clone()),
            _ => queue_runner_from_record(value).map(|runner| runner.encode()),
        },
        _ => None,
    }
}

fn text(record: &Function, name: &str) -> String {
    match record.attrs.get(name) {
        Some(AttrValue::String(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

fn variable_def(record: &Function) -> VariableDef {
    let flag = |name: &str| record.attrs.get(name) == Some(&AttrValue::Bool(true));
    let slice = match record.attrs.get("save_slice_info_def") {
        Some(AttrValue::Func(slice)) => Some(slice_def(slice)),
        _ => None,
    };
    VariableDef {
        variable: text(record, "variable_name"),
        initializer: text(record, "initializer_name"),
        snapshot: text(record, "snapshot_name"),
        initial_value: text(record, "initial_value_name"),
        is_resource: flag("is_resource"),
        trainable: flag("trainable"),
        slice,
    }
}

fn slice_def(record: &Function) -> SliceDef {
    let ints = |name: &str| match record.attrs.get(name) {
        Some(AttrValue::List(list)) => list.ints.clone(),
        _ => Vec::new(),
    };
    SliceDef {
        full_name: text(record, "full_name"),
        full_shape: ints("full_shape"),
        offset: ints("var_offset"),
        shape: ints("var_shape"),
    }
}

fn variable_record(variable: &VariableDef, prefix: &str) -> AttrValue {
    let name = |name: &str| match name.is_empty() {
        true => AttrValue::from(""),
        false => format!("{prefix}{name}").into(),
    };
    let mut attrs = BTreeMap::from([
        ("variable_name".to_string(), name(&variable.variable)),
        ("initializer_name".to_string(), name(&variable.initializer)),
        ("snapshot_name".to_string(), name(&variable.snapshot)),
        ("initial_value_name".to_string(), name(&variable.initial_value)),
        ("is_resource".to_string(), variable.is_resource.into()),
        ("trainable".to_string(), variable.trainable.into()),
    ]);
    if let Some(slice) = &variable.slice {
        // The whole variable is known to checkpoints only: its name stays.
        let record = BTreeMap::from([
            ("full_name".to_string(), slice.full_name.as_str().into()),
            ("full_shape".to_string(), slice.full_shape.clone().into()),
            ("var_offset".to_string(), slice.offset.clone().into()),
            ("var_shape".to_string(), slice.shape.clone().into()),
        ]);
        let record = Function { name: SLICE.to_string(), attrs: record };
        attrs.insert("save_slice_info_def".to_string(), AttrValue::Func(Arc::new(record)));
    }
    AttrValue::Func(Arc::new(Function { name: VARIABLE.to_string(), attrs }))
}
