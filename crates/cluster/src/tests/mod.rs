//! Master and worker on a network without sockets: steps over several tasks, while tasks fail, do not answer, restart or
//! are not up yet.

mod batches;
mod buffers;
mod collective_groups;
mod collectives;
mod config;
mod device_types;
mod isolation;
mod local_runtime;
mod net;
mod partial;
mod plans;
mod request_dedup;
mod scaling;
mod spec;
mod step_ends;
mod toy;

use crate::{Logging, Master, RunOptions, RunStep, SessionConfig, TaskCounts, TransferStats};
use net::Net;
use status::{Code, Error, Result};
use std::sync::Arc;
use std::time::Duration;

const THREE: &str = "worker:0 worker:1 ps:0";
const SUMS: &str = "a @ps:0 = Number 2; b @worker:1 = Number 3; c @worker:0 = Sum a b; d @ps:0 = Sum c a; \
                    near @worker:0 = Number 9; f @ps:0 = Fail a; g @worker:0 = Sum f near; h @worker:1 = Sum g b; \
                    n @ps:0 = Never a; m @worker:0 = Sum n near";

/// A session of the first worker.
struct Client {
    net: Arc<Net>,
    master: Arc<Master>,
    session: String,
}

fn open(net: &Arc<Net>, text: &str, config: SessionConfig) -> Result<Client> {
    let master = Master::new(net.worker("worker:0"));
    let session = net.run(master.create_session(toy::parse(text), config))?;
    Ok(Client { net: net.clone(), master, session })
}

fn three() -> (Arc<Net>, Client) {
    let net = Net::new(THREE);
    let client = open(&net, SUMS, SessionConfig::default()).expect("a session");
    (net, client)
}

impl Client {
    fn fetch(&self, name: &str) -> Result<i32> {
        self.net.run(self.step(name))
    }

    async fn step(&self, name: &str) -> Result<i32> {
        let step = RunStep { fetches: vec![format!("{name}:0")], ..RunStep::default() };
        let answer = self.master.run_step(&self.session, step).await?;
        answer.tensors[0].1.to_scalar()
    }

    #[track_caller]
    fn fails(&self, name: &str) -> Error {
        self.fetch(name).expect_err("the step cannot succeed")
    }
}

#[test]
fn a_step_runs_over_three_tasks() {
    let (_, client) = three();
    for _ in 0..20 {
        assert_eq!((client.fetch("c"), client.fetch("d"), client.fetch("near")), (Ok(5), Ok(7), Ok(9)));
    }
}

#[test]
fn slow_links_delay_only_the_steps_that_use_them() {
    let (net, client) = three();
    net.delay(Duration::from_secs(3600));
    assert_eq!(client.fetch("near"), Ok(9));
    assert_eq!(net.now(), Duration::ZERO);
    assert_eq!(client.fetch("d"), Ok(7));
    assert!(net.now() >= Duration::from_secs(3600));
}

#[test]
fn the_cause_is_reported_and_not_its_consequences() {
    let (_, client) = three();
    for _ in 0..20 {
        for fetch in ["f", "g", "h"] {
            let error = client.fails(fetch);
            assert_eq!(error.code, Code::InvalidArgument);
            let text = "From /job:ps/replica:0/task:0:\ntold to fail\n\t [[{{node f}}]]";
            assert_eq!(error.message, text);
        }
    }
    assert_eq!(client.fetch("d"), Ok(7), "other steps go on");
}

#[test]
fn a_cut_link_fails_the_steps_that_cross_it_and_names_the_task() {
    let (net, client) = three();
    assert_eq!(client.fetch("c"), Ok(5));
    net.cut("worker:0", "ps:0");
    let error = client.fails("c");
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("Task /job:ps/replica:0/task:0 at net does not answer"), "{error}");
    assert_eq!(client.fetch("near"), Ok(9), "other steps go on");
    net.heal();
    assert_eq!(client.fetch("c"), Ok(5), "the session is as good as before");
}

