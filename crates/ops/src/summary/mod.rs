//! Summaries: what a graph reports about itself, as messages or written directly to event files.

use op::Op;
use status::{Result, invalid};
use tensor::{Bytes, Shape, Tensor};

pub mod audio;
pub mod encode_wav;
pub mod histogram;
pub mod image;
pub mod merge;
mod real;
pub mod scalar;
pub mod tensor_summary;
pub mod write;
pub mod writer;
mod writer_state;

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
