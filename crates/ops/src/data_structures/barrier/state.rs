//! A barrier: keys whose components arrive one by one, in any order, and which leave when they are complete.

use crate::data_structures::queue::spec::Spec;
use crate::data_structures::queue::state::{Batch, Queue};
use crate::data_structures::waiting::Answer;
use op::{Resource, StepEnv};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Result, cancelled, invalid, out_of_range};
use std::sync::Arc;
use tensor::{Bytes, DType, PartialShape, Tensor};

/// A barrier. Complete keys leave in the order in which their first components arrived.
pub(crate) struct Barrier {
    pub name: String,
    pub types: Vec<DType>,
    pub shapes: Vec<PartialShape>,
    ready: Arc<Queue>,
    state: Mutex<State>,
}

impl Resource for Barrier {
    const TYPE_NAME: &'static str = "N10tensorflow7barrier7BarrierE";
}

struct State {
    closed: bool,
    cancel_pending: bool,
    next: i64,
    incomplete: FxHashMap<Bytes, Incomplete>,
}

/// A key that waits for components, and the position of its first one.
struct Incomplete {
    number: i64,
    components: Vec<Option<Tensor>>,
}

impl Barrier {
    /// An open barrier with nothing in it.
    pub fn new(name: &str, types: Vec<DType>, shapes: Vec<PartialShape>) -> Result<Barrier> {
        let queue_types = [&[DType::STRING], &types[..]].concat();
        let queue_shapes = [&[PartialShape::scalar()], &shapes[..]].concat();
        let spec = Spec::sorted(&queue_types, &queue_shapes).named(&format!("{name}_queue"))?;
        let state = State { closed: false, cancel_pending: false, next: i64::MIN, incomplete: FxHashMap::default() };
        Ok(Barrier {
            name: name.to_string(),
            types,
            shapes,
            ready: Arc::new(Queue::new(spec)),
            state: Mutex::new(state),
        })
    }

    /// How many keys are complete.
    pub fn ready_size(&self) -> usize {
        self.ready.len()
    }

    /// How many keys wait for components.
    pub fn incomplete_size(&self) -> usize {
        self.state.lock().incomplete.len()
    }

    /// Sets one component of each key; `values` has one value for each.
    pub fn insert_many(
        &self,
        env: &Arc<StepEnv>,
        component: usize,
        keys: &[Bytes],
        values: Vec<Tensor>,
        answer: Answer,
    ) {
        match self.insert(component, keys, values) {
            Err(error) => answer(Err(error)),
            Ok(ready) => {
                for element in ready {
                    self.ready.enqueue(env, Batch::One(element), Box::new(|_| ()));
                }
                answer(Ok(Vec::new()));
            }
        }
    }

    fn insert(&self, component: usize, keys: &[Bytes], values: Vec<Tensor>) -> Result<Vec<Vec<Tensor>>> {
        let mut state = self.state.lock();
        if state.closed && (state.cancel_pending || (!keys.is_empty() && state.incomplete.is_empty())) {
            return Err(cancelled!(
                "Barrier {} is closed.  Pending enqueues cancelled: {}.  Number of new insertions: {}.  Number of \
                 incomplete keys: {}.",
                self.name,
                u8::from(state.cancel_pending),
                keys.len(),
                state.incomplete.len()
            ));
        }
        let mut ready = Vec::new();
        let mut is_new = false;
        for (i, (key, value)) in keys.iter().zip(values).enumerate() {
            is_new |= self.admit(&mut state, key, i)?;
            ready.extend(self.insert_one(&mut state, component, key, value)?);
        }
        state.next += i64::from(is_new);
        Ok(ready)
    }

    /// Adds a key without components; true if it is new.
    fn admit(&self, state: &mut State, key: &Bytes, index: usize) -> Result<bool> {
        if state.incomplete.contains_key(key) {
            return Ok(false);
        }
        if state.closed {
            return Err(cancelled!(
                "Barrier {} is closed, but attempted to insert a brand new key: {}.  Pending enqueues cancelled: {}.  \
                 Insertion index: {index}.  Number of incomplete keys: {}.",
                self.name,
                String::from_utf8_lossy(key),
                u8::from(state.cancel_pending),
                state.incomplete.len()
            ));
        }
        let entry = Incomplete { number: state.next, components: vec![None; self.types.len()] };
        state.incomplete.insert(key.clone(), entry);
        Ok(true)
    }

    /// Adds a component of a key. If it was the last one, returns the element that leaves.
    fn insert_one(
        &self,
        state: &mut State,
        component: usize,
        key: &Bytes,
        value: Tensor,
    ) -> Result<Option<Vec<Tensor>>> {
        let Some(entry) = state.incomplete.get_mut(key) else { return Ok(None) };
        let Some(slot) = entry.components.get_mut(component) else { return Ok(None) };
        if slot.is_some() {
            return Err(invalid!(
                "Key {} already has a value for component {component} in barrier {}",
                String::from_utf8_lossy(key),
                self.name
            ));
        }
        *slot = Some(value);
        if entry.components.iter().any(Option::is_none) {
            return Ok(None);
        }
        let mut element = vec![Tensor::scalar(entry.number), Tensor::string(key.clone())];
        element.extend(state.incomplete.remove(key).into_iter().flat_map(|entry| entry.components).flatten());
        self.ready.spec.check_element(&element)?;
        Ok(Some(element))
    }

    /// Removes `count` complete keys: their numbers, the keys, their components.
    pub fn take_many(&self, env: &Arc<StepEnv>, count: usize, small_batch: bool, answer: Answer) {
        let state = self.state.lock();
        let mut wanted = count;
        if state.closed {
            let mut available = self.ready.len();
            match small_batch {
                true => wanted = count.min(available),
                false => available += state.incomplete.len(),
            }
            if available < wanted.max(1) {
                drop(state);
                return answer(Err(out_of_range!(
                    "Barrier '{}' is closed and has insufficient elements (requested {wanted}, total size {available})",
                    self.name
                )));
            }
        }
        drop(state);
        self.ready.dequeue_many(env, wanted, small_batch, answer);
    }

    /// Accepts no new keys. Keys that wait may still be completed, unless `cancel_pending` is set.
    pub fn close(&self, env: &Arc<StepEnv>, cancel_pending: bool, answer: Answer) {
        let mut state = self.state.lock();
        if state.closed && (state.cancel_pending || !cancel_pending) {
            drop(state);
            return answer(Err(cancelled!("Barrier '{}' is already closed.", self.name)));
        }
        state.closed = true;
        state.cancel_pending = cancel_pending;
        let over = cancel_pending || state.incomplete.is_empty();
        if over {
            state.incomplete.clear();
        }
        drop(state);
        match over && !self.ready.is_closed() {
            true => self.ready.close(env, cancel_pending, answer),
            false => answer(Ok(Vec::new())),
        }
    }
}
