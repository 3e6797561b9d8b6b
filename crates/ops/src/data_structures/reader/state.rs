//! A reader: takes names of files from a queue and returns their records, one op at a time.

use super::format::{Format, Opened};
use crate::data_structures::queue::state::Queue;
use crate::data_structures::waiting::{Answer, Line, Waiter};
use io::FileSystems;
use op::{Resource, StepEnv};
use parking_lot::Mutex;
use status::{Result, cancelled, invalid, unimplemented_op};
use std::sync::Arc;
use tensor::{Bytes, Tensor};

/// A reader of records, one file after the other. While one op waits for the next file, other ops wait in line.
pub(crate) struct Reader {
    name: String,
    format: Arc<Format>,
    systems: Arc<FileSystems>,
    state: Mutex<State>,
}

impl Resource for Reader {
    const TYPE_NAME: &'static str = "N10tensorflow15ReaderInterfaceE";
}

#[derive(Default)]
struct State {
    busy: bool,
    line: Line<Request>,
    counts: Counts,
    work: Bytes,
    opened: Option<Opened>,
    /// The position of the last failed read. The next read starts there: a temporary fault loses no record, and a
    /// permanent one is reported by every read.
    stuck: Option<u64>,
    /// True if the current file is in a remote file system, so that reading it may take time.
    is_remote: bool,
}

/// The numbers that a reader reports.
#[derive(Clone, Copy, Default)]
struct Counts {
    started: i64,
    finished: i64,
    records: i64,
}

/// The request of an op: one record, or a vector of records.
pub(crate) struct Request {
    pub queue: Arc<Queue>,
    pub up_to: Option<usize>,
    keys: Vec<Bytes>,
    values: Vec<Bytes>,
}

impl Request {
    /// A request for one record, or for up to this many.
    pub fn new(queue: Arc<Queue>, up_to: Option<usize>) -> Request {
        Request { queue, up_to, keys: Vec::new(), values: Vec::new() }
    }

    fn left(&self) -> usize {
        self.up_to.unwrap_or(1) - self.keys.len()
    }

    fn tensors(mut self) -> Result<Vec<Tensor>> {
        if self.up_to.is_none() {
            let (key, value) = (self.keys.pop().unwrap_or_default(), self.values.pop().unwrap_or_default());
            return Ok(vec![Tensor::string(key), Tensor::string(value)]);
        }
        let strings = |all: Vec<Bytes>| Tensor::from_strings([all.len()], all);
        Ok(vec![strings(self.keys)?, strings(self.values)?])
    }
}

impl Reader {
    /// A reader that has read nothing; errors contain `name`.
    pub fn new(name: String, format: Arc<Format>, systems: Arc<FileSystems>) -> Reader {
        Reader { name, format, systems, state: Mutex::default() }
    }

    /// How many records it gave.
    pub fn records(&self) -> i64 {
        self.state.lock().counts.records
    }

    /// How many files it finished.
    pub fn finished(&self) -> i64 {
        self.state.lock().counts.finished
    }

    /// Starts from the beginning; the current file is closed.
    pub fn reset(&self) {
        self.state.lock().reset();
    }

    /// Reads, now or when there is a file to read from.
    pub fn read(self: &Arc<Self>, env: &Arc<StepEnv>, request: Request, answer: Answer) {
        if env.cancel.is_cancelled() {
            return answer(Err(gave_up()));
        }
        let waiter = Waiter::new(env, answer);
        let mut state = self.state.lock();
        if !state.busy {
            state.busy = true;
            let is_remote = state.is_remote;
            drop(state);
            return if is_remote {
                self.advance_elsewhere(request, waiter)
            } else {
                self.advance(env, request, waiter)
            };
        }
        let number = state.line.join(request, waiter);
        let reader = self.clone();
        let too_late = state.line.watch(number, move || {
            let waiting = reader.state.lock().line.remove(number);
            if let Some((_, waiter)) = waiting {
                waiter.abandon(gave_up());
            }
        });
        drop(state);
        if let Some((_, waiter)) = too_late {
            waiter.abandon(gave_up());
        }
    }

    /// Takes records from the current file. At its end, requests the next file name from the queue.
    fn advance(self: &Arc<Self>, here: &Arc<StepEnv>, mut request: Request, waiter: Waiter) {
        let complete = self.unstick().and_then(|()| self.state.lock().take_records(&mut request));
        match complete {
            Ok(false) => {
                let (reader, queue, env) = (self.clone(), request.queue.clone(), waiter.env().clone());
                queue.dequeue(&env, Box::new(move |item| reader.arrived(item, request, waiter)));
            }
            Ok(true) => self.settle(here, waiter, request.tensors()),
            Err(error) => self.settle(here, waiter, Err(error)),
        }
    }

    /// Opens the file again that could not be read.
    fn unstick(&self) -> Result<()> {
        let (work, stuck) = {
            let state = self.state.lock();
            (state.work.clone(), state.stuck)
        };
        let Some(offset) = stuck else { return Ok(()) };
        let opened = self.format.open(&self.systems, &work, offset)?;
        let mut state = self.state.lock();
        // Unless it was reset meanwhile.
        if state.stuck.take().is_some() {
            state.opened = Some(opened);
        }
        Ok(())
    }

    /// Handles the answer of the queue. It continues on another thread, because opening a file takes time and may lead
    /// to the next file.
    fn arrived(self: &Arc<Self>, item: Result<Vec<Tensor>>, request: Request, waiter: Waiter) {
        let (reader, env) = (self.clone(), waiter.env().clone());
        let here = env.clone();
        (env.spawn)(Box::new(move || match item.and_then(|item| reader.open(&item)) {
            Ok(()) => reader.advance(&here, request, waiter),
            Err(error) => reader.settle(&here, waiter, Err(error)),
        }));
    }

