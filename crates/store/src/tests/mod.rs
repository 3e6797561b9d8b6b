//! Files of stores: their semantics over objects in memory, names, settings, secrets; and a store that is not there.

#[cfg(feature = "hdfs")]
mod hdfs;
#[cfg(feature = "objects")]
mod objects;
mod options;
#[cfg(feature = "objects")]
mod settings;
#[cfg(feature = "objects")]
mod silence;
