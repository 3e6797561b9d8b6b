//! The rows against TensorFlow's own op list.

use graph::{Signature, Signatures};
use std::collections::BTreeMap;

const OP_LIST: &str = include_str!("../../op-list.txt");

#[test]
fn every_row_is_tensorflows() {
    let lines: BTreeMap<&str, &str> =
        OP_LIST.lines().map(|line| (line.split('(').next().unwrap_or_default(), line)).collect();
    let registry = data::registry();
    let mut wrong = Vec::new();
    for name in registry.names() {
        let (Some(ours), Some(line)) = (Signatures::signature(&*registry, name), lines.get(name)) else {
            wrong.push(format!("{name}: TensorFlow has no such op"));
            continue;
        };
        match Signature::parse(line) {
            Ok(theirs) if theirs == *ours => {}
            Ok(_) => wrong.push(format!("{name}: TensorFlow says\n    {line}")),
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} rows differ\n{}\n", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_whole_list_can_be_read() {
    let unread: Vec<String> =
        OP_LIST.lines().filter_map(|line| Signature::parse(line).err()).map(|error| error.message).collect();
    assert!(unread.is_empty(), "{} lines\n{}\n", unread.len(), unread.join("\n"));
}
