//! Conversion of saved-model messages to the types of this crate. Parts that it does not interpret are declared as
//! bytes: a nested message is encoded as its length and its bytes, so its content is preserved.

use super::meta_graph::{Asset, Collection, MetaGraph, Saver, Signature, TensorInfo, TensorName};
use super::variable::{SliceDef, VariableDef};
use super::{QueueRunnerDef, SavedModel};
use crate::fs::data_loss;
use bytes::Bytes;
use prost::Message;
use proto::tensorflow as pb;
use status::Result;
use std::collections::BTreeMap;
use tensor::DType;
use tensor::wire::{decode_partial_shape, encode_partial_shape};

/// `tensorflow.SavedModel`.
#[derive(Clone, PartialEq, Message)]
struct RawModel {
    #[prost(int64, tag = "1")]
    version: i64,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    meta_graphs: Vec<Bytes>,
}

/// `tensorflow.MetaGraphDef`.
#[derive(Clone, PartialEq, Message)]
struct RawMetaGraph {
    #[prost(message, optional, tag = "1")]
    info: Option<RawInfo>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    graph: Option<Bytes>,
    #[prost(message, optional, tag = "3")]
    saver: Option<pb::SaverDef>,
    #[prost(btree_map = "string, message", tag = "4")]
    collections: BTreeMap<String, RawCollection>,
    #[prost(btree_map = "string, message", tag = "5")]
    signatures: BTreeMap<String, RawSignature>,
    #[prost(message, repeated, tag = "6")]
    assets: Vec<RawAsset>,
    #[prost(bytes = "bytes", optional, tag = "7")]
    object_graph: Option<Bytes>,
}

/// `tensorflow.MetaGraphDef.MetaInfoDef`.
#[derive(Clone, PartialEq, Message)]
struct RawInfo {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(bytes = "bytes", optional, tag = "2")]
    op_list: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    any_info: Option<Bytes>,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    producer: String,
    #[prost(string, tag = "6")]
    git_version: String,
    #[prost(bool, tag = "7")]
    stripped_default_attrs: bool,
    #[prost(btree_map = "string, string", tag = "8")]
    function_aliases: BTreeMap<String, String>,
}

