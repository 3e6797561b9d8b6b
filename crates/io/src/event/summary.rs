//! Summaries: values under tags.

use super::wire;
use bytes::Bytes;
use status::Result;
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
