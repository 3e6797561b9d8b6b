//! Summaries: values under tags.

use super::wire;
use bytes::Bytes;
use status::{Result, invalid};
use std::collections::HashSet;
use tensor::Tensor;

/// A value under a tag.
#[derive(Clone, Debug, Default)]
pub struct SummaryValue {
    /// The tag.
    pub tag: String,
    /// The node that made it, if that is said.
    pub node_name: String,
    /// How it is to be shown.
    pub metadata: Option<SummaryMetadata>,
    /// The value.
    pub data: SummaryData,
}

/// How a value is to be shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryMetadata {
    /// The plugin that shows it.
    pub plugin_name: String,
    /// What the plugin has to know.
    pub plugin_content: Bytes,
    /// Its title.
    pub display_name: String,
    /// What it means.
    pub description: String,
    /// Which kind of data it is, as a number.
    pub data_class: i32,
}

/// The value of a summary.
#[derive(Clone, Debug, Default)]
pub enum SummaryData {
    /// One number.
    Scalar(f32),
    /// A tensor.
    Tensor(Tensor),
    /// Counts by size.
    Histogram(Histogram),
    /// A picture.
    Image(Image),
    /// A sound.
    Audio(Audio),
    /// Something else.
    #[default]
    Other,
}

/// How many numbers lie between limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The least number.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many there are.
    pub num: f64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub sum_squares: f64,
    /// The upper ends of the buckets.
    pub bucket_limit: Vec<f64>,
    /// How many numbers each bucket has.
    pub bucket: Vec<f64>,
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// Rows.
    pub height: i32,
    /// Columns.
    pub width: i32,
    /// Numbers per pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub colorspace: i32,
    /// A file of it, PNG as a rule.
    pub encoded: Bytes,
}

/// A sound.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audio {
    /// Frames per second.
    pub sample_rate: f32,
    /// How many channels.
    pub num_channels: i64,
    /// How many frames.
    pub length_frames: i64,
    /// A file of it.
    pub encoded: Bytes,
    /// Which kind of file.
    pub content_type: String,
}

/// The values in a Summary message, which summary ops give.
pub fn read_summary(message: Bytes) -> Result<Vec<SummaryValue>> {
    wire::decode_summary(message)
}

/// A Summary message.
pub fn write_summary(values: &[SummaryValue]) -> Result<Bytes> {
    wire::encode_summary(values)
}

/// A Summary message of one tensor under a tag, with a SummaryMetadata message if there is one. What is no such
/// message counts as an empty one.
pub fn tensor_summary(tag: &str, node_name: &str, tensor: &Tensor, metadata: Option<Bytes>) -> Result<Bytes> {
    wire::tensor_summary(tag, node_name, tensor, metadata)
}

/// One Summary message for several. A tag may come once; values without a tag are not counted.
pub fn merge_summaries<'a>(messages: impl IntoIterator<Item = &'a Bytes>) -> Result<Bytes> {
    let (mut merged, mut known) = (Vec::new(), HashSet::new());
    for message in messages {
        let tags = wire::tags(message.clone());
        let tags = tags.ok_or_else(|| invalid!("Could not parse one of the summary inputs"))?;
        for tag in tags.into_iter().filter(|tag| !tag.is_empty()) {
            if let Some(tag) = known.replace(tag) {
                return Err(invalid!("Duplicate tag {tag} found in summary inputs"));
            }
        }
        merged.extend_from_slice(message);
    }
    Ok(merged.into())
}

/// Whether bytes are a Summary message.
pub fn is_summary(message: &Bytes) -> bool {
    wire::tags(message.clone()).is_some()
}

/// A Summary message without the metadata of tags in `known`, and those it has metadata for in `known`: viewers read
/// how to show a tag once.
pub fn without_known_metadata(message: Bytes, known: &mut HashSet<String>) -> Result<Bytes> {
    wire::without_known_metadata(message, known)
}

/// An Event message that reports a Summary message.
pub fn summary_event(wall_time: f64, step: i64, summary: &[u8]) -> Bytes {
    wire::summary_event(wall_time, step, summary).into()
}
