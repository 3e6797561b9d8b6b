//! Queue runners as values of a collection.

use graph::{AttrList, AttrValue, Function};
pub use io::saved_model::QueueRunnerDef;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of record, named after TensorFlow's message.
const RECORD: &str = "QueueRunnerDef";

/// A queue runner as a value of a collection.
pub fn queue_runner_to_record(def: QueueRunnerDef) -> AttrValue {
    let mut attrs: BTreeMap<String, AttrValue> = BTreeMap::new();
    let names = def.enqueue_ops.into_iter().map(Into::into).collect();
    attrs.insert("queue_name".to_string(), def.queue.into());
    attrs.insert("enqueue_op_name".to_string(), AttrValue::from(AttrList { strings: names, ..Default::default() }));
    attrs.insert("close_op_name".to_string(), def.close_op.into());
    attrs.insert("cancel_op_name".to_string(), def.cancel_op.into());
    let codes: Vec<i64> = def.closed.iter().map(|&code| code.into()).collect();
    attrs.insert("queue_closed_exception_types".to_string(), codes.into());
    AttrValue::Func(Arc::new(Function { name: RECORD.to_string(), attrs }))
}

/// The queue runner of a value of a collection.
pub fn queue_runner_from_record(record: &AttrValue) -> Option<QueueRunnerDef> {
    let AttrValue::Func(record) = record else { return None };
    let text = |name: &str| match record.attrs.get(name) {
        Some(AttrValue::String(text)) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    let list = |name: &str| match record.attrs.get(name) {
        Some(AttrValue::List(list)) => (**list).clone(),
        _ => AttrList::default(),
    };
    let names = list("enqueue_op_name").strings;
    (record.name == RECORD).then_some(())?;
    Some(QueueRunnerDef {
        queue: text("queue_name")?,
        enqueue_ops: names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
        close_op: text("close_op_name")?,
        cancel_op: text("cancel_op_name")?,
        closed: list("queue_closed_exception_types").ints.iter().map(|&code| code as i32).collect(),
    })
}
