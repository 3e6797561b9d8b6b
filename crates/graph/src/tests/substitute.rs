//! Attributes of calls that grow with every level of calls.

use crate::{AttrList, AttrValue, Function, NodeDef};
use status::Code;
use std::collections::BTreeMap;
use std::sync::Arc;

fn function(attr: AttrValue) -> Function {
    Function { name: "f".to_string(), attrs: BTreeMap::from([("g".to_string(), attr)]) }
}

/// A node whose attribute has `count` functions that get the attribute `g` of the call.
fn node(count: usize) -> NodeDef {
    let inner = Arc::new(function(AttrValue::Placeholder("g".to_string())));
    let list = AttrList { funcs: vec![inner; count], ..AttrList::default() };
    let attrs = BTreeMap::from([("g".to_string(), AttrValue::from(list))]);
    NodeDef { name: "n".to_string(), attrs, ..NodeDef::default() }
}

/// Substitutes until it fails; how often that went well, and the error.
fn rounds(count: usize) -> (usize, status::Error) {
    let (node, mut call) = (node(count), function(AttrValue::Int(1)));
    for round in 0.. {
        match node.with_attrs_of(&call) {
            Ok(substituted) => call = function(substituted.attrs["g"].clone()),
            Err(error) => return (round, error),
        }
    }
    unreachable!("a function that passes its attributes on has no end")
}

#[test]
fn an_attribute_gets_the_value_of_the_call() {
    let substituted = node(1).with_attrs_of(&function(AttrValue::Int(7))).unwrap();
    let AttrValue::List(list) = &substituted.attrs["g"] else { panic!("no list") };
    assert_eq!(list.funcs[0].attrs["g"], AttrValue::Int(7));
}

#[test]
fn functions_that_nest_in_attributes_without_end_are_refused() {
    for (count, expected) in [(1, 32), (2, 11)] {
        let (rounds, error) = rounds(count);
        assert_eq!((rounds, error.code), (expected, Code::ResourceExhausted));
        assert!(error.message.starts_with("In function f, attribute 'g' of node 'n'"), "{}", error.message);
    }
}
