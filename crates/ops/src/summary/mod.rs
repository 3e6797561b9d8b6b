//! Summaries: what a graph reports about itself, as messages or written directly to event files.

use op::Op;
use status::{Result, invalid};
use tensor::{Bytes, Shape, Tensor};

pub(crate) mod audio;
pub(crate) mod encode_wav;
pub(crate) mod histogram;
pub(crate) mod image;
pub(crate) mod merge;
mod real;
pub(crate) mod scalar;
pub(crate) mod tensor_summary;
pub(crate) mod write;
pub(crate) mod writer;
mod writer_state;

pub use self::audio::audio_summary;
pub use self::encode_wav::encode_wav;
pub use self::histogram::{Tally, histogram_summary};
pub use self::image::{BAD_COLOR, image_summary};
pub use self::merge::merge_summary;
pub use self::scalar::scalar_summary;
pub use self::tensor_summary::tensor_summary;
pub use self::write::{write_scalar_summary, write_summary};
pub use self::writer::{close_summary_writer, create_summary_file_writer, flush_summary_writer, summary_writer};

pub use writer_state::SummaryWriter;

/// The tables of this family.
#[rustfmt::skip] // one per line
pub(crate) const TABLES: &[&[Op]] = &[
    audio::OPS,
    encode_wav::OPS,
    histogram::OPS,
    image::OPS,
    merge::OPS,
    scalar::OPS,
    tensor_summary::OPS,
    write::OPS,
    writer::OPS,
];

/// A tag as text.
fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one tag of a scalar; `complaint` if it is not one.
fn scalar_tag(tag: &Tensor, complaint: &str) -> Result<String> {
    if *tag.shape() != Shape::scalar() {
        return Err(invalid!("{complaint}"));
    }
    Ok(text(&tag.to_string_scalar()?))
}

/// The tag of one of several pictures or sounds: numbered if more than one was asked for.
fn numbered(tag: &str, kind: &str, index: usize, most: usize) -> String {
    if most > 1 { format!("{tag}/{kind}/{index}") } else { format!("{tag}/{kind}") }
}
