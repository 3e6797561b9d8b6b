//! File semantics over an in-memory object store; URLs, settings, secrets; unreachable stores.

#[cfg(feature = "hdfs")]
mod hdfs;
#[cfg(feature = "objects")]
mod objects;
mod options;
#[cfg(feature = "objects")]
mod settings;
#[cfg(feature = "objects")]
mod silence;
