//! I am generated messages; no hand wrote me.
//!
//! The definitions in `proto/` carry TensorFlow's names, numbers and types, and so speak its wire and its file
//! formats. The feature `services` adds traits, servers and clients of the master and the worker service.
#![forbid(unsafe_code)]

/// Well-known types of protocol buffers themselves.
pub mod google {
    /// A message of any type.
    #[allow(missing_docs, clippy::all)]
    pub mod protobuf {
        include!(concat!(env!("OUT_DIR"), "/google.protobuf.rs"));
    }
}

/// Messages and services of TensorFlow.
#[allow(missing_docs, clippy::all)]
pub mod tensorflow {
    include!(concat!(env!("OUT_DIR"), "/tensorflow.rs"));

    /// Where an error comes from.
    pub mod core {
        /// Where an error comes from.
        pub mod platform {
            include!(concat!(env!("OUT_DIR"), "/tensorflow.core.platform.rs"));
        }
    }

    /// What travels in the details of a gRPC error.
    pub mod distributed_runtime {
        include!(concat!(env!("OUT_DIR"), "/tensorflow.distributed_runtime.rs"));
    }

    /// Error codes.
    pub mod error {
        include!(concat!(env!("OUT_DIR"), "/tensorflow.error.rs"));
    }
}

/// All definitions as a FileDescriptorSet message: names, numbers and types of fields, for the text format.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

#[cfg(test)]
mod tests;