/// `tensorflow.CollectionDef`.
#[derive(Clone, PartialEq, Message)]
struct RawCollection {
    #[prost(oneof = "RawKind", tags = "1, 2, 3, 4, 5")]
    kind: Option<RawKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum RawKind {
    #[prost(message, tag = "1")]
    Nodes(pb::collection_def::NodeList),
    #[prost(message, tag = "2")]
    Bytes(pb::collection_def::BytesList),
    #[prost(message, tag = "3")]
    Ints(pb::collection_def::Int64List),
    #[prost(message, tag = "4")]
    Floats(pb::collection_def::FloatList),
    /// Encoded messages of any type.
    #[prost(message, tag = "5")]
    Any(pb::collection_def::BytesList),
}

/// `tensorflow.SignatureDef`.
#[derive(Clone, PartialEq, Message)]
struct RawSignature {
    #[prost(btree_map = "string, message", tag = "1")]
    inputs: BTreeMap<String, RawTensorInfo>,
    #[prost(btree_map = "string, message", tag = "2")]
    outputs: BTreeMap<String, RawTensorInfo>,
    #[prost(string, tag = "3")]
    method: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    defaults: BTreeMap<String, Vec<u8>>,
}

/// `tensorflow.TensorInfo`.
#[derive(Clone, PartialEq, Message)]
struct RawTensorInfo {
    #[prost(oneof = "RawName", tags = "1, 4, 5")]
    name: Option<RawName>,
    #[prost(int32, tag = "2")]
    dtype: i32,
    #[prost(message, optional, tag = "3")]
    shape: Option<pb::TensorShapeProto>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum RawName {
    #[prost(string, tag = "1")]
    Dense(String),
    #[prost(message, tag = "4")]
    Sparse(pb::tensor_info::CooSparse),
    #[prost(bytes = "bytes", tag = "5")]
    Composite(Bytes),
}

/// `tensorflow.AssetFileDef`.
#[derive(Clone, PartialEq, Message)]
struct RawAsset {
    #[prost(message, optional, tag = "1")]
    tensor: Option<RawTensorInfo>,
    #[prost(string, tag = "2")]
    filename: String,
}

/// `google.protobuf.Any`; the context determines its type.
#[derive(Clone, PartialEq, Message)]
struct RawAny {
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// `tensorflow.GraphDef` with its library, reduced to what is counted.
#[derive(Clone, PartialEq, Message)]
struct RawGraph {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    nodes: Vec<Bytes>,
    #[prost(message, optional, tag = "2")]
    library: Option<RawLibrary>,
}

#[derive(Clone, PartialEq, Message)]
struct RawLibrary {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    functions: Vec<Bytes>,
}

fn decode<M: Message + Default>(bytes: Bytes, what: &str) -> Result<M> {
    M::decode(bytes).map_err(|error| data_loss(format!("not a {what}: {error}")))
}

pub(super) fn decode_saved_model(bytes: Bytes) -> Result<SavedModel> {
    let model: RawModel = decode(bytes, "saved model")?;
    let meta_graphs = model.meta_graphs.into_iter().map(decode_meta_graph).collect::<Result<_>>()?;
    Ok(SavedModel { version: model.version, meta_graphs })
}

pub(super) fn encode_saved_model(model: &SavedModel) -> Result<Bytes> {
    let meta_graphs = model.meta_graphs.iter().map(encode_meta_graph).collect::<Result<_>>()?;
    Ok(RawModel { version: model.version, meta_graphs }.encode_to_vec().into())
}

pub(super) fn graph_sizes(graph: Bytes) -> Result<(usize, usize)> {
    let graph: RawGraph = decode(graph, "graph")?;
    Ok((graph.nodes.len(), graph.library.map_or(0, |library| library.functions.len())))
}

pub(super) fn decode_meta_graph(bytes: Bytes) -> Result<MetaGraph> {
    let raw: RawMetaGraph = decode(bytes, "meta graph")?;
    let info = raw.info.unwrap_or_default();
    Ok(MetaGraph {
        tags: info.tags,
        version: info.version,
        producer: info.producer,
        git_version: info.git_version,
        stripped_default_attrs: info.stripped_default_attrs,
        function_aliases: info.function_aliases,
        op_list: info.op_list,
        any_info: info.any_info,
        graph: raw.graph.unwrap_or_default(),
        saver: raw.saver.map(decode_saver),
        collections: raw.collections.into_iter().map(|(name, values)| (name, decode_collection(values))).collect(),
        signatures: raw.signatures.into_iter().map(|(name, raw)| (name, decode_signature(raw))).collect(),
        assets: raw.assets.into_iter().map(decode_asset).collect(),
        object_graph: raw.object_graph,
    })
}

pub(super) fn encode_meta_graph(graph: &MetaGraph) -> Result<Bytes> {
    let info = RawInfo {
        version: graph.version.clone(),
        op_list: graph.op_list.clone(),
        any_info: graph.any_info.clone(),
        tags: graph.tags.clone(),
        producer: graph.producer.clone(),
        git_version: graph.git_version.clone(),
        stripped_default_attrs: graph.stripped_default_attrs,
        function_aliases: graph.function_aliases.clone(),
    };
    let raw = RawMetaGraph {
        info: Some(info),
        graph: Some(graph.graph.clone()),
        saver: graph.saver.as_ref().map(encode_saver),
        collections: graph.collections.iter().map(|(name, values)| (name.clone(), encode_collection(values))).collect(),
        signatures: graph.signatures.iter().map(|(name, call)| (name.clone(), encode_signature(call))).collect(),
        assets: graph.assets.iter().map(encode_asset).collect(),
        object_graph: graph.object_graph.clone(),
    };
    Ok(raw.encode_to_vec().into())
}

pub(super) fn decode_saver_message(bytes: Bytes) -> Result<Saver> {
    Ok(decode_saver(decode(bytes, "saver")?))
}

pub(super) fn encode_saver_message(saver: &Saver) -> Bytes {
    encode_saver(saver).encode_to_vec().into()
}

pub(super) fn decode_variable(bytes: Bytes) -> Result<VariableDef> {
    let raw: pb::VariableDef = decode(bytes, "variable")?;
    let slice = raw.save_slice_info_def.map(|slice| SliceDef {
        full_name: slice.full_name,
        full_shape: slice.full_shape,
        offset: slice.var_offset,
        shape: slice.var_shape,
    });
    Ok(VariableDef {
        variable: raw.variable_name,
        initializer: raw.initializer_name,
        snapshot: raw.snapshot_name,
        initial_value: raw.initial_value_name,
        is_resource: raw.is_resource,
        trainable: raw.trainable,
        slice,
    })
}

pub(super) fn encode_variable(variable: &VariableDef) -> Bytes {
    let slice = variable.slice.as_ref().map(|slice| pb::SaveSliceInfoDef {
        full_name: slice.full_name.clone(),
        full_shape: slice.full_shape.clone(),
        var_offset: slice.offset.clone(),
        var_shape: slice.shape.clone(),
    });
    let message = pb::VariableDef {
        variable_name: variable.variable.clone(),
        initializer_name: variable.initializer.clone(),
        snapshot_name: variable.snapshot.clone(),
        save_slice_info_def: slice,
        is_resource: variable.is_resource,
        initial_value_name: variable.initial_value.clone(),
        trainable: variable.trainable,
        ..pb::VariableDef::default()
    };
    message.encode_to_vec().into()
}

fn decode_saver(saver: pb::SaverDef) -> Saver {
    Saver {
        filename_tensor: saver.filename_tensor_name,
        save_tensor: saver.save_tensor_name,
        restore_op: saver.restore_op_name,
        max_to_keep: saver.max_to_keep,
        sharded: saver.sharded,
        keep_checkpoint_every_n_hours: saver.keep_checkpoint_every_n_hours,
        version: saver.version,
    }
}

fn encode_saver(saver: &Saver) -> pb::SaverDef {
    pb::SaverDef {
        filename_tensor_name: saver.filename_tensor.clone(),
        save_tensor_name: saver.save_tensor.clone(),
        restore_op_name: saver.restore_op.clone(),
        max_to_keep: saver.max_to_keep,
        sharded: saver.sharded,
        keep_checkpoint_every_n_hours: saver.keep_checkpoint_every_n_hours,
        version: saver.version,
    }
}

fn decode_collection(raw: RawCollection) -> Collection {
    match raw.kind {
        Some(RawKind::Nodes(list)) => Collection::Nodes(list.value),
        Some(RawKind::Bytes(list)) => Collection::Bytes(list.value),
        Some(RawKind::Ints(list)) => Collection::Ints(list.value),
        Some(RawKind::Floats(list)) => Collection::Floats(list.value),
        Some(RawKind::Any(list)) => Collection::Any(list.value),
        None => Collection::Empty,
    }
}

fn encode_collection(values: &Collection) -> RawCollection {
    use pb::collection_def::{BytesList, FloatList, Int64List, NodeList};
    let kind = match values.clone() {
        Collection::Nodes(value) => Some(RawKind::Nodes(NodeList { value })),
        Collection::Bytes(value) => Some(RawKind::Bytes(BytesList { value })),
        Collection::Ints(value) => Some(RawKind::Ints(Int64List { value })),
        Collection::Floats(value) => Some(RawKind::Floats(FloatList { value })),
        Collection::Any(value) => Some(RawKind::Any(BytesList { value })),
        Collection::Empty => None,
    };
    RawCollection { kind }
}

fn decode_signature(raw: RawSignature) -> Signature {
    let infos = |map: BTreeMap<String, RawTensorInfo>| map.into_iter().map(|(k, v)| (k, decode_info(v))).collect();
    Signature {
        method: raw.method,
        inputs: infos(raw.inputs),
        outputs: infos(raw.outputs),
        defaults: raw.defaults.into_iter().map(|(name, value)| (name, value.into())).collect(),
    }
}

fn encode_signature(call: &Signature) -> RawSignature {
    let infos = |map: &BTreeMap<String, TensorInfo>| map.iter().map(|(k, v)| (k.clone(), encode_info(v))).collect();
    RawSignature {
        method: call.method.clone(),
        inputs: infos(&call.inputs),
        outputs: infos(&call.outputs),
        defaults: call.defaults.iter().map(|(name, value)| (name.clone(), value.to_vec())).collect(),
    }
}

fn decode_info(raw: RawTensorInfo) -> TensorInfo {
    let tensor = match raw.name {
        Some(RawName::Dense(name)) => TensorName::Dense(name),
        Some(RawName::Sparse(sparse)) => {
            TensorName::Sparse(sparse.values_tensor_name, sparse.indices_tensor_name, sparse.dense_shape_tensor_name)
        }
        Some(RawName::Composite(parts)) => TensorName::Composite(parts),
        None => TensorName::None,
    };
    TensorInfo { tensor, dtype: DType::from_number(raw.dtype), shape: decode_partial_shape(raw.shape.as_ref()) }
}

fn encode_info(info: &TensorInfo) -> RawTensorInfo {
    let name = match &info.tensor {
        TensorName::Dense(name) => Some(RawName::Dense(name.clone())),
        TensorName::Sparse(values, indices, shape) => Some(RawName::Sparse(pb::tensor_info::CooSparse {
            values_tensor_name: values.clone(),
            indices_tensor_name: indices.clone(),
            dense_shape_tensor_name: shape.clone(),
        })),
        TensorName::Composite(parts) => Some(RawName::Composite(parts.clone())),
        TensorName::None => None,
    };
    RawTensorInfo { name, dtype: info.dtype.number(), shape: Some(encode_partial_shape(&info.shape)) }
}

fn decode_asset(raw: RawAsset) -> Asset {
    Asset { tensor: decode_info(raw.tensor.unwrap_or_default()), filename: raw.filename }
}

/// The assets in a collection of Any messages.
pub(super) fn decode_any_assets(values: &[Bytes]) -> Result<Vec<Asset>> {
    let asset = |bytes: &Bytes| {
        let any: RawAny = decode(bytes.clone(), "asset")?;
        Ok(decode_asset(decode(any.value, "asset")?))
    };
    values.iter().map(asset).collect()
}

fn encode_asset(asset: &Asset) -> RawAsset {
    RawAsset { tensor: Some(encode_info(&asset.tensor)), filename: asset.filename.clone() }
}

pub(crate) fn decode_queue_runner(bytes: &[u8]) -> Result<QueueRunnerDef> {
    let message: pb::QueueRunnerDef = decode(Bytes::copy_from_slice(bytes), "queue runner")?;
    Ok(QueueRunnerDef {
        queue: message.queue_name,
        enqueue_ops: message.enqueue_op_name,
        close_op: message.close_op_name,
        cancel_op: message.cancel_op_name,
        closed: message.queue_closed_exception_types,
    })
}

pub(crate) fn encode_queue_runner(runner: &QueueRunnerDef) -> Bytes {
    let message = pb::QueueRunnerDef {
        queue_name: runner.queue.clone(),
        enqueue_op_name: runner.enqueue_ops.clone(),
        close_op_name: runner.close_op.clone(),
        cancel_op_name: runner.cancel_op.clone(),
        queue_closed_exception_types: runner.closed.clone(),
    };
    message.encode_to_vec().into()
}
