//! A stop that all processes of a job share.

use super::Coordinator;
use graph::{Node, Scope};
use layers::Queue;
use session::Session;
use status::{Code, Result};
use std::sync::Arc;
use tensor::{DType, PartialShape};

/// Connects the coordinators of several processes: when one of them stops, it closes a queue on a task that all of
/// them reach, and the others, which wait at that queue, stop too. The queue is always empty.
///
/// A closed queue stays closed as long as its container exists, so every run of a job needs a name of its own.
pub struct SharedStop {
    wait: Node,
    close: Node,
}

impl SharedStop {
    /// The stop of this name, on the device of `scope`.
    pub fn new(scope: &Scope, name: &str) -> SharedStop {
        let queue = Queue::fifo(scope, &[DType::BOOL]).shapes(&[PartialShape::scalar()]).shared_name(name).name(name);
        let queue = queue.build();
        SharedStop { wait: queue.dequeue().remove(0).node().clone(), close: queue.close(true) }
    }

    /// Stops a coordinator when another one stops, and the others when it stops.
    pub fn join(&self, session: &Arc<Session>, coordinator: &Coordinator) -> Result<()> {
        let (wait, waiting) = (self.wait.clone(), session.clone());
        coordinator.spawn("SharedStop-wait", move |coordinator| match waiting.execute(&wait) {
            Err(error) if error.code == Code::OutOfRange => {
                coordinator.request_stop();
                Ok(())
            }
            other => other,
        })?;
        let (close, session) = (self.close.clone(), session.clone());
        coordinator.spawn("SharedStop-tell", move |coordinator| {
            coordinator.wait_for_stop(None);
            // Another process may have closed it already, so an error is ignored.
            let _ = session.execute(&close);
            Ok(())
        })
    }
}
