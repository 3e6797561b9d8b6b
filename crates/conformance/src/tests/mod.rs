//! All cases on all runtimes, and the rows against TensorFlow's op list.

mod bad_input;
mod builders;
mod cases;
mod client;
mod docs;
mod format;
mod graphs;
mod op_list;
mod programs;
mod real;
mod session;
mod twins;
