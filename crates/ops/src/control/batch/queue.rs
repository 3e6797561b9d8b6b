//! The queues of a batcher as plain data: which tasks are in which batch, and which batch may run.

use status::{Result, invalid, unavailable};
use std::collections::VecDeque;

/// How tasks are put together.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// Larger tasks are refused.
    pub largest_task: usize,
    /// No batch is larger.
    pub largest_batch: usize,
    /// Batches are padded to the next of these sizes; there is none if they may have any size.
    pub sizes: Vec<usize>,
    /// More batches than this do not wait.
    pub most_waiting: usize,
    /// The number of batches that run at a time.
    pub running: usize,
}

/// Tasks in batches; a task has a size and is anything else.
pub(super) struct Queue<T> {
    /// Batches from the oldest to the one that is open for tasks.
    waiting: VecDeque<Batch<T>>,
    running: usize,
    next: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { waiting: VecDeque::new(), running: 0, next: 0 }
    }
}

/// Tasks that run together.
pub(super) struct Batch<T> {
    number: u64,
    size: usize,
    is_closed: bool,
    /// Tasks by number.
    pub tasks: Vec<(u64, T)>,
}

/// Where a task went.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joined {
    /// The number of the task.
    pub task: u64,
    /// The batch that it opened: it must be closed when its time is over.
    pub opened: Option<u64>,
}

impl<T> Queue<T> {
    /// An error if there is no room for a task of this size.
    pub fn check(&self, policy: &Policy, size: usize) -> Result<()> {
        if size > policy.largest_task {
            return Err(invalid!("Task size {size} is larger than maximum input batch size {}", policy.largest_task));
        }
        let open = self.waiting.back().filter(|batch| !batch.is_closed).map_or(0, |batch| batch.size);
        let begun = self.waiting.len().max(1);
        if open + size > policy.largest_task && begun >= policy.most_waiting {
            return Err(unavailable!(
                "The batch scheduling queue to which this task was submitted is full; currently {begun} batches \
                 enqueued and max_enqueued_batches is {}",
                policy.most_waiting
            ));
        }
        Ok(())
    }

    /// Adds a task to the open batch, or to a new one if that has too little room.
    pub fn join(&mut self, policy: &Policy, size: usize, task: T) -> Joined {
        self.next += 2;
        let number = self.next;
        if let Some(last) = self.waiting.back_mut() {
            last.is_closed |= last.size + size > policy.largest_batch;
        }
        let is_open = self.waiting.back().is_some_and(|batch| !batch.is_closed);
        if !is_open {
            let batch = Batch { number: number + 1, size: 0, is_closed: false, tasks: Vec::new() };
            self.waiting.push_back(batch);
        }
        if let Some(batch) = self.waiting.back_mut() {
            batch.tasks.push((number, task));
            batch.size += size;
            batch.is_closed = batch.size >= policy.largest_batch;
        }
        Joined { task: number, opened: (!is_open).then_some(number + 1) }
    }

    /// No task joins this batch any more.
    pub fn close(&mut self, number: u64) {
        if let Some(batch) = self.waiting.iter_mut().find(|batch| batch.number == number) {
            batch.is_closed = true;
        }
    }

    /// Takes the oldest batch, if it is closed and may run.
    pub fn start(&mut self, policy: &Policy) -> Option<Batch<T>> {
        if self.running >= policy.running || !self.waiting.front()?.is_closed {
            return None;
        }
        self.running += 1;
        self.waiting.pop_front()
    }

    /// A batch that was taken has run.
    pub fn ended(&mut self) {
        self.running -= 1;
    }

    /// Removes a task of this size that waits. An empty batch goes too.
    pub fn remove(&mut self, number: u64, size: usize) -> Option<T> {
        let place = |batch: &Batch<T>| batch.tasks.iter().position(|(task, _)| *task == number);
        let (index, at) = self.waiting.iter().enumerate().find_map(|(index, batch)| Some((index, place(batch)?)))?;
        let batch = &mut self.waiting[index];
        let (_, task) = batch.tasks.remove(at);
        batch.size -= size;
        if batch.tasks.is_empty() {
            self.waiting.remove(index);
        }
        Some(task)
    }

    /// Changes a task that waits.
    pub fn task_mut(&mut self, number: u64) -> Option<&mut T> {
        let tasks = self.waiting.iter_mut().flat_map(|batch| &mut batch.tasks);
        tasks.map(|(task, found)| (*task, found)).find(|(task, _)| *task == number).map(|(_, found)| found)
    }
}

/// The size to which a batch is padded.
pub(super) fn padded(policy: &Policy, size: usize) -> usize {
    policy.sizes.iter().copied().find(|&allowed| allowed >= size).unwrap_or(size)
}
