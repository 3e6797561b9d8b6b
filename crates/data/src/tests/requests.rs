//! Requests that are withdrawn when their step is cancelled.

use crate::iterators::get_next::cancellable;
use math::Pool;
use op::{Ctx, OnceCallback, StepEnv, outputs};
use std::sync::Arc;

#[test]
fn an_answer_before_the_registration_leaves_nothing_registered() {
    let env = StepEnv::alone(Arc::new(Pool::new(1)));
    let held = Arc::new(());
    let registered = Arc::downgrade(&held);
    let ctx = Ctx { env: &env, frame: 0, iteration: 0 };
    cancellable(&ctx, Box::new(drop), move |done| {
        done(Ok(outputs![]));
        OnceCallback::new(move || drop(held))
    });
    assert!(registered.upgrade().is_none());
}
