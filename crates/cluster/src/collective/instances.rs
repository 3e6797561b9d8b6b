//! The operations of a group, by their keys: compares what the members ask for, and finds the source of a broadcast.
//! Plain data: it calls nothing and waits for nothing.

use futures_channel::oneshot;
use rustc_hash::FxHashMap;
use status::{Error, Result, internal, invalid};
use tensor::{DType, Shape};

/// An operation as one member asks for it, in TensorFlow's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteInstance {
    /// The node and its operation, for messages.
    pub name: String,
    /// The number of the kind of operation.
    pub kind: i32,
    /// The type of the values.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: Shape,
    /// The group.
    pub group_key: i32,
    /// The number of its members.
    pub group_size: i32,
    /// The operation.
    pub instance_key: i32,
    /// The type of the devices.
    pub device_type: String,
    /// How a ring divides the values.
    pub subdiv_offsets: Vec<i32>,
    /// The device of the member.
    pub device: String,
    /// The member has the value that a broadcast sends.
    pub is_source: bool,
    /// Zero, or the step whose operation this is, if the key is used for another one in other steps.
    pub step_id: i64,
}

/// TensorFlow's number of broadcasts.
pub(crate) const BROADCAST: i32 = 1;

/// The rank of the source; -1 for operations without one.
pub(crate) type Source = i32;

/// What becomes of a member that asks.
pub(crate) enum Arrived {
    Now(Result<Source>),
    /// A broadcast waits until all members have asked.
    Later(oneshot::Receiver<Result<Source>>),
}

/// The operations of one group.
#[derive(Default)]
pub(crate) struct Instances {
    by_key: FxHashMap<(i64, i32), Instance>,
}

struct Instance {
    kind: i32,
    dtype: DType,
    shape: Shape,
    source: Source,
    failure: Option<Error>,
    /// The members of a broadcast that have asked, by rank.
    known: Vec<bool>,
    waiting: Vec<oneshot::Sender<Result<Source>>>,
}

impl Instances {
    /// A member of a group of this size asks for an operation.
    pub fn arrive(&mut self, request: &CompleteInstance, rank: usize, size: usize) -> Arrived {
        let key = (request.step_id, request.instance_key);
        let instance = self.by_key.entry(key).or_insert_with(|| Instance::new(request, vec![false; size]));
        if let Err(error) = instance.check(request) {
            if instance.kind != BROADCAST {
                self.by_key.remove(&key); // the members may agree in the next step
            }
            return Arrived::Now(Err(error));
        }
        match instance.kind {
            BROADCAST => instance.arrive(request, rank),
            _ => Arrived::Now(Ok(instance.source)),
        }
    }

    /// The source of an operation that the leader has answered before, or why the request differs from the earlier one.
    pub fn answered(&self, request: &CompleteInstance) -> Option<Result<Source>> {
        let instance = self.by_key.get(&(request.step_id, request.instance_key))?;
        Some(instance.check(request).map(|()| instance.source))
    }

    /// Remembers the answer of the leader.
    pub fn remember(&mut self, request: &CompleteInstance, source: Source) {
        let instance = Instance { source, ..Instance::new(request, Vec::new()) };
        self.by_key.insert((request.step_id, request.instance_key), instance);
    }
}

impl Instance {
    fn new(request: &CompleteInstance, known: Vec<bool>) -> Instance {
        Instance {
            kind: request.kind,
            dtype: request.dtype,
            shape: request.shape.clone(),
            source: -1,
            failure: None,
            known,
            waiting: Vec::new(),
        }
    }

    fn check(&self, request: &CompleteInstance) -> Result<()> {
        let CompleteInstance { kind, dtype, shape, instance_key, device, .. } = request;
        if (self.kind, self.dtype) != (*kind, *dtype) {
            return Err(internal!(
                "Collective instance {instance_key} expected type {} and data_type {} but got type {kind} and data_type \
                 {}",
                self.kind,
                self.dtype.number(),
                dtype.number()
            ));
        }
        if self.shape != *shape {
            return Err(invalid!(
                "Shape mismatch in the collective instance {instance_key}. Op at device {device} expected shape {shape} \
                 but another member in the group expected shape {}. This is likely due to different input shapes at \
                 different members of the collective op.",
                self.shape
            ));
        }
        Ok(())
    }

    /// A member of a broadcast asks.
    fn arrive(&mut self, request: &CompleteInstance, rank: usize) -> Arrived {
        let is_new = self.known.get_mut(rank).is_some_and(|known| !std::mem::replace(known, true));
        if is_new && request.is_source {
            match self.source {
                -1 => self.source = rank as Source,
                source => {
                    self.failure = Some(internal!(
                        "Instance {} already has source {source}, received second claim from {rank}",
                        request.instance_key
                    ));
                }
            }
        }
        let is_complete = self.known.iter().all(|&known| known);
        if self.failure.is_none() && !is_complete {
            let (answer, waiting) = oneshot::channel();
            self.waiting.push(answer);
            return Arrived::Later(waiting);
        }
        if self.failure.is_none() && self.source < 0 {
            self.failure = Some(internal!(
                "Instance {} found no source for broadcast.  This could mean that there were group_size={} BcastRecvs \
                 but no BcastSend.",
                request.instance_key,
                self.known.len()
            ));
        }
        let result = self.failure.clone().map_or(Ok(self.source), Err);
        self.waiting.drain(..).for_each(|waiting| drop(waiting.send(result.clone())));
        Arrived::Now(result)
    }
}
