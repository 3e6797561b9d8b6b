//! Starts ops that may wait: Send, Recv and kernels of kind `Later`. They hold no thread while they wait; a callback
//! delivers their outcome.

use crate::core::{Produced, Ready};
use crate::executor::{Execution, Message, Work};
use crate::kernel_call::{panic_error, resolve};
use crate::node_stats::record;
use crate::program::Node;
use crate::tensor_stream::add_remote_inputs;
use op::{Ctx, Outputs, Received, Run, Transfer, Value};
use smallvec::smallvec;
use status::{Result, internal};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tensor::Tensor;

impl Execution {
    /// Starts a kernel that waits. Gives an outcome only if the kernel could not be started.
    pub fn run_later(self: &Arc<Self>, node: &Node, work: Work) -> Option<Result<Produced>> {
        let Run::Later(run) = &node.kernel.run else { return None };
        let mut inputs = match resolve(node, work.inputs) {
            Ok(inputs) => inputs,
            Err(error) => return Some(Err(error.at_node(&node.name))),
        };
        let at = (work.frame_key, work.ready.iteration);
        let dead = add_remote_inputs(&mut inputs, node, at, &self.env, self.env.stats.as_ref());
        let ctx = Ctx { env: &self.env, frame: work.frame_key, iteration: work.ready.iteration };
        let start = self.env.stats.as_ref().map_or(0, |stats| stats.now());
        let (execution, mut ready, scheduled) = (self.clone(), work.ready, work.scheduled);
        let done = Box::new(move |result: Result<Outputs>| {
            ready.dead = dead.is_dead();
            let result = result.map(|outputs| outputs.into_iter().map(Some).collect::<Produced>());
            execution.deliver(ready, result, (scheduled, start));
        });
        match catch_unwind(AssertUnwindSafe(|| run(&ctx, inputs, done))) {
            Ok(()) => None,
            Err(panic) => Some(Err(panic_error(node, panic))),
        }
    }

    /// Sends a value to the rendezvous. A dead Send runs too, so that the other task learns that the value is dead.
    pub fn send(&self, transfer: &Transfer, node: &Node, work: Work) -> Result<Produced> {
        let key = transfer.key(work.frame_key, work.ready.iteration);
        if let Some(stats) = &self.env.stats {
            // Recorded first: a receiver that waits for the value continues inside `send`.
            record(stats, node, work.scheduled, stats.now(), None);
        }
        let rendezvous = &self.env.rendezvous;
        let sent = match work.inputs.into_iter().next().flatten() {
            _ if work.ready.dead => rendezvous.send(&key, dead_tensor(), true),
            Some(Value::Stored(stored)) => rendezvous.send_stored(&key, stored),
            Some(value) => value.read().and_then(|tensor| rendezvous.send(&key, tensor, false)),
            None => Err(internal!("nothing to send")),
        };
        sent.map(|()| Produced::new()).map_err(|error| error.at_node(&node.name))
    }

    /// Waits for a value from the rendezvous. Gives an outcome only if the Recv itself is dead.
    pub fn recv(self: &Arc<Self>, transfer: &Transfer, work: Work) -> Option<Result<Produced>> {
        if work.ready.dead {
            return Some(Ok(Produced::new()));
        }
        let key = transfer.key(work.frame_key, work.ready.iteration);
        let (execution, mut ready, scheduled) = (self.clone(), work.ready, work.scheduled);
        let start = self.env.stats.as_ref().map_or(0, |stats| stats.now());
        let done = move |received: Result<Received>| {
            let result = received.map(|(tensor, dead)| {
                ready.dead = dead;
                if dead { smallvec![None] } else { smallvec![Some(Value::Tensor(tensor))] }
            });
            execution.deliver(ready, result, (scheduled, start));
        };
        self.env.rendezvous.recv(&key, Box::new(done));
        None
    }

    /// Delivers the outcome of an op that waited. `times` are when it was scheduled and when it started.
    fn deliver(self: &Arc<Self>, ready: Ready, result: Result<Produced>, times: (u64, u64)) {
        let node = &self.program.nodes[ready.node as usize];
        if let Some(stats) = &self.env.stats {
            record(stats, node, times.0, times.1, result.as_ref().ok());
        }
        self.drive(Message(ready, result.map_err(|error| error.at_node(&node.name))), false);
    }
}

/// Stands in for the value of a dead tensor; it is never read.
fn dead_tensor() -> Tensor {
    Tensor::vector::<f32>(&[])
}
