//! A graph that real TensorFlow wrote, read and written again.

use crate::wire::{decode_graph, encode_graph, read_graph, write_graph};
use crate::{AttrValue, GraphDef};
use prost::Message;
use proto::tensorflow as pb;

/// Written by `fixtures.py`: a variable on a device, a function, a cond, a while loop and gradients.
pub(super) const GRAPH: &[u8] = include_bytes!("control_flow.pb");

fn graph() -> GraphDef {
    read_graph(GRAPH).unwrap()
}

#[test]
fn a_graph_of_tensorflow_is_read() {
    let graph = graph();
    let node = |name: &str| graph.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!((node("x").op.as_str(), node("w").device.as_str()), ("Placeholder", "/job:ps/task:1"));
    assert_eq!(node("product").inputs, ["x", "product/ReadVariableOp"]);
    assert_eq!(node("chosen").op, "StatelessIf");
    let AttrValue::Func(branch) = &node("chosen").attrs["then_branch"] else { panic!("no function") };
    assert!(graph.library.functions.contains_key(&branch.name));
    assert!(graph.nodes.iter().any(|node| node.op == "StatelessWhile"));
    assert!(graph.nodes.iter().any(|node| node.inputs.iter().any(|input| input == "^product")));
    let AttrValue::Tensor(text) = &node("text").attrs["value"] else { panic!("no tensor") };
    assert_eq!(text.decode().unwrap().strings().unwrap(), [&b"a"[..], &b"\x00\xff"[..]]);
    assert!(graph.versions.producer > 1000);
}

#[test]
fn it_comes_back_as_it_was() {
    let again = read_graph(write_graph(&graph())).unwrap();
    assert_eq!(again, graph());
    let (mut theirs, mut ours) = (pb::GraphDef::decode(GRAPH).unwrap(), encode_graph(&graph()));
    for message in [&mut theirs, &mut ours] {
        // The library is a set: its order means nothing.
        if let Some(library) = &mut message.library {
            library
                .function
                .sort_by_key(|function| function.signature.as_ref().map(|signature| signature.name.clone()));
        }
    }
    assert_eq!(ours, theirs);
}

#[test]
fn functions_made_here_are_written_as_those_read() {
    let mut graph = graph();
    for function in graph.library.functions.values_mut() {
        let mut fresh = (**function).clone();
        fresh.encoded = Default::default();
        *function = fresh.into();
    }
    let again = decode_graph(encode_graph(&graph)).unwrap();
    for (name, function) in &graph.library.functions {
        let found = &again.library.functions[name];
        assert_eq!((&found.signature, &found.nodes, &found.ret), (&function.signature, &function.nodes, &function.ret));
        assert_eq!((&found.attrs, &found.arg_attrs), (&function.attrs, &function.arg_attrs));
    }
}

#[test]
fn attributes_do_not_nest_without_end() {
    let mut value = pb::AttrValue::default();
    for _ in 0..45 {
        let func = pb::NameAttrList { name: "f".into(), attr: [("a".to_string(), value)].into() };
        value = pb::AttrValue { value: Some(pb::attr_value::Value::Func(Box::new(func))) };
    }
    assert!(crate::wire::decode_attr(value).unwrap_err().message.contains("nest deeper"));
}
