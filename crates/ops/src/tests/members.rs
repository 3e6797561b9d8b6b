//! Accumulators and tokens of synchronous training, on a task that distinguishes sessions.

use super::evaluate::{Evaluation, FLOAT, Started, constant, floats, graph, int};
use crate::data_structures::accumulator::*;
use crate::data_structures::queue::access::*;
use crate::state::read_variable::read_variable;
use graph::{AttrList, AttrValue, Graph, Output};
use membership::{Member, SyncPolicy};
use status::Code;
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

/// A ps task with one accumulator and the token queue, and the sessions that use them.
struct Job {
    graph: Graph,
    session: Evaluation,
    accumulator: Output,
    tokens: Output,
}

impl Job {
    fn new() -> Job {
        let graph = graph();
        let root = graph.root();
        let shape = PartialShape::new(&[1]);
        let accumulator = resource_conditional_accumulator(&root, "w:0/grad_accum", FLOAT, &shape);
        let shapes = AttrList { shapes: vec![PartialShape::scalar()], ..AttrList::default() };
        let tokens = root.op("FIFOQueueV2").attr("shared_name", "sync_token_q");
        let tokens = tokens.attr("component_types", vec![DType::I64]).attr("shapes", AttrValue::from(shapes)).output();
        Job { graph, session: Evaluation::new(), accumulator, tokens }
    }

    fn give(&self, member: &Arc<Member>, step: i64, gradient: f32) {
        let (step, gradient) = (constant(&self.graph, Tensor::scalar(step)), floats(&self.graph, &[gradient]));
        let apply = accumulator_apply_gradient(&self.accumulator, &step, &gradient);
        self.session.next_of(member).run(&apply).unwrap();
    }

    fn take(&self, required: i32) -> Started {
        let take = accumulator_take_gradient(&self.accumulator, &int(&self.graph, required), FLOAT);
        self.session.next().start(take.node())
    }

    fn put(&self, tokens: &[i64]) {
        let tokens = constant(&self.graph, Tensor::vector(tokens));
        self.session.next().run(&queue_enqueue_many(&self.tokens, &[tokens])).unwrap();
    }

    fn token(&self, member: &Arc<Member>) -> Started {
        let token = queue_dequeue(&self.tokens, &[DType::I64]).remove(0);
        self.session.next_of(member).start(token.node())
    }

    fn counters(&self) -> [i64; 3] {
        ["accepted", "stale", "dropped"].map(|fate| {
            let handle = self.graph.root().op("VarHandleOp").attr("shared_name", format!("w:0/grad_accum/{fate}"));
            let handle = handle.attr("dtype", DType::I64).attr("shape", PartialShape::scalar()).output();
            self.session.next().value(&read_variable(&handle, DType::I64)).unwrap().to_scalar().unwrap()
        })
    }
}

fn members<const N: usize>(policy: SyncPolicy) -> [Arc<Member>; N] {
    std::array::from_fn(|task| Arc::new(Member::new(policy, &format!("/job:worker/replica:0/task:{task}"))))
}

fn mean(taken: &Started) -> f32 {
    taken.tensors().unwrap()[0].values::<f32>().unwrap()[0]
}

fn step(token: &Started) -> i64 {
    token.tensors().unwrap()[0].to_scalar().unwrap()
}

#[test]
fn a_second_gradient_of_the_same_member_does_not_count() {
    let (job, [a, b]) = (Job::new(), members(SyncPolicy::Exact));
    let taken = job.take(2);
    job.give(&a, 0, 1.0);
    job.give(&a, 0, 100.0);
    assert!(taken.waits());
    job.give(&b, 0, 3.0);
    assert_eq!(mean(&taken), 2.0);
    job.give(&a, 0, 100.0);
    assert_eq!(job.counters(), [2, 1, 1]);
}

#[test]
fn other_accumulators_count_whatever_comes() {
    let (mut job, [a]) = (Job::new(), members(SyncPolicy::Exact));
    let shape = PartialShape::new(&[1]);
    job.accumulator = resource_conditional_accumulator(&job.graph.root(), "mine", FLOAT, &shape);
    let taken = job.take(2);
    job.give(&a, 0, 1.0);
    job.give(&a, 0, 3.0);
    assert_eq!(mean(&taken), 2.0);
}

#[test]
fn exact_steps_wait_for_dead_members() {
    let (job, [a, b]) = (Job::new(), members(SyncPolicy::Exact));
    let taken = job.take(2);
    job.give(&a, 0, 1.0);
    b.set_alive(false);
    assert!(taken.waits());
    // The gradient it sent before it died counts.
    job.give(&b, 0, 3.0);
    assert_eq!(mean(&taken), 2.0);
}

