//! Members that die and come back, and how that changes the number of gradients a step requires.

use crate::{Member, Quorum, SyncPolicy};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn member(policy: SyncPolicy, task: usize) -> Arc<Member> {
    Arc::new(Member::new(policy, &format!("/job:worker/replica:0/task:{task}")))
}

fn quorum(members: &[Arc<Member>]) -> Quorum {
    let mut quorum = Quorum::default();
    members.iter().for_each(|member| assert!(quorum.join(member)));
    quorum
}

#[test]
fn policies_have_names() {
    let parsed = ["tf", "exact", "shrink"].map(|name| name.parse::<SyncPolicy>().unwrap());
    assert_eq!(parsed, [SyncPolicy::Tf, SyncPolicy::Exact, SyncPolicy::Shrink]);
    let error = "loose".parse::<SyncPolicy>().unwrap_err();
    assert_eq!(error.message, "unknown sync policy 'loose'; expected tf, exact or shrink");
}

#[test]
fn listeners_are_called_on_changes_only() {
    let (member, calls) = (member(SyncPolicy::Exact, 0), Arc::new(AtomicUsize::new(0)));
    let counted = calls.clone();
    member.on_change(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let after = |change: &dyn Fn(&Member)| {
        change(&member);
        calls.load(Ordering::Relaxed)
    };
    assert_eq!(after(&|member| member.set_alive(true)), 0);
    assert_eq!(after(&|member| member.set_alive(false)), 1);
    assert_eq!(after(&|member| member.set_alive(false)), 1);
    assert_eq!(after(&|member| member.sent_gradient(0)), 2); // a gradient shows that it is alive
    assert_eq!(after(&|member| member.end()), 3);
    assert_eq!(after(&|member| member.set_alive(true)), 3);
    assert!(member.has_ended() && !member.is_alive());
}

#[test]
fn a_listener_of_a_dead_member_is_called_at_once() {
    let (member, calls) = (member(SyncPolicy::Exact, 0), Arc::new(AtomicUsize::new(0)));
    member.end();
    let counted = calls.clone();
    member.on_change(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[test]
fn tokens_are_for_steps_without_a_gradient() {
    let member = member(SyncPolicy::Exact, 0);
    assert!(member.needs_token(0));
    member.got_token(0);
    assert!(!member.needs_token(0)); // without gradients, the token counts
    member.sent_gradient(3);
    assert_eq!([2, 3, 4].map(|step| member.needs_token(step)), [false, false, true]);
}

#[test]
fn the_token_of_a_dead_member_is_reclaimed_once() {
    let member = member(SyncPolicy::Shrink, 0);
    member.got_token(2);
    assert_eq!(member.reclaim_token(), None);
    member.set_alive(false);
    assert_eq!([(); 2].map(|()| member.reclaim_token()), [Some(2), None]);
    let other = self::member(SyncPolicy::Shrink, 1);
    other.got_token(2);
    other.sent_gradient(2);
    other.end();
    assert_eq!(other.reclaim_token(), None); // it has used its token
}

#[test]
fn without_members_only_the_count_matters() {
    let quorum = Quorum::default();
    assert_eq!([1, 2, 3].map(|count| quorum.is_reached(2, count)), [false, true, true]);
}

#[test]
fn exact_steps_wait_for_dead_members() {
    let members = [0, 1].map(|task| member(SyncPolicy::Exact, task));
    let mut quorum = quorum(&members);
    quorum.add_gradient(&members[0]);
    members[1].set_alive(false);
    assert!(!quorum.is_reached(2, 1));
    quorum.add_gradient(&members[1]);
    assert!(quorum.is_reached(2, 2) && quorum.has_gradient_of(&members[1]));
    quorum.reset();
    assert!(!quorum.is_reached(2, 0) && !quorum.has_gradient_of(&members[1]));
}

#[test]
fn shrinking_steps_require_as_many_gradients_as_members_are_alive() {
    let members = [0, 1, 2].map(|task| member(SyncPolicy::Shrink, task));
    let mut quorum = quorum(&members);
    quorum.add_gradient(&members[0]);
    let reached = |quorum: &Quorum| [1, 2, 3].map(|required| quorum.is_reached(required, 1));
    assert_eq!(reached(&quorum), [true, false, false]);
    members[2].set_alive(false);
    assert_eq!(reached(&quorum), [true, false, false]); // two of three are alive: two gradients are still possible
    members[1].set_alive(false);
    assert_eq!(reached(&quorum), [true, true, true]);
    members[1].set_alive(true);
    assert_eq!(reached(&quorum), [true, false, false]);
}

#[test]
fn a_session_replaces_a_dead_one_of_its_task() {
    let members = [0, 1].map(|task| member(SyncPolicy::Shrink, task));
    let mut quorum = quorum(&members);
    assert!(!quorum.join(&members[0]));
    members[1].end();
    assert!(quorum.join(&member(SyncPolicy::Shrink, 1)));
    quorum.add_gradient(&members[0]);
    assert!(!quorum.is_reached(2, 1)); // both members are alive
}

#[test]
fn dead_members_are_forgotten_when_another_job_begins() {
    let members = [0, 1].map(|task| member(SyncPolicy::Shrink, task));
    let mut quorum = quorum(&members);
    members.iter().for_each(|member| member.end());
    let next = member(SyncPolicy::Shrink, 7);
    quorum.join(&next);
    quorum.add_gradient(&next);
    assert!(!quorum.is_reached(2, 1)); // none of its members has died
}
