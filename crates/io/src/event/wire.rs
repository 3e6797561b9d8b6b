//! Conversion of event-file messages to the types of this crate.

use super::{Audio, Event, EventWhat, Histogram, Image, SessionLog, SessionStatus};
use super::{SummaryData, SummaryMetadata, SummaryValue};
use crate::fs::data_loss;
use bytes::Bytes;
use pb::event::What;
use pb::session_log::SessionStatus as PbStatus;
use pb::summary::value::Value;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use proto::tensorflow as pb;
use status::{Result, invalid};
use std::collections::HashSet;
use tensor::wire::{decode_shape, decode_tensor, encode_spelled};
use tensor::{DType, Tensor};

pub(super) fn decode_event(bytes: Bytes) -> Result<Event> {
    let event = pb::Event::decode(bytes).map_err(|error| data_loss(format!("not an event: {error}")))?;
    let what = match event.what {
        Some(What::FileVersion(version)) => EventWhat::Version(version),
        Some(What::GraphDef(graph)) => EventWhat::Graph(graph),
        Some(What::MetaGraphDef(graph)) => EventWhat::MetaGraph(graph),
        Some(What::Summary(summary)) => EventWhat::Summary(summary.value.into_iter().map(decode_value).collect()),
        Some(What::LogMessage(log)) => EventWhat::Log(log.level, log.message),
        Some(What::SessionLog(log)) => EventWhat::Session(SessionLog {
            status: match PbStatus::try_from(log.status) {
                Ok(PbStatus::Start) => SessionStatus::Start,
                Ok(PbStatus::Stop) => SessionStatus::Stop,
                Ok(PbStatus::Checkpoint) => SessionStatus::Checkpoint,
                _ => SessionStatus::Unspecified,
            },
            checkpoint_path: log.checkpoint_path,
            message: log.msg,
        }),
        Some(What::TaggedRunMetadata(metadata)) => EventWhat::RunMetadata(metadata.tag, metadata.run_metadata),
        None => EventWhat::Other,
    };
    let writer = event.source_metadata.map(|source| source.writer);
    Ok(Event { wall_time: event.wall_time, step: event.step, what, writer })
}

pub(super) fn encode_event(event: &Event) -> Result<Vec<u8>> {
    let what = match &event.what {
        EventWhat::Version(version) => Some(What::FileVersion(version.clone())),
        EventWhat::Graph(graph) => Some(What::GraphDef(graph.clone())),
        EventWhat::MetaGraph(graph) => Some(What::MetaGraphDef(graph.clone())),
        EventWhat::Summary(values) => {
            let mut message = summary_event(event.wall_time, event.step, &encode_summary(values)?);
            let source_metadata = event.writer.clone().map(|writer| pb::SourceMetadata { writer });
            message.extend(pb::Event { source_metadata, ..pb::Event::default() }.encode_to_vec());
            return Ok(message);
        }
        EventWhat::Log(level, message) => {
            Some(What::LogMessage(pb::LogMessage { level: *level, message: message.clone() }))
        }
        EventWhat::Session(log) => Some(What::SessionLog(encode_session(log))),
        EventWhat::RunMetadata(tag, metadata) => {
            let message = pb::TaggedRunMetadata { tag: tag.clone(), run_metadata: metadata.clone() };
            Some(What::TaggedRunMetadata(message))
        }
        EventWhat::Other => None,
    };
    let source_metadata = event.writer.clone().map(|writer| pb::SourceMetadata { writer });
    Ok(pb::Event { wall_time: event.wall_time, step: event.step, what, source_metadata }.encode_to_vec())
}

fn encode_session(log: &SessionLog) -> pb::SessionLog {
    let status = match log.status {
        SessionStatus::Unspecified => PbStatus::StatusUnspecified,
        SessionStatus::Start => PbStatus::Start,
        SessionStatus::Stop => PbStatus::Stop,
        SessionStatus::Checkpoint => PbStatus::Checkpoint,
    };
    pb::SessionLog { status: status as i32, checkpoint_path: log.checkpoint_path.clone(), msg: log.message.clone() }
}

