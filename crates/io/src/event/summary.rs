//! Summaries: tagged values.

use super::wire;
use bytes::Bytes;
use status::{Result, invalid};
use std::collections::HashSet;
use tensor::Tensor;

/// A tagged value.
#[derive(Clone, Debug, Default)]
pub struct SummaryValue {
    /// The tag.
    pub tag: String,
    /// The name of the node that computed it, if it is recorded.
    pub node_name: String,
    /// How viewers show it.
    pub metadata: Option<SummaryMetadata>,
    /// The value.
    pub data: SummaryData,
}

/// How viewers show a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryMetadata {
    /// The plugin that shows it.
    pub plugin_name: String,
    /// Data for the plugin.
    pub plugin_content: Bytes,
    /// The title.
    pub display_name: String,
    /// The description.
    pub description: String,
    /// The class of the data, as a number.
    pub data_class: i32,
}

/// The value of a summary.
#[derive(Clone, Debug, Default)]
pub enum SummaryData {
    /// One number.
    Scalar(f32),
    /// A tensor.
    Tensor(Tensor),
    /// A histogram.
    Histogram(Histogram),
    /// An image.
    Image(Image),
    /// An audio clip.
    Audio(Audio),
    /// Another kind of value.
    #[default]
    Other,
}

/// The distribution of numbers over buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The smallest number.
    pub min: f64,
    /// The largest number.
    pub max: f64,
    /// The number of numbers.
    pub num: f64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub sum_squares: f64,
    /// The upper limits of the buckets.
    pub bucket_limit: Vec<f64>,
    /// The number of numbers in each bucket.
    pub bucket: Vec<f64>,
}

/// An image.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// The height in pixels.
    pub height: i32,
    /// The width in pixels.
    pub width: i32,
    /// Channels per pixel: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA.
    pub colorspace: i32,
    /// The encoded image, usually PNG.
    pub encoded: Bytes,
}

/// An audio clip.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audio {
    /// Frames per second.
    pub sample_rate: f32,
    /// The number of channels.
    pub num_channels: i64,
    /// The number of frames.
    pub length_frames: i64,
    /// The encoded audio.
    pub encoded: Bytes,
    /// The content type of the encoding.
    pub content_type: String,
}

/// The values in a Summary message, such as the result of a summary op.
pub fn read_summary(message: Bytes) -> Result<Vec<SummaryValue>> {
    wire::decode_summary(message)
}

/// The values as a Summary message.
pub fn write_summary(values: &[SummaryValue]) -> Result<Bytes> {
    wire::encode_summary(values)
}

/// A Summary message of one tagged tensor with a SummaryMetadata message. Bytes that are not such a message count as
/// an empty one.
pub fn tensor_summary(tag: &str, node_name: &str, tensor: &Tensor, metadata: Option<Bytes>) -> Result<Bytes> {
    wire::tensor_summary(tag, node_name, tensor, metadata)
}

/// Merges several Summary messages. A tag may occur once; values without a tag are exempt.
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

/// True if the bytes are a Summary message.
pub fn is_summary(message: &Bytes) -> bool {
    wire::tags(message.clone()).is_some()
}

/// A Summary message without the metadata of tags in `known`. The other tags are added to `known`: viewers read the
/// metadata of a tag once.
pub fn without_known_metadata(message: Bytes, known: &mut HashSet<String>) -> Result<Bytes> {
    wire::without_known_metadata(message, known)
}

/// An Event message with a Summary message.
pub fn summary_event(wall_time: f64, step: i64, summary: &[u8]) -> Bytes {
    wire::summary_event(wall_time, step, summary).into()
}
