//! Sessions that are watched: hooks around every step, and recovery when a task is lost.

mod creator;
mod hook;
mod scaffold;
mod session;
mod step;
mod training;

pub use creator::{ChiefSessionCreator, SessionCreator, WorkerSessionCreator};
pub use hook::{RunArgs, RunContext, RunValues, SessionContext, SessionRunHook};
pub use scaffold::{
    INIT_OP, InitFn, LOCAL_INIT_OP, READY_FOR_LOCAL_INIT_OP, READY_OP, SUMMARY_OP, Scaffold, ScaffoldNodes,
};
pub use session::{MonitoredSession, SingularMonitoredSession, StepContext};
pub use training::MonitoredTrainingSession;
