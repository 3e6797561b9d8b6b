//! Messages of event files become ours here.

use super::{Audio, Event, EventWhat, Histogram, Image, SessionLog, SessionStatus};
use super::{SummaryData, SummaryMetadata, SummaryValue};
use crate::fs::data_loss;
use bytes::Bytes;
use pb::event::What;
use pb::session_log::SessionStatus as PbStatus;
use pb::summary::value::Value;
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid};
use tensor::DType;
use tensor::wire::{decode_shape, decode_tensor, encode_tensor};

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
        EventWhat::Summary(values) => Some(What::Summary(summary(values)?)),
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
    Ok(summary(values)?.encode_to_vec().into())
}

fn summary(values: &[SummaryValue]) -> Result<pb::Summary> {
    Ok(pb::Summary { value: values.iter().map(encode_value).collect::<Result<_>>()? })
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

/// Whether a tensor is not much larger than its message: equal elements are written once, but nobody summarizes more
/// than this of them.
fn is_plausible(tensor: &pb::TensorProto) -> bool {
    const FREE: usize = 64 << 20;
    let size = DType::from_number(tensor.dtype).size().max(1);
    let elements = decode_shape(tensor.tensor_shape.as_ref()).map_or(0, |shape| shape.elements());
    elements.saturating_mul(size) <= tensor.encoded_len().saturating_add(FREE)
}

fn encode_value(value: &SummaryValue) -> Result<pb::summary::Value> {
    let data = match &value.data {
        SummaryData::Scalar(number) => Some(Value::SimpleValue(*number)),
        SummaryData::Tensor(tensor) => Some(Value::Tensor(encode_tensor(tensor)?)),
        SummaryData::Histogram(h) => Some(Value::Histo(pb::HistogramProto {
            min: h.min,
            max: h.max,
            num: h.num,
            sum: h.sum,
            sum_squares: h.sum_squares,
            bucket_limit: h.bucket_limit.clone(),
            bucket: h.bucket.clone(),
        })),
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
    Ok(pb::summary::Value { tag: value.tag.clone(), node_name: value.node_name.clone(), metadata, value: data })
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
