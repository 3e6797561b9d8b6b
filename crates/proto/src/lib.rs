//! I am generated messages; no hand wrote me.
#![forbid(unsafe_code)]
