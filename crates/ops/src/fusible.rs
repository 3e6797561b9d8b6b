//! Nodes that do the work of several: a product, the bias that is added to it, and an activation.

use graph::{AttrList, AttrValue, NodeDef};
use op::Fusion;
use tensor::{Bytes, DType};

/// Combines a product or convolution with the node that reads it: first a bias, then an activation.
pub(crate) fn join(
    (first, first_part): (&NodeDef, Fusion),
    (second, second_part): (&NodeDef, Fusion),
) -> Option<NodeDef> {
    let is_float = |node: &NodeDef| node.attrs.get("T") == Some(&AttrValue::Type(DType::F32));
    if !is_float(first) || !is_float(second) {
        return None;
    }
    match (first_part, second_part) {
        (Fusion::Product { combined, arg_types }, Fusion::Bias) if channels_last(first) && channels_last(second) => {
            Some(with_bias(combined, arg_types, first, second))
        }
        (Fusion::Combined, Fusion::Activation) => with_activation(first, second),
        _ => None,
    }
}

fn channels_last(node: &NodeDef) -> bool {
    match node.attrs.get("data_format") {
        Some(AttrValue::String(format)) => &format[..] == b"NHWC",
        _ => true,
    }
}

fn with_bias(combined: &str, arg_types: Option<&str>, product: &NodeDef, bias: &NodeDef) -> NodeDef {
    let mut attrs = product.attrs.clone();
    attrs.retain(|name, _| !name.starts_with('_'));
    attrs.insert("num_args".to_string(), AttrValue::Int(1));
    attrs.insert("fused_ops".to_string(), names(&[bias.op.clone().into()]));
    if let Some(attr) = arg_types {
        attrs.insert(attr.to_string(), AttrValue::from(AttrList { types: vec![DType::F32], ..AttrList::default() }));
    }
    NodeDef { op: combined.to_string(), attrs, ..bias.clone() }
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
