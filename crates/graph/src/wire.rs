//! GraphDef, FunctionDef, AttrValue and OpDef, and back.

use crate::substitute::MAX_DEPTH;
use crate::{
    Arg, ArgType, AttrDef, AttrKind, AttrList, AttrValue, Function, FunctionDef, FunctionLibrary, GraphDef, NodeDef,
    Signature, Versions,
};
use bytes::Bytes;
use prost::Message;
use proto::tensorflow as pb;
use proto::tensorflow::attr_value::Value;
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::DType;
use tensor::wire::{decode_partial_shape, encode_partial_shape};

/// Reads a serialised graph.
pub fn read_graph(bytes: impl Into<Bytes>) -> Result<GraphDef> {
    let message = pb::GraphDef::decode(bytes.into()).map_err(|error| invalid!("Cannot parse GraphDef: {error}"))?;
    decode_graph(message)
}

/// Serialises a graph.
pub fn write_graph(graph: &GraphDef) -> Vec<u8> {
    encode_graph(graph).encode_to_vec()
}

/// Reads a graph.
pub fn decode_graph(message: pb::GraphDef) -> Result<GraphDef> {
    let versions = message.versions.unwrap_or_default();
    Ok(GraphDef {
        nodes: message.node.into_iter().map(|node| decode_node(node).map(Arc::new)).collect::<Result<_>>()?,
        library: message.library.map_or(Ok(FunctionLibrary::default()), decode_library)?,
        versions: Versions {
            producer: versions.producer.max(message.version),
            min_consumer: versions.min_consumer,
            bad_consumers: versions.bad_consumers,
        },
        debug_info: message.debug_info.map_or(Bytes::new(), |info| info.encode_to_vec().into()),
    })
}

/// Writes a graph.
pub fn encode_graph(graph: &GraphDef) -> pb::GraphDef {
    let library = &graph.library;
    let no_library = library.functions.is_empty() && library.gradients.is_empty();
    pb::GraphDef {
        node: graph.nodes.iter().map(|node| encode_node(node)).collect(),
        library: (!no_library).then(|| encode_library(library)),
        versions: Some(encode_versions(&graph.versions)),
        debug_info: read_kept(&graph.debug_info),
        version: 0,
    }
}

fn encode_versions(versions: &Versions) -> pb::VersionDef {
    pb::VersionDef {
        producer: versions.producer,
        min_consumer: versions.min_consumer,
        bad_consumers: versions.bad_consumers.clone(),
    }
}

fn read_kept<M: Message + Default>(bytes: &Bytes) -> Option<M> {
    if bytes.is_empty() { None } else { M::decode(bytes.clone()).ok() }
}

/// Reads a node.
pub fn decode_node(message: pb::NodeDef) -> Result<NodeDef> {
    let debug = message.experimental_debug_info.map(|info| Bytes::from(info.encode_to_vec()));
    let full_type = message.experimental_type.map(|full_type| Bytes::from(full_type.encode_to_vec()));
    let extra = (debug.is_some() || full_type.is_some())
        .then(|| Box::new((debug.unwrap_or_default(), full_type.unwrap_or_default())));
    Ok(NodeDef {
        attrs: decode_attrs(message.attr, 0)?,
        name: message.name,
        op: message.op,
        inputs: message.input,
        device: message.device,
        extra,
    })
}

/// Writes a node.
pub fn encode_node(node: &NodeDef) -> pb::NodeDef {
    pb::NodeDef {
        name: node.name.clone(),
        op: node.op.clone(),
        input: node.inputs.clone(),
        device: node.device.clone(),
        attr: encode_attrs(&node.attrs),
        experimental_debug_info: node.extra.as_ref().and_then(|extra| read_kept(&extra.0)),
        experimental_type: node.extra.as_ref().and_then(|extra| read_kept(&extra.1)),
    }
}

fn decode_attrs(attrs: BTreeMap<String, pb::AttrValue>, depth: usize) -> Result<BTreeMap<String, AttrValue>> {
    attrs.into_iter().map(|(name, value)| Ok((name, decode_attr_at(value, depth)?))).collect()
}

fn encode_attrs(attrs: &BTreeMap<String, AttrValue>) -> BTreeMap<String, pb::AttrValue> {
    attrs.iter().map(|(name, value)| (name.clone(), encode_attr(value))).collect()
}

/// Reads an attribute's value.
pub fn decode_attr(message: pb::AttrValue) -> Result<AttrValue> {
    decode_attr_at(message, 0)
}

