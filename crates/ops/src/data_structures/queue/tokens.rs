//! The token queue of synchronous training, on a task that distinguishes sessions.

use super::items::{Element, Items};
use super::spec::{Order, Spec};
use membership::Member;
use tensor::{DType, Tensor};

/// The name of the queue of SyncReplicasOptimizer.
const NAME: &str = "sync_token_q";

/// True if a queue holds the tokens of synchronous training, which are step numbers.
pub(crate) fn is_token_queue(spec: &Spec) -> bool {
    spec.name == NAME && spec.order == Order::Fifo && matches!(spec.types[..], [DType::I64 | DType::I32])
}

/// Drops all tokens but those of the step that was added last: a gradient computed for an older one would be stale.
/// The steps of a job only grow, but the next job may start from zero.
pub(crate) fn drop_old(items: &mut Items) {
    let newest = items.iter().filter_map(step_of).last();
    if newest.is_some() {
        items.retain(|element| step_of(element) == newest);
    }
}

/// Drops the tokens of a job that is over and whose last token was for this step.
pub(crate) fn drop_until(items: &mut Items, last: i64) {
    items.retain(|element| step_of(element).is_some_and(|step| step > last));
}

/// Takes a token that a member can use.
pub(crate) fn take(items: &mut Items, member: &Member) -> Option<Element> {
    let token = items.pop_first(|element| step_of(element).is_some_and(|step| member.needs_token(step)))?;
    if let Some(step) = step_of(&token) {
        member.got_token(step);
    }
    Some(token)
}

/// A token for a step, as the queue holds it.
pub(crate) fn token(spec: &Spec, step: i64) -> Element {
    match spec.types[..] {
        [DType::I32] => vec![Tensor::scalar(step as i32)],
        _ => vec![Tensor::scalar(step)],
    }
}

/// The step that a token is for.
pub(crate) fn step_of(element: &Element) -> Option<i64> {
    let tensor = element.first()?;
    tensor.to_scalar::<i64>().or_else(|_| tensor.to_scalar::<i32>().map(i64::from)).ok()
}
