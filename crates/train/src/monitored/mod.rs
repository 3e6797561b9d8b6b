//! Sessions that are watched: hooks around every step, and recovery when a task is lost.

mod hook;

pub use hook::{RunArgs, RunContext, RunValues, SessionContext, SessionRunHook};
