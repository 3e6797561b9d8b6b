//! Pairs of ops that one kernel can run together.

use graph::{AttrList, AttrValue, NodeDef};
use tensor::{Bytes, DType};

/// A product or convolution with what follows it: first a bias, then an activation.
pub(crate) fn joined(first: &NodeDef, second: &NodeDef) -> Option<NodeDef> {
    let is_float = |node: &NodeDef| node.attrs.get("T") == Some(&AttrValue::Type(DType::F32));
    if !is_float(first) || !is_float(second) {
        return None;
    }
    match (first.op.as_str(), second.op.as_str()) {
        ("MatMul" | "Conv2D", "BiasAdd") if channels_last(first) && channels_last(second) => {
            Some(with_bias(first, second))
        }
        ("_FusedMatMul" | "_FusedConv2D", "Relu" | "Relu6" | "Elu" | "Tanh" | "Sigmoid" | "LeakyRelu") => {
            with_activation(first, second)
        }
        _ => None,
    }
}

fn channels_last(node: &NodeDef) -> bool {
    match node.attrs.get("data_format") {
        Some(AttrValue::String(format)) => &format[..] == b"NHWC",
        _ => true,
    }
}

fn with_bias(product: &NodeDef, bias: &NodeDef) -> NodeDef {
    let mut attrs = product.attrs.clone();
    attrs.retain(|name, _| !name.starts_with('_'));
    attrs.insert("num_args".to_string(), AttrValue::Int(1));
    attrs.insert("fused_ops".to_string(), names(&["BiasAdd".into()]));
    if product.op == "Conv2D" {
        attrs.insert("TArgs".to_string(), AttrValue::from(AttrList { types: vec![DType::F32], ..AttrList::default() }));
    }
    NodeDef { op: format!("_Fused{}", product.op), attrs, ..bias.clone() }
}

fn with_activation(product: &NodeDef, activation: &NodeDef) -> Option<NodeDef> {
    let Some(AttrValue::List(done)) = product.attrs.get("fused_ops") else { return None };
    let [only] = &done.strings[..] else { return None };
    let mut attrs = product.attrs.clone();
    attrs.insert("fused_ops".to_string(), names(&[only.clone(), activation.op.clone().into()]));
    if let Some(alpha) = activation.attrs.get("alpha") {
        attrs.insert("leakyrelu_alpha".to_string(), alpha.clone());
    }
    Some(NodeDef { op: product.op.clone(), attrs, ..activation.clone() })
}

fn names(ops: &[Bytes]) -> AttrValue {
    AttrValue::from(AttrList { strings: ops.to_vec(), ..AttrList::default() })
}