#[test]
fn a_dead_member_lowers_what_is_required() {
    let (job, [a, b]) = (Job::new(), members(SyncPolicy::Shrink));
    let taken = job.take(2);
    job.give(&a, 0, 1.0);
    job.give(&b, 0, 3.0);
    assert_eq!(mean(&taken), 2.0);
    // It dies after it sent a gradient, which is in the mean; the gradient of the other one is still required.
    let taken = job.take(2);
    job.give(&b, 1, 3.0);
    b.set_alive(false);
    assert!(taken.waits());
    job.give(&a, 1, 1.0);
    assert_eq!(mean(&taken), 2.0);
    // It is dead before it sends a gradient: the others have enough at once.
    let taken = job.take(2);
    job.give(&a, 2, 5.0);
    assert_eq!(mean(&taken), 5.0);
    // It returns, as a session of the same task.
    let [_, again] = members(SyncPolicy::Shrink);
    job.give(&again, 3, 1.0);
    let taken = job.take(2);
    assert!(taken.waits());
    again.end();
    assert!(taken.waits());
    job.give(&a, 3, 3.0);
    assert_eq!(mean(&taken), 2.0);
}

#[test]
fn a_dead_backup_lowers_nothing() {
    let (job, [a, b, c]) = (Job::new(), members(SyncPolicy::Shrink));
    [&a, &b, &c].into_iter().for_each(|member| job.give(member, 0, 1.0));
    assert_eq!(mean(&job.take(2)), 1.0);
    c.set_alive(false);
    let taken = job.take(2);
    job.give(&a, 1, 1.0);
    assert!(taken.waits());
    job.give(&b, 1, 1.0);
    assert_eq!(mean(&taken), 1.0);
}

#[test]
fn a_job_that_is_over_is_forgotten() {
    let (job, [a, b]) = (Job::new(), members(SyncPolicy::Shrink));
    [&a, &b].into_iter().for_each(|member| job.give(member, 0, 1.0));
    assert_eq!(mean(&job.take(2)), 1.0);
    [&a, &b].into_iter().for_each(|member| member.end());
    let [next, _] = members(SyncPolicy::Shrink);
    let taken = job.take(2);
    job.give(&next, 1, 1.0);
    assert!(taken.waits());
}

#[test]
fn a_token_goes_to_a_member_that_has_not_been_there() {
    let (job, [a, b]) = (Job::new(), members(SyncPolicy::Exact));
    job.put(&[0, 0]);
    job.give(&a, 0, 1.0);
    let first = job.token(&a);
    // It has given a gradient of step 0 already.
    assert!(first.waits());
    job.give(&b, 0, 1.0);
    let second = job.token(&b);
    job.put(&[1, 1]);
    assert_eq!((step(&first), step(&second)), (1, 1));
    job.give(&a, 1, 1.0);
    let next = job.token(&a);
    job.put(&[2, 2]);
    assert_eq!(step(&next), 2);
    let size = job.session.next().value(&queue_size(&job.tokens)).unwrap();
    assert_eq!(size.to_scalar::<i32>().unwrap(), 1);
    job.give(&a, 2, 1.0);
    let last = job.token(&a);
    job.session.next().run(&queue_close(&job.tokens, false)).unwrap();
    assert_eq!(last.tensors().unwrap_err().code, Code::OutOfRange);
}

#[test]
fn the_token_of_a_dead_member_goes_to_another() {
    let (job, [a, b]) = (Job::new(), members(SyncPolicy::Shrink));
    job.put(&[1]);
    assert_eq!(step(&job.token(&b)), 1);
    let waiting = job.token(&a);
    assert!(waiting.waits());
    b.set_alive(false);
    assert_eq!(step(&waiting), 1);
}

#[test]
fn tokens_of_a_job_that_is_over_are_not_for_the_next() {
    for policy in [SyncPolicy::Exact, SyncPolicy::Shrink] {
        let (job, [a, b]) = (Job::new(), members(policy));
        job.put(&[6, 6, 6]);
        for member in [&a, &b] {
            job.give(member, 5, 1.0);
            assert_eq!(step(&job.token(member)), 6);
        }
        [&b, &a].into_iter().for_each(|member| member.end());
        let [next, _] = members(policy);
        let waiting = job.token(&next);
        assert!(waiting.waits());
        job.put(&[1]);
        assert_eq!(step(&waiting), 1);
    }
}

#[test]
fn a_job_that_begins_anew_forgets_tokens_of_later_steps() {
    let (job, [a]) = (Job::new(), members(SyncPolicy::Exact));
    job.put(&[6, 6]);
    job.put(&[0]);
    assert_eq!(step(&job.token(&a)), 0);
}
