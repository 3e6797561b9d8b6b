//! Ops on strings.

mod encoding;
pub(crate) mod number_text;
mod regex_syntax;
pub(crate) mod summary;

pub(crate) mod as_string;
pub(crate) mod base64;
pub(crate) mod hash_bucket;
pub(crate) mod join;
pub(crate) mod ngrams;
pub(crate) mod raw;
pub(crate) mod regex;
pub(crate) mod split;
pub(crate) mod substr;
pub(crate) mod text;
pub(crate) mod to_number;
pub(crate) mod unicode;
pub(crate) mod unicode_script;
mod unicode_scripts;

pub use self::as_string::as_string;
pub use self::base64::{decode_base64, encode_base64};
pub use self::hash_bucket::string_to_hash_bucket_fast;
pub use self::join::{reduce_join, string_join};
pub use self::raw::decode_raw;
pub use self::regex::{regex_full_match, regex_replace};
pub use self::split::string_split;
pub use self::substr::substr;
pub use self::text::{string_length, string_lower, string_strip, string_upper};
pub use self::to_number::string_to_number;
pub use self::unicode::unicode_transcode;
pub use self::unicode_script::unicode_script;

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
