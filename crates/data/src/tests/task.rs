//! Work in the background that panics.

use crate::{Task, Work};
use status::{Code, Error};
use std::sync::Arc;
use std::task::Waker;

#[derive(Default)]
struct Fragile {
    turns: usize,
    failed: Option<Error>,
}

impl Work for Fragile {
    fn turn(&mut self, _: &Waker) {
        self.turns += 1;
        assert!(self.turns > 1, "the first turn fails");
    }

    fn fail(&mut self, error: Error) {
        self.failed = Some(error);
    }
}

#[test]
fn work_that_panicked_answers_and_gets_another_turn() {
    let task = Task::new(Arc::new(|work| work()), Fragile::default());
    task.start();
    assert_eq!(task.with(|work| work.failed.take()).map(|error| error.code), Some(Code::Internal));
    task.start();
    assert_eq!(task.with(|work| (work.turns, work.failed.is_none())), (2, true));
}
