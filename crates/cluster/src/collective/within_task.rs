//! Operations of groups within one task: each member brings its value, and the last one combines them for all. No
//! value is copied, and all members share the result.

use futures_channel::oneshot;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result, internal};
use std::sync::Arc;
use tensor::Tensor;

/// The results of an operation: one for all members, or one for each, by rank.
pub(crate) type Results = Arc<Vec<Tensor>>;
type Waiting = oneshot::Sender<Result<Results>>;

/// The operations of one step, by their keys.
#[derive(Default)]
pub(crate) struct TaskOperations {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    aborted: Option<Error>,
    operations: FxHashMap<String, Operation>,
}

struct Operation {
    /// The values of the members that have come, by rank; the receivers of a broadcast bring none.
    values: Vec<Option<Option<Tensor>>>,
    waiting: Vec<Waiting>,
}

/// What becomes of a member that comes.
pub(crate) enum Arrival {
    /// Others are missing.
    Later(oneshot::Receiver<Result<Results>>),
    /// It is the last one: it combines the values.
    Last(Combining),
}

/// The values of all members, and those who wait for the result.
pub(crate) struct Combining {
    /// By rank.
    pub values: Vec<Option<Tensor>>,
    waiting: Vec<Waiting>,
}

impl Combining {
    /// Gives all members the result.
    pub fn finish(self, result: &Result<Results>) {
        self.waiting.into_iter().for_each(|waiting| drop(waiting.send(result.clone())));
    }
}

impl TaskOperations {
    /// A member of a group of this size comes with its value.
    pub fn arrive(&self, key: &str, rank: usize, size: usize, value: Option<Tensor>) -> Result<Arrival> {
        let mut state = self.state.lock();
        if let Some(error) = &state.aborted {
            return Err(error.clone());
        }
        let new = || Operation { values: vec![None; size], waiting: Vec::new() };
        let operation = state.operations.entry(key.to_string()).or_insert_with(new);
        match operation.values.get_mut(rank) {
            Some(place @ None) => *place = Some(value),
            _ => return Err(internal!("A second member of rank {rank} takes part in the collective operation {key}")),
        }
        if operation.values.iter().any(Option::is_none) {
            let (waiting, result) = oneshot::channel();
            operation.waiting.push(waiting);
            return Ok(Arrival::Later(result));
        }
        let operation = state.operations.remove(key).ok_or_else(|| internal!("the operation {key} is gone"))?;
        let values = operation.values.into_iter().map(Option::flatten).collect();
        Ok(Arrival::Last(Combining { values, waiting: operation.waiting }))
    }

    /// Fails the members that wait, and those to come.
    pub fn abort(&self, error: Error) {
        let (error, operations) = {
            let mut state = self.state.lock();
            let error = state.aborted.get_or_insert(error).clone();
            (error, std::mem::take(&mut state.operations))
        };
        let waiting = operations.into_values().flat_map(|operation| operation.waiting);
        waiting.for_each(|waiting| drop(waiting.send(Err(error.clone()))));
    }
}
