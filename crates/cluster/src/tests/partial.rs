//! Partial runs over two tasks: to their end, to an error, and given up before the end.

use crate::tests::{Client, ms, net::Net, open, toy};
use crate::{RunOptions, RunStep, SessionConfig};
use status::{Code, Error, Result};
use std::sync::Arc;
use tensor::Tensor;

const GRAPH: &str = "x @worker:0 = Number 0; y @worker:0 = Number 0; p @ps:0 = Sum x x; q @worker:0 = Sum p y; \
                     f @ps:0 = Fail y; g @worker:0 = Sum f p; n @ps:0 = Never x; m @worker:0 = Sum n y; \
                     here @worker:0 = Never p; h @worker:0 = Sum here y";

fn two(config: SessionConfig) -> (Arc<Net>, Client) {
    let net = Net::new("worker:0 ps:0");
    let client = open(&net, GRAPH, config).expect("a session");
    (net, client)
}

impl Client {
    /// Announces a step that is fed x and y.
    fn announce(&self, fetches: &[&str]) -> Result<String> {
        let fetches = fetches.iter().map(|name| format!("{name}:0")).collect();
        let feeds = vec!["x:0".to_string(), "y:0".to_string()];
        self.net.run(self.master.partial_run_setup(&self.session, feeds, fetches, Vec::new()))
    }

    async fn piece(&self, run: &str, feed: &str, value: i32, fetch: &str) -> Result<i32> {
        let step = RunStep {
            feeds: vec![(format!("{feed}:0"), Tensor::scalar(value))],
            fetches: vec![format!("{fetch}:0")],
            partial: Some(run.to_string()),
            ..RunStep::default()
        };
        self.master.run_step(&self.session, step).await?.tensors[0].1.to_scalar()
    }

    /// Feeds x, and takes what it gives.
    fn begin(&self, fetches: &[&str]) -> String {
        let run = self.announce(fetches).expect("a handle");
        assert_eq!(self.net.run(self.piece(&run, "x", 3, "p")), Ok(6));
        run
    }

    fn end(&self, run: &str, fetch: &str) -> Result<i32> {
        self.net.run(self.piece(run, "y", 4, fetch))
    }

    /// Waits until no task knows of any step, nor runs one.
    fn all_ended(&self) {
        for worker in ["worker:0", "ps:0"].map(|name| self.net.worker(name)) {
            while worker.steps_under_way() > 0 || toy::waiting(&worker) > 0 {
                std::thread::yield_now();
            }
        }
    }
}

fn unknown(error: &Error) -> bool {
    error.message == "Must run PartialRunSetup before performing partial runs"
}

#[test]
fn pieces_run_over_two_tasks() {
    let (net, client) = two(SessionConfig::default());
    for _ in 0..20 {
        let run = client.begin(&["p", "q"]);
        assert_eq!(client.end(&run, "q"), Ok(10));
        assert!(unknown(&client.end(&run, "q").expect_err("it is over")));
    }
    client.all_ended();
    let [worker, ps] = ["worker:0", "ps:0"].map(|name| net.worker(name).counts());
    assert!(ps.bytes_out > 0);
    assert_eq!((worker.bytes_in, worker.bytes_out), (ps.bytes_out, ps.bytes_in));
}

#[test]
fn a_piece_that_fails_ends_the_step_everywhere() {
    let (_, client) = two(SessionConfig::default());
    for _ in 0..20 {
        let run = client.begin(&["p", "g", "m"]);
        let error = client.end(&run, "g").expect_err("it is told to fail");
        let text = "From /job:ps/replica:0/task:0:\ntold to fail\n\t [[{{node f}}]]";
        assert_eq!((error.code, &*error.message), (Code::InvalidArgument, text));
        assert!(unknown(&client.end(&run, "m").expect_err("it is over")));
        client.all_ended();
    }
    let run = client.begin(&["p", "q"]);
    assert_eq!(client.end(&run, "q"), Ok(10), "other steps go on");
}

#[test]
fn a_session_that_closes_ends_its_unfinished_steps() {
    for fetch in ["m", "h"] {
        let (net, client) = two(SessionConfig::default());
        client.begin(&["p", fetch]);
        client.announce(&["p", "q"]).expect("a handle");
        let waiting = || ["worker:0", "ps:0"].iter().map(|name| toy::waiting(&net.worker(name))).sum::<usize>();
        while waiting() == 0 {
            std::thread::yield_now();
        }
        net.run(client.master.close_session(&client.session)).expect("closed");
        client.all_ended();
    }
}

#[test]
fn a_master_that_restarted_has_no_unfinished_steps() {
    let (net, client) = two(SessionConfig::default());
    client.begin(&["p", "m"]);
    let ps = net.worker("ps:0");
    while toy::waiting(&ps) == 0 {
        std::thread::yield_now();
    }
    net.restart("worker:0");
    let _again = open(&net, GRAPH, SessionConfig::default()).expect("a session");
    while ps.steps_under_way() > 0 || toy::waiting(&ps) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_piece_has_as_much_time_as_its_session_gives_every_step() {
    let (net, client) = two(SessionConfig { step_timeout: Some(ms(30_000)), ..SessionConfig::default() });
    // The clock does not wait for the thread that plans: the first tries may run out of time.
    let run = std::iter::from_fn(|| Some(client.announce(&["m"]))).find_map(Result::ok).expect("a handle");
    let begin = net.now();
    let step = RunStep {
        feeds: ["x:0", "y:0"].map(|name| (name.to_string(), Tensor::scalar(1))).into(),
        fetches: vec!["m:0".to_string()],
        options: RunOptions::default(),
        partial: Some(run.clone()),
        ..RunStep::default()
    };
    let error = net.run(client.master.run_step(&client.session, step)).expect_err("it waits for ever");
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert!((ms(29_900)..ms(30_000)).contains(&(net.now() - begin)), "{:?}", net.now());
    assert!(unknown(&client.end(&run, "m").expect_err("it is over")));
    client.all_ended();
}

#[test]
fn a_caller_that_goes_away_ends_the_step() {
    let (net, client) = two(SessionConfig::default());
    let run = client.begin(&["p", "m"]);
    let pause = net.worker("worker:0").runtime.sleep(ms(1000));
    let piece = Box::pin(client.piece(&run, "y", 4, "m"));
    let went = net.run(futures_util::future::select(piece, pause));
    assert!(matches!(went, futures_util::future::Either::Right(_)), "it waits for ever");
    drop(went);
    client.all_ended();
    assert!(unknown(&client.end(&run, "m").expect_err("it is over")));
}
