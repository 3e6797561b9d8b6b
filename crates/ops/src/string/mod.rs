//! Ops on strings.

mod encoding;
pub(crate) mod number_text;
mod regex_syntax;
pub(crate) mod summary;

pub mod as_string;
pub mod base64;
pub mod hash_bucket;
pub mod join;
pub mod ngrams;
pub mod raw;
pub mod regex;
pub mod split;
pub mod substr;
pub mod text;
pub mod to_number;
pub mod unicode;
pub mod unicode_script;
mod unicode_scripts;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    as_string::OPS,
    base64::OPS,
    hash_bucket::OPS,
    join::OPS,
    ngrams::OPS,
    raw::OPS,
    regex::OPS,
    split::OPS,
    substr::OPS,
    text::OPS,
    to_number::OPS,
    unicode::OPS,
    unicode_script::OPS,
];