#[test]
fn a_link_that_is_cut_under_a_waiting_step_ends_it() {
    let (net, client) = three();
    let error = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.fails("m"));
        while net.calls() < 2 {
            std::thread::yield_now(); // the step waits for the ps with two calls: RunGraph and RecvTensor
        }
        net.cut("worker:0", "ps:0");
        waiting.join().expect("no panic")
    });
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("/job:ps/replica:0/task:0"), "{error}");
    assert_eq!(client.fetch("near"), Ok(9));
}

const PULLS: &str = "a @ps:0 = Number 2; p @worker:0 = Last a; near @worker:0 = Number 9; file @ps:0 = Stored 7; \
                     q @worker:0 = Last file; bad @ps:0 = Stored -1; r @worker:0 = Last bad; n @ps:0 = Never a; \
                     s @worker:0 = Last n; big @worker:1 = Stored 8; t @ps:0 = Last big; u @worker:0 = Sum t near";

fn pulls() -> (Arc<Net>, Client) {
    let net = Net::new(THREE);
    let client = open(&net, PULLS, SessionConfig::default()).expect("a session");
    (net, client)
}

#[test]
fn an_input_is_pulled_whole_or_piece_by_piece() {
    let (_, client) = pulls();
    for _ in 0..20 {
        assert_eq!((client.fetch("p"), client.fetch("q"), client.fetch("u")), (Ok(2), Ok(7), Ok(17)));
    }
}

#[test]
fn an_error_in_a_file_is_the_error_of_the_step() {
    let (_, client) = pulls();
    let error = client.fails("r");
    let text = "From /job:ps/replica:0/task:0:\nthe file is broken\n\t [[{{node r}}]]";
    assert_eq!((error.code, error.message.as_str()), (Code::InvalidArgument, text));
    assert_eq!(client.fetch("q"), Ok(7));
}

#[test]
fn a_pull_ends_with_its_link_and_its_step() {
    let (net, client) = pulls();
    net.cut("worker:0", "ps:0");
    let error = client.fails("q");
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.contains("/job:ps/replica:0/task:0"), "{error}");
    net.heal();
    assert_eq!(client.fetch("q"), Ok(7));
    net.lose("open_tensor");
    assert_eq!(client.fails("q").code, Code::Unavailable);
    let options = crate::RunOptions { timeout: Some(Duration::from_secs(1)), ..crate::RunOptions::default() };
    let step = RunStep { fetches: vec!["s:0".to_string()], options, ..RunStep::default() };
    let error = net.run(client.master.run_step(&client.session, step)).expect_err("it waits for ever");
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert_eq!(client.fetch("q"), Ok(7));
}

/// The client's own timer ends the call when its time is over; the reason must reach the client before.
#[test]
fn a_step_is_given_up_a_moment_before_its_time_is_up() {
    for (time, earliest) in [(30_000, 29_900), (200, 180), (10, 9)].map(|(a, b)| (ms(a), ms(b))) {
        let (net, client) = three();
        let options = crate::RunOptions { timeout: Some(time), ..crate::RunOptions::default() };
        let step = RunStep { fetches: vec!["m:0".to_string()], options, ..RunStep::default() };
        let error = net.run(client.master.run_step(&client.session, step)).expect_err("it waits for ever");
        assert_eq!(error.code, Code::DeadlineExceeded);
        assert!((earliest..time).contains(&net.now()), "{:?} of {time:?}", net.now());
    }
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn a_lost_call_ends_the_step_after_a_while() {
    for method in ["run_graph", "recv_tensor"] {
        let (net, client) = three();
        assert_eq!(client.fetch("c"), Ok(5));
        net.lose(method);
        let error = client.fails("c");
        assert_eq!(error.code, Code::Unavailable, "{method}: {error}");
        assert!(net.now() >= net::PATIENCE);
        assert_eq!(client.fetch("c"), Ok(5));
    }
}

#[test]
fn a_task_that_restarted_aborts_old_sessions_and_serves_new_ones() {
    let (net, client) = three();
    assert_eq!(client.fetch("c"), Ok(5));
    net.restart("ps:0");
    for _ in 0..5 {
        let error = client.fails("c");
        assert_eq!(error.code, Code::Aborted, "{error}");
        let texts = ["Session handle is not found: ", "RecvTensor expects a different device incarnation: "];
        assert!(texts.iter().any(|text| error.message.contains(text)), "{error}");
        assert!(error.message.contains("(\"/job:ps/replica:0/task:0\")"), "{error}");
    }
    assert_eq!(client.fetch("near"), Ok(9), "other steps go on");
    let fresh = open(&net, SUMS, SessionConfig::default()).expect("a session");
    assert_eq!(fresh.fetch("c"), Ok(5));
}

/// The error of a step that waits while something is done, after which no call of it is left.
fn ended_by(net: &Net, client: &Client, what: impl Future<Output = ()>) -> Error {
    let error = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.fails("m"));
        while net.calls() < 2 {
            std::thread::yield_now();
        }
        net.run(what);
        waiting.join().expect("no panic")
    });
    while net.calls() > 0 {
        std::thread::yield_now(); // the receiving side drops its call when its step ends
    }
    error
}

