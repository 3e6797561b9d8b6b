//! Tests of the op table and of the state that kernels share.

mod cancel;
mod extensions;
mod kernel;
mod once_callback;
mod registry;
mod resources;
mod setup;
mod shapes;
mod variable;
