//! The token queue of synchronous training, at a task that tells sessions apart: whose token is whose.

use super::items::{Element, Items};
use super::spec::{Order, Spec};
use op::Member;
use tensor::{DType, Tensor};

/// The name that SyncReplicasOptimizer gives its queue.
const NAME: &str = "sync_token_q";

/// Whether a queue holds the tokens of synchronous training: numbers of steps.
pub(crate) fn is_token_queue(spec: &Spec) -> bool {
    spec.name == NAME && spec.order == Order::Fifo && matches!(spec.types[..], [DType::I64 | DType::I32])
}

/// Forgets tokens of other steps than the last that was put in: who got one would only compute a gradient that comes
/// too late. Steps of a job grow, but the next job may begin anew.
pub(crate) fn forget_old(items: &mut Items) {
    let newest = items.iter().filter_map(step_of).last();
    if newest.is_some() {
        items.retain(|element| step_of(element) == newest);
    }
}

/// Forgets what is left of a job that is over, whose last token was for this step.
pub(crate) fn forget_until(items: &mut Items, last: i64) {
    items.retain(|element| step_of(element).is_some_and(|step| step > last));
}

/// Takes a token that a member has a use for.
pub(crate) fn take(items: &mut Items, member: &Member) -> Option<Element> {
    let token = items.pop_first(|element| step_of(element).is_some_and(|step| member.wants(step)))?;
    if let Some(step) = step_of(&token) {
        member.take_token(step);
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