#[test]
fn a_session_that_is_closed_ends_its_steps_and_leaves_no_call_behind() {
    let (net, client) = three();
    let close = async { client.master.close_session(&client.session).await.expect("closed") };
    assert_eq!(ended_by(&net, &client, close).code, Code::Cancelled);
}

/// Monitored sessions go on after an error of this code, and end with others.
#[test]
fn a_master_that_is_told_to_stop_is_unavailable_to_its_clients() {
    let (net, client) = three();
    let error = ended_by(&net, &client, client.master.shut_down());
    assert_eq!(error.code, Code::Unavailable, "{error}");
    assert!(error.message.contains("Task /job:worker/replica:0/task:0 was told to stop"), "{error}");
    assert_eq!(client.fails("near").code, Code::Aborted, "and its sessions are gone");
}

#[test]
fn a_reset_reaches_the_tasks_that_are_there() {
    let (net, client) = three();
    let made = |name: &str| {
        let resources = net.worker(name).resources().next().expect("a device").clone();
        resources.create("", "thing", Arc::new(7i32)).expect("made");
        resources
    };
    let (first, last) = (made("worker:1"), made("ps:0"));
    net.cut("worker:0", "ps:0");
    let error = net.run(client.master.reset(Vec::new())).expect_err("a task is missing");
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.starts_with("From /job:ps/replica:0/task:0:"), "{error}");
    let is_there = |resources: &op::Resources| resources.get::<i32>("", "thing").is_some();
    assert_eq!((is_there(&first), is_there(&last)), (false, true));
}

#[test]
fn a_session_waits_for_tasks_that_are_not_up_and_says_which_in_the_end() {
    let net = Net::new("worker:0 -worker:1 -ps:0");
    let config = SessionConfig { step_timeout: Some(Duration::from_secs(30)), ..SessionConfig::default() };
    let error = open(&net, "a @worker:0 = Number 1", config).err().expect("tasks are missing");
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert_eq!(
        error.message,
        "CreateSession: 2 of 3 tasks did not answer within 30s:\n\
         Task /job:ps/replica:0/task:0 at net does not answer: connection refused\n\
         Task /job:worker/replica:0/task:1 at net does not answer: connection refused"
    );
    assert!((ms(29_000)..ms(30_000)).contains(&net.now()), "the client must hear this before it gives up itself");
}

#[test]
fn a_session_begins_when_the_last_task_is_up() {
    let net = Net::new("worker:0 ps:0");
    net.cut("worker:0", "ps:0");
    let master = Master::new(net.worker("worker:0"));
    let session = master.create_session(toy::parse("a @ps:0 = Number 1"), SessionConfig::default());
    let healed = async {
        let heal = net.worker("worker:0").runtime.sleep(Duration::from_secs(3600));
        heal.await;
        net.heal();
    };
    let (session, ()) = net.run(futures_util::future::join(session, healed));
    assert!(session.is_ok() && net.now() >= Duration::from_secs(3600));
}

