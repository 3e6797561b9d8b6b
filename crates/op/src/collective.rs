//! What the kernels of collective ops ask of the worker: to join a group of devices, and to take part in an operation of
//! the group. The worker implements the trait; this crate knows no other task.

use crate::{Ctx, StepEnv};
use status::Result;
use std::sync::Arc;
use std::time::Duration;
use tensor::{DType, Shape, Tensor};

/// How two values are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The sum.
    Add,
    /// The product.
    Mul,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

/// What an operation does with the values of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// Merges them; every member gets the result.
    Reduce {
        /// How two values are merged.
        merge: Merge,
        /// Divide the result by the number of members.
        divide: bool,
    },
    /// Every member gets the value of one of them.
    Broadcast {
        /// This member has the value.
        is_source: bool,
    },
    /// Every member gets the values of all, concatenated by rank.
    Gather,
    /// Every member gets one slice of each value: the one with its rank.
    AllToAll,
}

/// How a ring divides the values further, besides one section for each member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subdivisions {
    /// One ring for each of these offsets.
    Offsets(Vec<i32>),
    /// At most as many rings for each device, by the size of the value; one if it is negative.
    AtMost(i32),
}

/// A group as one of its members describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRequest {
    /// The number by which all members know the group.
    pub key: i32,
    /// The number of its members.
    pub size: usize,
    /// The rank that the program gave this member, if it gave one.
    pub rank: Option<usize>,
    /// The operation fails after this time, if there is one.
    pub timeout: Option<Duration>,
}

/// A collective operation as one member asks for it.
#[derive(Clone, Debug)]
pub struct CollectiveRequest {
    /// The name of the node and the kind of its operation, for messages.
    pub name: String,
    /// The device of the member.
    pub device: Arc<str>,
    /// The group.
    pub group: GroupRequest,
    /// The group was joined before. Otherwise the operation joins it.
    pub is_joined: bool,
    /// The number by which all members know the operation.
    pub instance_key: i32,
    /// What it does.
    pub kind: CollectiveKind,
    /// The type of the values.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: Shape,
    /// How a ring divides the values.
    pub subdivisions: Subdivisions,
    /// The value of this member; none if it only receives.
    pub input: Option<Tensor>,
}

/// Called with the end of a collective operation.
pub type OnCollective<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// Runs collective operations.
pub trait Collectives: Send + Sync {
    /// Makes a device a member of a group; calls `done` when all members have joined.
    fn join(&self, env: &Arc<StepEnv>, device: &str, group: GroupRequest, done: OnCollective<()>);

    /// Takes part in an operation; calls `done` with the result.
    fn run(&self, ctx: &Ctx<'_>, request: CollectiveRequest, done: OnCollective<Tensor>);
}

/// The collectives of a session, as a value among the extensions of its steps.
pub struct CollectiveRuntime(pub Arc<dyn Collectives>);