fn decode_attr_at(message: pb::AttrValue, depth: usize) -> Result<AttrValue> {
    Ok(match message.value {
        None => AttrValue::Nothing,
        Some(Value::S(s)) => AttrValue::String(s),
        Some(Value::I(i)) => AttrValue::Int(i),
        Some(Value::F(f)) => AttrValue::Float(f),
        Some(Value::B(b)) => AttrValue::Bool(b),
        Some(Value::Type(dtype)) => AttrValue::Type(DType::from_number(dtype)),
        Some(Value::Shape(shape)) => AttrValue::Shape(decode_partial_shape(Some(&shape))),
        Some(Value::Tensor(tensor)) => AttrValue::Tensor(tensor::wire::EncodedTensor::from(*tensor).into()),
        Some(Value::Placeholder(name)) => AttrValue::Placeholder(name),
        Some(Value::Func(func)) => AttrValue::Func(decode_function_name(*func, depth)?),
        Some(Value::List(list)) => decode_list(*list, depth)?.into(),
    })
}

fn decode_list(list: pb::attr_value::ListValue, depth: usize) -> Result<AttrList> {
    Ok(AttrList {
        strings: list.s,
        ints: list.i,
        floats: list.f,
        bools: list.b,
        types: list.r#type.into_iter().map(DType::from_number).collect(),
        shapes: list.shape.iter().map(|shape| decode_partial_shape(Some(shape))).collect(),
        tensors: list.tensor.into_iter().map(|t| tensor::wire::EncodedTensor::from(t).into()).collect(),
        funcs: list.func.into_iter().map(|func| decode_function_name(func, depth)).collect::<Result<_>>()?,
    })
}

fn decode_function_name(message: pb::NameAttrList, depth: usize) -> Result<Arc<Function>> {
    if depth >= MAX_DEPTH {
        return Err(invalid!("Function attributes nest deeper than {MAX_DEPTH}"));
    }
    Ok(Arc::new(Function { name: message.name, attrs: decode_attrs(message.attr, depth + 1)? }))
}

/// Writes an attribute's value.
pub fn encode_attr(value: &AttrValue) -> pb::AttrValue {
    let value = match value {
        AttrValue::Nothing => None,
        AttrValue::String(s) => Some(Value::S(s.clone())),
        AttrValue::Int(i) => Some(Value::I(*i)),
        AttrValue::Float(f) => Some(Value::F(*f)),
        AttrValue::Bool(b) => Some(Value::B(*b)),
        AttrValue::Type(dtype) => Some(Value::Type(dtype.number())),
        AttrValue::Shape(shape) => Some(Value::Shape(encode_partial_shape(shape))),
        AttrValue::Tensor(tensor) => Some(Value::Tensor(Box::new(tensor.encoded().message().clone()))),
        AttrValue::Placeholder(name) => Some(Value::Placeholder(name.clone())),
        AttrValue::Func(func) => Some(Value::Func(Box::new(encode_function_name(func)))),
        AttrValue::List(list) => Some(Value::List(Box::new(encode_list(list)))),
    };
    pb::AttrValue { value }
}

/// Serialises an attribute's value.
pub fn attr_to_bytes(value: &AttrValue) -> Vec<u8> {
    encode_attr(value).encode_to_vec()
}

fn encode_list(list: &AttrList) -> pb::attr_value::ListValue {
    pb::attr_value::ListValue {
        s: list.strings.clone(),
        i: list.ints.clone(),
        f: list.floats.clone(),
        b: list.bools.clone(),
        r#type: list.types.iter().map(|dtype| dtype.number()).collect(),
        shape: list.shapes.iter().map(encode_partial_shape).collect(),
        tensor: list.tensors.iter().map(|tensor| tensor.encoded().message().clone()).collect(),
        func: list.funcs.iter().map(|func| encode_function_name(func)).collect(),
    }
}

fn encode_function_name(func: &Function) -> pb::NameAttrList {
    pb::NameAttrList { name: func.name.clone(), attr: encode_attrs(&func.attrs) }
}

fn decode_library(message: pb::FunctionDefLibrary) -> Result<FunctionLibrary> {
    let mut library = FunctionLibrary::default();
    for function in message.function {
        let function = decode_function(function)?;
        library.functions.insert(function.signature.name.clone(), Arc::new(function));
    }
    library.gradients = message.gradient.into_iter().map(|g| (g.function_name, g.gradient_func)).collect();
    library.registered_gradients = message.registered_gradients.iter().map(|g| g.encode_to_vec().into()).collect();
    Ok(library)
}

fn encode_library(library: &FunctionLibrary) -> pb::FunctionDefLibrary {
    let gradients = library.gradients.iter();
    pb::FunctionDefLibrary {
        function: library.functions.values().map(|function| encode_function(function)).collect(),
        gradient: gradients
            .map(|(name, gradient)| pb::GradientDef { function_name: name.clone(), gradient_func: gradient.clone() })
            .collect(),
        registered_gradients: library.registered_gradients.iter().filter_map(read_kept).collect(),
    }
}

