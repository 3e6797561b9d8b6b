//! Tests of the op table and of the types that kernels and executors share.

mod cancel;
mod extensions;
mod kernel;
mod once_callback;
mod registry;
mod resources;
mod setup;
mod shapes;
mod tensor_stream;
mod variable;
