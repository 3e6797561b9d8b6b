//! Collective operations of several programs, one on each worker, with and without a member that is missing.

use crate::tests::net::Net;
use crate::tests::toy;
use crate::{Master, RunOptions, RunStep, SessionConfig};
use futures_util::future::join_all;
use status::{Code, Result};
use std::sync::Arc;
use std::time::Duration;

const LEADER: &str = "/job:worker/replica:0/task:0";

/// The program of one worker: a session of its own master, led by worker 0.
struct Program {
    master: Arc<Master>,
    session: String,
}

/// The floats of worker `own` are `own`, `own + 1/4` and so on. `sum` is their sum over `size` workers.
fn graph(own: usize, size: usize, count: usize) -> String {
    format!(
        "first @worker:{own} = Number {own}; key @worker:{own} = Number 3; \
         own @worker:{own} = Floats {count} first; sum @worker:{own} = AllReduce {size} own key"
    )
}

fn program(net: &Arc<Net>, own: usize, size: usize, count: usize) -> Program {
    let config = SessionConfig { collective_group_leader: LEADER.to_string(), ..SessionConfig::default() };
    let master = Master::with_default(net.worker(&format!("worker:{own}")), config);
    let config = SessionConfig { device_filters: vec![format!("/job:worker/task:{own}")], ..SessionConfig::default() };
    let session = net.run(master.create_session(toy::parse(&graph(own, size, count)), config)).expect("a session");
    Program { master, session }
}

fn programs(net: &Arc<Net>, size: usize, count: usize) -> Vec<Program> {
    (0..size).map(|own| program(net, own, size, count)).collect()
}

impl Program {
    async fn step(&self, timeout: Option<Duration>) -> Result<Vec<f32>> {
        let options = RunOptions { timeout, ..RunOptions::default() };
        let step = RunStep { fetches: vec!["sum:0".to_string()], options, ..RunStep::default() };
        let answer = self.master.run_step(&self.session, step).await?;
        Ok(answer.tensors[0].1.values::<f32>()?.to_vec())
    }
}

fn all(net: &Net, programs: &[Program]) -> Vec<Result<Vec<f32>>> {
    net.run(join_all(programs.iter().map(|program| program.step(None))))
}

/// The sum over workers, in the order in which the ring adds up: the numbers are exact.
fn expected(size: usize, count: usize) -> Vec<f32> {
    let of = |own: usize, place: usize| own as f32 + 0.25 * place as f32;
    (0..count).map(|place| (0..size).map(|own| of(own, place)).sum()).collect()
}

fn agree(net: &Net, programs: &[Program], count: usize) {
    let sum = expected(programs.len(), count);
    for result in all(net, programs) {
        assert_eq!(result.as_ref(), Ok(&sum));
    }
}

#[test]
fn programs_sum_over_one_to_five_workers_again_and_again() {
    for (size, count) in [(1, 3), (2, 1), (2, 34), (3, 0), (3, 100), (5, 1000)] {
        let tasks: Vec<String> = (0..size).map(|own| format!("worker:{own}")).collect();
        let net = Net::new(&tasks.join(" "));
        let programs = programs(&net, size, count);
        for _ in 0..3 {
            agree(&net, &programs, count);
        }
        // The members ask the leader once, and then only each other.
        let others = size - 1;
        let asked = ["complete_group", "complete_instance", "get_step_sequence"].map(|method| net.count(method));
        assert_eq!(asked, [others; 3], "{size} workers");
        // Every member receives each section that is not empty twice, except the one with which it begins or ends.
        let sections = (0..size).filter(|section| section * (count.div_ceil(size) * 4 / 64 + 1) * 16 < count).count();
        assert_eq!(net.count("recv_buf"), 3 * 2 * others * sections, "{size} workers, {count} floats");
    }
}

#[test]
fn a_member_that_does_not_come_ends_the_wait_of_the_others() {
    let net = Net::new("worker:0 worker:1");
    let programs = programs(&net, 2, 100);
    let timeout = Some(Duration::from_secs(5));
    let error = net.run(programs[0].step(timeout)).expect_err("the other is missing");
    assert_eq!(error.code, Code::DeadlineExceeded);
    agree(&net, &programs, 100);
}
