//! I am master and worker: sessions, steps, tasks. Others I reach through a trait; I never saw a socket.
#![forbid(unsafe_code)]

mod address;
mod api;
mod config;
mod ids;
mod master;
mod request_dedup;
mod spec;
mod worker;

pub use address::host_and_port;
pub use api::{
    CreateWorkerSession, Deliver, DeviceAttributes, Features, Future, Logging, Peers, RecvBuf, RecvTensor,
    RegisterGraph, RunGraph, RunGraphAnswer, StepStats, TransferStats, WorkerClient,
};
pub use config::{RunOptions, SessionConfig};
pub use exec::{Differentiate, NodeStats};
pub use master::{CallableOptions, Master, RunMetadata, RunStep, RunStepAnswer};
pub use op::{OpenedTensor, TensorStream};
pub use request_dedup::RequestDedup;
pub use spec::{Addresses, ClusterSpec, Task};
pub use worker::{NoPeers, RemoteWorker, TaskCounts, Worker, WorkerOptions};

#[cfg(test)]
mod tests;