    fn open(&self, item: &[Tensor]) -> Result<()> {
        let [tensor] = item else { return Err(invalid!("Expected single component queue")) };
        let strings = tensor.strings().map_err(|_| invalid!("Expected queue with single string component"))?;
        let [work] = strings else {
            return Err(invalid!("Expected to dequeue a one-element string tensor"));
        };
        self.state.lock().work = work.clone(); // what was found counts as begun even if it cannot be opened
        let opened = match self.format.open(&self.systems, work, 0) {
            Err(error) if self.format.is_begun_unread() => {
                let mut state = self.state.lock();
                state.stuck = Some(0);
                state.counts.started += 1;
                return Err(error);
            }
            opened => opened?,
        };
        let is_remote = self.systems.of(&String::from_utf8_lossy(work)).is_ok_and(|system| system.is_far());
        let mut state = self.state.lock();
        state.opened = Some(opened);
        state.is_remote = is_remote;
        state.counts.started += 1;
        Ok(())
    }

    /// Answers one op and starts the next one in line.
    fn settle(self: &Arc<Self>, here: &Arc<StepEnv>, waiter: Waiter, result: Result<Vec<Tensor>>) {
        let next = {
            let mut state = self.state.lock();
            let next = state.line.pop();
            state.busy = next.is_some();
            next
        };
        waiter.settle(here, move || result);
        if let Some((request, waiter)) = next {
            self.advance_elsewhere(request, waiter);
        }
    }

    fn advance_elsewhere(self: &Arc<Self>, request: Request, waiter: Waiter) {
        let (reader, env) = (self.clone(), waiter.env().clone());
        let there = env.clone();
        (env.spawn)(Box::new(move || reader.advance(&there, request, waiter)));
    }

    /// The state of the reader as bytes, in TensorFlow's format.
    pub fn serialize(&self) -> Result<Vec<u8>> {
        if !self.format.is_whole() {
            return Err(unimplemented_op!("Reader SerializeState"));
        }
        let state = self.state.lock();
        let counts = state.counts;
        let mut bytes = Vec::new();
        for (field, value) in [(1, counts.started), (2, counts.finished), (3, counts.records)] {
            if value != 0 {
                bytes.push(field << 3);
                put_varint(&mut bytes, value as u64);
            }
        }
        if !state.work.is_empty() {
            bytes.push(4 << 3 | 2);
            put_varint(&mut bytes, state.work.len() as u64);
            bytes.extend_from_slice(&state.work);
        }
        Ok(bytes)
    }

    /// Restores the state from the bytes of `serialize`.
    pub fn restore(&self, bytes: &[u8]) -> Result<()> {
        if !self.format.is_whole() {
            return Err(unimplemented_op!("Reader RestoreState"));
        }
        let restored = parse_state(bytes)
            .ok_or_else(|| invalid!("Could not parse state for {}: {}", self.name, bytes.escape_ascii()));
        let checked = restored.and_then(|(counts, work)| self.check_counts(counts).map(|()| (counts, work)));
        let mut state = self.state.lock();
        state.reset();
        (state.counts, state.work) = checked?;
        Ok(())
    }

    fn check_counts(&self, counts: Counts) -> Result<()> {
        let text = format!(
            "work_started: {} work_finished: {} num_records_produced: {}",
            counts.started, counts.finished, counts.records
        );
        if counts.started < 0 || counts.finished < 0 || counts.records < 0 {
            return Err(invalid!("Unexpected negative value when restoring in {}: {text}", self.name));
        }
        if counts.started > counts.finished {
            let name = &self.name;
            return Err(invalid!("Inconsistent work started vs. finished when restoring in {name}: {text}"));
        }
        Ok(())
    }
}

impl State {
    fn reset(&mut self) {
        self.counts = Counts::default();
        self.work = Bytes::new();
        self.opened = None;
        self.stuck = None;
    }

    /// Moves records from the open file to a request; true if that is all it will get.
    fn take_records(&mut self, request: &mut Request) -> Result<bool> {
        let Some(opened) = &mut self.opened else { return Ok(request.left() == 0) };
        while request.left() > 0 {
            let place = opened.place();
            let next = match opened.next(&self.work) {
                Ok(next) => next,
                Err(error) => {
                    self.opened = None;
                    self.stuck = Some(place);
                    // Records before the fault are returned; the next read reports the fault.
                    return if request.keys.is_empty() { Err(error) } else { Ok(true) };
                }
            };
            let Some((key, value)) = next else { break };
            request.keys.push(key);
            request.values.push(value);
            self.counts.records += 1;
        }
        if request.left() > 0 || opened.is_whole() {
            self.opened = None;
            self.counts.finished = self.counts.started;
        }
        Ok(!request.keys.is_empty() || request.left() == 0)
    }
}

fn gave_up() -> status::Error {
    cancelled!("Dequeue operation was cancelled")
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn parse_state(mut bytes: &[u8]) -> Option<(Counts, Bytes)> {
    let (mut counts, mut work) = (Counts::default(), Bytes::new());
    while !bytes.is_empty() {
        match take_varint(&mut bytes)? {
            0x08 => counts.started = take_varint(&mut bytes)? as i64,
            0x10 => counts.finished = take_varint(&mut bytes)? as i64,
            0x18 => counts.records = take_varint(&mut bytes)? as i64,
            0x22 => {
                let length = usize::try_from(take_varint(&mut bytes)?).ok()?;
                work = Bytes::copy_from_slice(bytes.get(..length)?);
                bytes = &bytes[length..];
            }
            _ => return None,
        }
    }
    Some((counts, work))
}
