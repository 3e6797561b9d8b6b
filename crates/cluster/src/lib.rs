//! The master and the worker of a task: sessions, steps, and what tasks say to each other.
//!
//! A [`Worker`] runs registered graphs; a [`Master`] turns the steps of clients into runs of graphs on the workers of a
//! cluster. Both are reached through a trait, [`WorkerClient`] and [`MasterClient`], which `grpc` implements too. How
//! other tasks are reached ([`Transport`]) and what runs background work ([`Runtime`]) is given to a worker when it is
//! made ([`WorkerOptions`]): this crate opens no socket.
#![forbid(unsafe_code)]

mod address;
mod api;
mod collective;
mod config;
mod ids;
mod local_runtime;
mod master;
mod master_client;
mod request_dedup;
mod runtime;
mod spec;
mod transport;
mod worker;

pub use address::host_and_port;
pub use api::{
    CompleteGroup, CompleteInstance, CompletedGroup, CreateWorkerSession, Deliver, DeviceAttributes, Features, Future,
    Logging, RecvBuf, RecvTensor, RegisterGraph, RunGraph, RunGraphAnswer, StepStats, TransferStats, WorkerClient,
};
pub use config::{RunOptions, SessionConfig};
pub use exec::{Differentiate, NodeStats};
pub use local_runtime::LocalRuntime;
pub use master::{CallableOptions, CostNode, Master, RunMetadata, RunStep, RunStepAnswer};
pub use master_client::MasterClient;
pub use op::{OpenedTensor, TensorStream};
pub use request_dedup::RequestDedup;
pub use runtime::{Runtime, Work};
pub use spec::{Addresses, ClusterSpec, Task};
pub use transport::{NoTransport, Transport};
pub use worker::{RemoteWorker, TaskCounts, Worker, WorkerOptions};

#[cfg(test)]
mod tests;
