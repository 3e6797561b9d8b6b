//! TensorProto and back.