pub(super) fn decode_summary(message: Bytes) -> Result<Vec<SummaryValue>> {
    let summary = pb::Summary::decode(message).map_err(|error| invalid!("not a summary: {error}"))?;
    Ok(summary.value.into_iter().map(decode_value).collect())
}

pub(super) fn encode_summary(values: &[SummaryValue]) -> Result<Bytes> {
    let mut message = Vec::new();
    for value in values {
        field(&mut message, VALUE, &encode_value(value)?);
    }
    Ok(message.into())
}

/// The number of the field `value` of Summary.
const VALUE: u32 = 1;
/// The number of the field `summary` of Event.
const SUMMARY: u32 = 5;

/// The number of the field `histo` of a value.
const HISTOGRAM: u32 = 5;

/// Adds a bytes field to a message.
fn field(message: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    encode_key(number, WireType::LengthDelimited, message);
    encode_varint(bytes.len() as u64, message);
    message.extend_from_slice(bytes);
}

/// An Event message around a Summary message.
pub(super) fn summary_event(wall_time: f64, step: i64, summary: &[u8]) -> Vec<u8> {
    let mut message = pb::Event { wall_time, step, ..pb::Event::default() }.encode_to_vec();
    field(&mut message, SUMMARY, summary);
    message
}

/// A Summary message of one tensor. TensorFlow writes the fields of a value in the order of their numbers, and the
/// field with the node's name is between those with data, so the fields are written one by one.
pub(super) fn tensor_summary(tag: &str, node_name: &str, tensor: &Tensor, metadata: Option<Bytes>) -> Result<Bytes> {
    let metadata = metadata.map(|bytes| pb::SummaryMetadata::decode(bytes).unwrap_or_default());
    let data = Some(Value::Tensor(encode_spelled(tensor)?));
    let mut message = Vec::new();
    field(&mut message, VALUE, &in_order(tag.to_string(), node_name.to_string(), data, metadata));
    Ok(message.into())
}

fn in_order(tag: String, node_name: String, data: Option<Value>, metadata: Option<pb::SummaryMetadata>) -> Vec<u8> {
    let (early, late) = match data {
        Some(Value::Tensor(_)) => (None, data),
        _ => (data, None),
    };
    let mut message = pb::summary::Value { tag, value: early, ..Default::default() }.encode_to_vec();
    message.extend(pb::summary::Value { node_name, ..Default::default() }.encode_to_vec());
    message.extend(pb::summary::Value { value: late, metadata, ..Default::default() }.encode_to_vec());
    message
}

/// The tags of a Summary message; none if the bytes are not one.
pub(super) fn tags(message: Bytes) -> Option<Vec<String>> {
    let summary = pb::Summary::decode(message).ok()?;
    Some(summary.value.into_iter().map(|value| value.tag).collect())
}

/// A Summary message without the metadata of tags in `known`, to which the other tags are added.
pub(super) fn without_known_metadata(message: Bytes, known: &mut HashSet<String>) -> Result<Bytes> {
    let mut summary = pb::Summary::decode(message.clone()).map_err(|error| invalid!("not a summary: {error}"))?;
    let mut changed = false;
    for value in summary.value.iter_mut().filter(|value| value.metadata.is_some()) {
        if !known.insert(value.tag.clone()) {
            value.metadata = None;
            changed = true;
        }
    }
    Ok(if changed { summary.encode_to_vec().into() } else { message })
}

/// True if the bytes are an Event message.
pub(super) fn is_event(message: Bytes) -> bool {
    pb::Event::decode(message).is_ok()
}

/// True if the bytes are a GraphDef message.
pub(super) fn is_graph(message: Bytes) -> bool {
    pb::GraphDef::decode(message).is_ok()
}