/// Reads a function.
pub fn decode_function(message: pb::FunctionDef) -> Result<FunctionDef> {
    let encoded = message.encode_to_vec().into();
    let arg_attrs = message.arg_attr.into_iter();
    Ok(FunctionDef {
        signature: decode_signature(message.signature.unwrap_or_default())?,
        attrs: decode_attrs(message.attr, 0)?,
        nodes: message.node_def.into_iter().map(|node| decode_node(node).map(Arc::new)).collect::<Result<_>>()?,
        ret: message.ret,
        control_ret: message.control_ret,
        arg_attrs: arg_attrs.map(|(arg, attrs)| Ok((arg, decode_attrs(attrs.attr, 0)?))).collect::<Result<_>>()?,
        resource_arg_unique_id: message.resource_arg_unique_id,
        encoded,
    })
}

/// Writes a function.
pub fn encode_function(function: &FunctionDef) -> pb::FunctionDef {
    if let Some(message) = read_kept(&function.encoded) {
        return message;
    }
    let arg_attrs = function.arg_attrs.iter();
    pb::FunctionDef {
        signature: Some(encode_signature(&function.signature)),
        attr: encode_attrs(&function.attrs),
        node_def: function.nodes.iter().map(|node| encode_node(node)).collect(),
        ret: function.ret.clone(),
        control_ret: function.control_ret.clone(),
        arg_attr: arg_attrs
            .map(|(&arg, attrs)| (arg, pb::function_def::ArgAttrs { attr: encode_attrs(attrs) }))
            .collect(),
        resource_arg_unique_id: function.resource_arg_unique_id.clone(),
    }
}

/// Reads a signature.
pub fn decode_signature(message: pb::OpDef) -> Result<Signature> {
    Ok(Signature {
        name: message.name,
        inputs: message.input_arg.into_iter().map(decode_arg).collect(),
        outputs: message.output_arg.into_iter().map(decode_arg).collect(),
        attrs: message.attr.into_iter().map(decode_attr_def).collect::<Result<_>>()?,
        control_outputs: message.control_output,
        stateful: message.is_stateful,
        commutative: message.is_commutative,
        aggregate: message.is_aggregate,
        allows_uninitialized_input: message.allows_uninitialized_input,
        distributed_communication: message.is_distributed_communication,
    })
}

fn decode_arg(arg: pb::op_def::ArgDef) -> Arg {
    let ty = match (arg.type_list_attr.is_empty(), arg.type_attr.is_empty()) {
        (false, _) => ArgType::List(arg.type_list_attr),
        (true, false) => ArgType::Attr(arg.type_attr),
        (true, true) => ArgType::Fixed(DType::from_number(arg.r#type)),
    };
    let number = (!arg.number_attr.is_empty()).then_some(arg.number_attr);
    Arg { name: arg.name, ty, number, is_ref: arg.is_ref }
}

fn decode_attr_def(attr: pb::op_def::AttrDef) -> Result<AttrDef> {
    let (kind, list) = match attr.r#type.strip_prefix("list(").and_then(|kind| kind.strip_suffix(')')) {
        Some(kind) => (kind, true),
        None => (attr.r#type.as_str(), false),
    };
    let kind = AttrKind::from_name(kind).ok_or_else(|| invalid!("Attr '{}' has unknown type '{kind}'", attr.name))?;
    Ok(AttrDef {
        name: attr.name,
        kind,
        list,
        default: attr.default_value.map(decode_attr).transpose()?,
        minimum: attr.has_minimum.then_some(attr.minimum),
        allowed: attr.allowed_values.map(decode_attr).transpose()?,
    })
}

/// Writes a signature.
pub fn encode_signature(signature: &Signature) -> pb::OpDef {
    pb::OpDef {
        name: signature.name.clone(),
        input_arg: signature.inputs.iter().map(encode_arg).collect(),
        output_arg: signature.outputs.iter().map(encode_arg).collect(),
        attr: signature.attrs.iter().map(encode_attr_def).collect(),
        control_output: signature.control_outputs.clone(),
        is_stateful: signature.stateful,
        is_commutative: signature.commutative,
        is_aggregate: signature.aggregate,
        allows_uninitialized_input: signature.allows_uninitialized_input,
        is_distributed_communication: signature.distributed_communication,
        ..pb::OpDef::default()
    }
}

fn encode_arg(arg: &Arg) -> pb::op_def::ArgDef {
    let mut message = pb::op_def::ArgDef {
        name: arg.name.clone(),
        number_attr: arg.number.clone().unwrap_or_default(),
        is_ref: arg.is_ref,
        ..Default::default()
    };
    match &arg.ty {
        ArgType::Fixed(dtype) => message.r#type = dtype.number(),
        ArgType::Attr(attr) => message.type_attr = attr.clone(),
        ArgType::List(attr) => message.type_list_attr = attr.clone(),
    }
    message
}

fn encode_attr_def(attr: &AttrDef) -> pb::op_def::AttrDef {
    pb::op_def::AttrDef {
        name: attr.name.clone(),
        r#type: attr.kind_name(),
        default_value: attr.default.as_ref().map(encode_attr),
        has_minimum: attr.minimum.is_some(),
        minimum: attr.minimum.unwrap_or(0),
        allowed_values: attr.allowed.as_ref().map(encode_attr),
        ..Default::default()
    }
}
