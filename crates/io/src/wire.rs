//! Messages in files become ours here.

use crate::bundle::Entry;
use crate::event::{Event, EventWhat, SummaryValue};
use crate::file::data_loss;
use crate::saved_model::{MetaGraph, SavedModel, SignatureInfo, TensorInfo};
use bytes::Bytes;
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid};
use tensor::wire::decode_tensor;
use tensor::{DType, PartialShape, Shape};

fn decode<M: Message + Default>(bytes: Bytes, what: &str) -> Result<M> {
    M::decode(bytes).map_err(|error| data_loss(format!("not a {what}: {error}")))
}

pub(crate) fn bundle_header(bytes: Bytes) -> Result<u32> {
    let header: pb::BundleHeaderProto = decode(bytes, "checkpoint header")?;
    if header.endianness != 0 {
        return Err(invalid!("Checkpoints written on big-endian machines cannot be read"));
    }
    u32::try_from(header.num_shards).map_err(|_| data_loss("a checkpoint with a negative number of files"))
}

pub(crate) fn bundle_entry(bytes: Bytes) -> Result<Entry> {
    let entry: pb::BundleEntryProto = decode(bytes, "checkpoint entry")?;
    let dims: Vec<i64> = entry.shape.unwrap_or_default().dim.iter().map(|dim| dim.size).collect();
    let unsigned = |number: i64| u64::try_from(number).map_err(|_| data_loss("a negative offset or size"));
    Ok(Entry {
        dtype: dtype(entry.dtype),
        shape: Shape::checked(&dims)?,
        shard: u32::try_from(entry.shard_id).map_err(|_| data_loss("a negative file number"))?,
        offset: unsigned(entry.offset)?,
        size: unsigned(entry.size)?,
        crc: entry.crc32c,
        slices: entry.slices.len(),
    })
}

fn dtype(number: i32) -> DType {
    DType::from_number(number)
}

pub(crate) fn event(bytes: Bytes) -> Result<Event> {
    use pb::event::What;
    let event: pb::Event = decode(bytes, "event")?;
    let what = match event.what {
        Some(What::FileVersion(version)) => EventWhat::Version(version),
        Some(What::GraphDef(graph)) => EventWhat::Graph(graph),
        Some(What::MetaGraphDef(graph)) => EventWhat::MetaGraph(graph),
        Some(What::Summary(summary)) => EventWhat::Summary(summary.value.into_iter().map(summary_value).collect()),
        Some(What::LogMessage(log)) => EventWhat::Log(log.message),
        Some(What::SessionLog(log)) => {
            let status = pb::session_log::SessionStatus::try_from(log.status).unwrap_or_default();
            EventWhat::Session(format!("{} {}", status.as_str_name(), log.checkpoint_path))
        }
        Some(What::TaggedRunMetadata(metadata)) => EventWhat::RunMetadata(metadata.tag),
        None => EventWhat::Other,
    };
    Ok(Event { wall_time: event.wall_time, step: event.step, what })
}

fn summary_value(value: pb::summary::Value) -> (String, SummaryValue) {
    use pb::summary::value::Value;
    let read = match value.value {
        Some(Value::SimpleValue(number)) => SummaryValue::Scalar(number),
        Some(Value::Histo(histogram)) => SummaryValue::Histogram(histogram.num, histogram.min, histogram.max),
        Some(Value::Image(image)) => SummaryValue::Image(image.height, image.width),
        Some(Value::Audio(audio)) => SummaryValue::Audio(audio.length_frames),
        Some(Value::Tensor(tensor)) => decode_tensor(tensor).map_or(SummaryValue::Other, SummaryValue::Tensor),
        _ => SummaryValue::Other,
    };
    (value.tag, read)
}

pub(crate) fn saved_model(bytes: Bytes) -> Result<SavedModel> {
    let model: pb::SavedModel = decode(bytes, "saved model")?;
    Ok(SavedModel {
        version: model.saved_model_schema_version,
        meta_graphs: model.meta_graphs.into_iter().map(meta_graph).collect(),
    })
}

fn meta_graph(message: pb::MetaGraphDef) -> MetaGraph {
    let info = message.meta_info_def.unwrap_or_default();
    let graph = message.graph_def.unwrap_or_default();
    let functions = graph.library.as_ref().map_or(0, |library| library.function.len());
    let mut signatures: Vec<SignatureInfo> = message
        .signature_def
        .into_iter()
        .map(|(name, signature)| SignatureInfo {
            name,
            method: signature.method_name,
            inputs: tensors(signature.inputs.into_iter()),
            outputs: tensors(signature.outputs.into_iter()),
        })
        .collect();
    signatures.sort_by(|a, b| a.name.cmp(&b.name));
    let mut collections: Vec<(String, usize)> =
        message.collection_def.into_iter().map(|(name, values)| (name, length(&values))).collect();
    collections.sort();
    MetaGraph {
        tags: info.tags,
        producer: info.tensorflow_version,
        sizes: (graph.node.len(), functions),
        graph: graph.encode_to_vec().into(),
        collections,
        signatures,
    }
}

fn tensors(infos: impl Iterator<Item = (String, pb::TensorInfo)>) -> Vec<TensorInfo> {
    let mut infos: Vec<TensorInfo> = infos
        .map(|(name, info)| TensorInfo {
            name,
            tensor: match info.encoding {
                Some(pb::tensor_info::Encoding::Name(name)) => name,
                _ => String::new(),
            },
            dtype: dtype(info.dtype),
            shape: shape(info.tensor_shape),
        })
        .collect();
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    infos
}

fn shape(shape: Option<pb::TensorShapeProto>) -> PartialShape {
    match shape {
        Some(shape) if !shape.unknown_rank => {
            PartialShape::new(&shape.dim.iter().map(|dim| dim.size).collect::<Vec<_>>())
        }
        _ => PartialShape::unknown(),
    }
}

fn length(values: &pb::CollectionDef) -> usize {
    use pb::collection_def::Kind;
    match &values.kind {
        Some(Kind::NodeList(list)) => list.value.len(),
        Some(Kind::BytesList(list)) => list.value.len(),
        Some(Kind::Int64List(list)) => list.value.len(),
        Some(Kind::FloatList(list)) => list.value.len(),
        Some(Kind::AnyList(list)) => list.value.len(),
        None => 0,
    }
}