fn decode_value(value: pb::summary::Value) -> SummaryValue {
    let data = match value.value {
        Some(Value::SimpleValue(number)) => SummaryData::Scalar(number),
        Some(Value::Histo(h)) => SummaryData::Histogram(Histogram {
            min: h.min,
            max: h.max,
            num: h.num,
            sum: h.sum,
            sum_squares: h.sum_squares,
            bucket_limit: h.bucket_limit,
            bucket: h.bucket,
        }),
        Some(Value::Image(image)) => SummaryData::Image(Image {
            height: image.height,
            width: image.width,
            colorspace: image.colorspace,
            encoded: image.encoded_image_string,
        }),
        Some(Value::Audio(audio)) => SummaryData::Audio(Audio {
            sample_rate: audio.sample_rate,
            num_channels: audio.num_channels,
            length_frames: audio.length_frames,
            encoded: audio.encoded_audio_string,
            content_type: audio.content_type,
        }),
        Some(Value::Tensor(tensor)) if is_plausible(&tensor) => {
            decode_tensor(tensor).map_or(SummaryData::Other, SummaryData::Tensor)
        }
        _ => SummaryData::Other,
    };
    let metadata = value.metadata.map(decode_metadata);
    SummaryValue { tag: value.tag, node_name: value.node_name, metadata, data }
}

/// True if a tensor is not much larger than its message. Equal elements are written once, which an attacker could use
/// to make a small message claim a huge tensor.
fn is_plausible(tensor: &pb::TensorProto) -> bool {
    const FREE: usize = 64 << 20;
    let size = DType::from_number(tensor.dtype).size().max(1);
    let elements = decode_shape(tensor.tensor_shape.as_ref()).map_or(0, |shape| shape.elements());
    elements.saturating_mul(size) <= tensor.encoded_len().saturating_add(FREE)
}

fn encode_value(value: &SummaryValue) -> Result<Vec<u8>> {
    let data = match &value.data {
        SummaryData::Scalar(number) => Some(Value::SimpleValue(*number)),
        SummaryData::Tensor(tensor) => Some(Value::Tensor(encode_spelled(tensor)?)),
        SummaryData::Histogram(histogram) => return Ok(encode_histogram(value, histogram)),
        SummaryData::Image(image) => Some(Value::Image(pb::summary::Image {
            height: image.height,
            width: image.width,
            colorspace: image.colorspace,
            encoded_image_string: image.encoded.clone(),
        })),
        SummaryData::Audio(audio) => Some(Value::Audio(pb::summary::Audio {
            sample_rate: audio.sample_rate,
            num_channels: audio.num_channels,
            length_frames: audio.length_frames,
            encoded_audio_string: audio.encoded.clone(),
            content_type: audio.content_type.clone(),
        })),
        SummaryData::Other => None,
    };
    let metadata = value.metadata.as_ref().map(encode_metadata);
    Ok(in_order(value.tag.clone(), value.node_name.clone(), data, metadata))
}

/// A histogram value. TensorFlow omits numbers that are zero, but not those that are minus zero.
fn encode_histogram(value: &SummaryValue, h: &Histogram) -> Vec<u8> {
    let mut histogram = Vec::new();
    for (number, value) in (1..).zip([h.min, h.max, h.num, h.sum, h.sum_squares]) {
        if value.to_bits() != 0 {
            prost::encoding::double::encode(number, &value, &mut histogram);
        }
    }
    let (bucket_limit, bucket) = (h.bucket_limit.clone(), h.bucket.clone());
    histogram.extend(pb::HistogramProto { bucket_limit, bucket, ..pb::HistogramProto::default() }.encode_to_vec());
    let mut message = pb::summary::Value { tag: value.tag.clone(), ..Default::default() }.encode_to_vec();
    field(&mut message, HISTOGRAM, &histogram);
    let metadata = value.metadata.as_ref().map(encode_metadata);
    message.extend(in_order(String::new(), value.node_name.clone(), None, metadata));
    message
}

fn decode_metadata(metadata: pb::SummaryMetadata) -> SummaryMetadata {
    let plugin = metadata.plugin_data.unwrap_or_default();
    SummaryMetadata {
        plugin_name: plugin.plugin_name,
        plugin_content: plugin.content,
        display_name: metadata.display_name,
        description: metadata.summary_description,
        data_class: metadata.data_class,
    }
}

fn encode_metadata(metadata: &SummaryMetadata) -> pb::SummaryMetadata {
    let plugin = pb::summary_metadata::PluginData {
        plugin_name: metadata.plugin_name.clone(),
        content: metadata.plugin_content.clone(),
    };
    pb::SummaryMetadata {
        plugin_data: (plugin != Default::default()).then_some(plugin),
        display_name: metadata.display_name.clone(),
        summary_description: metadata.description.clone(),
        data_class: metadata.data_class,
    }
}
