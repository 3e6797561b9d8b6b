//! A stop that reaches all processes of a job.

use super::Coordinator;
use graph::{Node, Scope};
use layers::Queue;
use session::Session;
use status::{Code, Result};
use std::sync::Arc;
use tensor::{DType, PartialShape};

/// Joins the coordinators of several processes: a queue on a task that all of them reach is closed when one of them
/// stops, and all who wait at it stop too. Nothing is ever put into it.
///
/// A closed queue stays closed as long as its container lives, so every run of a job wants a name of its own.
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

    /// Lets a coordinator stop when another one does, and the others when it does.
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
            // It may be closed by another already.
            let _ = session.execute(&close);
            Ok(())
        })
    }
}