#[test]
fn an_address_that_belongs_to_another_task_is_an_error_that_says_so() {
    let net = Net::new(THREE);
    net.mix_up("ps:0", "worker:1");
    let error = open(&net, SUMS, SessionConfig::default()).err().expect("a mixed-up cluster");
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(
        error.message,
        "The address ps0:2222 of /job:ps/replica:0/task:0 belongs to another task, which answers as \
         /job:worker/replica:0/task:1"
    );
}

#[test]
fn transfers_are_logged_while_a_client_asks_for_them() {
    let (net, client) = three();
    let worker = net.worker("worker:0").client();
    net.run(worker.logging(Logging { enable: true, ..Logging::default() })).expect("an answer");
    assert_eq!(client.fetch("c"), Ok(5));
    let all: Vec<u64> = net.worker("worker:0").transfers.steps();
    assert_eq!(all.len(), 1);
    let request = Logging { disable: true, steps: all, ..Logging::default() };
    let noted = net.run(worker.logging(request)).expect("an answer");
    let mut from: Vec<(&str, u64)> = noted[0].1.iter().map(|one| (one.send_device.as_str(), one.bytes)).collect();
    from.sort_unstable();
    let ends = [("/job:ps/replica:0/task:0/device:CPU:0", 4), ("/job:worker/replica:0/task:1/device:CPU:0", 4)];
    assert_eq!(from, ends);
    assert_eq!(client.fetch("c"), Ok(5));
    assert!(net.worker("worker:0").transfers.steps().is_empty());
}

#[test]
fn a_traced_step_returns_its_transfers_and_leaves_no_log() {
    let (net, client) = three();
    let traced = |name: &str| {
        let options = RunOptions { trace: true, ..RunOptions::default() };
        let step = RunStep { fetches: vec![format!("{name}:0")], options, ..RunStep::default() };
        client.net.run(client.master.run_step(&client.session, step))
    };
    let ends = |one: &TransferStats| (one.send_device.clone(), one.recv_device.clone(), one.bytes);
    let mut found: Vec<_> = traced("d").expect("a step").metadata.transfers.iter().map(ends).collect();
    found.sort_unstable();
    let device = |task: &str| format!("{}/device:CPU:0", net::task(task));
    let way = |from: &str, to: &str| (device(from), device(to), 4);
    let (ps, own, other) = ("ps:0", "worker:0", "worker:1");
    // What is fetched comes with the answer of the run that made it: it is no transfer.
    assert_eq!(found, [way(ps, own), way(own, ps), way(other, own)]);
    assert_eq!(traced("h").expect_err("the step fails").code, Code::InvalidArgument);
    while [ps, own, other].iter().any(|task| net.worker(task).transfers.start().is_some()) {
        std::thread::yield_now(); // the end of the log is sent in the background
    }
    assert_eq!(client.fetch("d"), Ok(7));
    assert!([ps, own, other].iter().all(|task| net.worker(task).transfers.steps().is_empty()));
}

#[test]
fn tasks_count_their_steps_and_the_bytes_received_and_sent() {
    let (net, client) = three();
    let counts = || ["worker:0", "worker:1", "ps:0"].map(|task| net.worker(task).counts());
    let of = |steps, bytes_in, bytes_out| TaskCounts { steps, bytes_in, bytes_out };
    assert_eq!(counts(), [TaskCounts::default(); 3]);
    // An int32 of the ps and one of the other worker come to worker 0.
    assert_eq!(client.fetch("c"), Ok(5));
    assert_eq!(counts(), [of(1, 8, 0), of(1, 0, 4), of(1, 0, 4)]);
    // The sum goes to the ps besides, and the answer comes back.
    assert_eq!(client.fetch("d"), Ok(7));
    assert_eq!(counts(), [of(2, 20, 4), of(2, 0, 8), of(2, 4, 12)]);
    assert_eq!(client.fails("f").code, Code::InvalidArgument);
    assert_eq!(counts()[2].steps, 2, "a step that failed is none");
}
