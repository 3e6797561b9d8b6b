//! Protocol buffer messages and gRPC services of TensorFlow, generated at build time from the definitions in `proto/`.
//!
//! The definitions carry TensorFlow's names, field numbers and types, so the messages are compatible with its wire and
//! its files. The crate contains no logic: each crate above converts messages to types of its own in a file named
//! `wire.rs`. The feature `services` adds the traits, servers and clients of the master and worker services.
//!
//! ```
//! use flowgrid_proto::tensorflow::TensorShapeProto;
//!
//! let unknown_rank = TensorShapeProto { unknown_rank: true, ..Default::default() };
//! assert!(unknown_rank.dim.is_empty());
//! ```
#![forbid(unsafe_code)]

/// Well-known types of protocol buffers themselves.
pub mod google {
    /// `Any`, a message of any type.
    #[allow(missing_docs, clippy::all)]
    pub mod protobuf {
        include!(concat!(env!("OUT_DIR"), "/google.protobuf.rs"));
    }
}

/// Messages and services of TensorFlow.
#[allow(missing_docs, clippy::all)]
pub mod tensorflow {
    include!(concat!(env!("OUT_DIR"), "/tensorflow.rs"));

    /// Packages of TensorFlow's platform layer.
    pub mod core {
        /// The origin of an error: user code or the platform.
        pub mod platform {
            include!(concat!(env!("OUT_DIR"), "/tensorflow.core.platform.rs"));
        }
    }

    /// Input pipelines.
    pub mod data {
        include!(concat!(env!("OUT_DIR"), "/tensorflow.data.rs"));
    }

    /// Payloads in the details of a gRPC error.
    pub mod distributed_runtime {
        include!(concat!(env!("OUT_DIR"), "/tensorflow.distributed_runtime.rs"));
    }

    /// Error codes.
    pub mod error {
        include!(concat!(env!("OUT_DIR"), "/tensorflow.error.rs"));
    }
}

/// All definitions as an encoded `FileDescriptorSet`, from which the text format takes the names of fields.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

#[cfg(test)]
mod tests;
