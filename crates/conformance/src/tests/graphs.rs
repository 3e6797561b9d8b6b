//! Every graph case: in a session of this process, on our server, on a real TensorFlow server.

use super::cases::{filter, report};
use super::real::TensorFlowServer;
use crate::{Feed, Files, GraphCase, Program, Step, caught, compare_answer};
use flowgrid::prelude::*;
use flowgrid::{ClusterSpec, ImportOptions, Task};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time limit of a step. A step that takes longer waits for something that never happens.
const PATIENCE: Duration = Duration::from_secs(60);

fn check(test: &str, target: &str, takes: fn(&GraphCase) -> bool) {
    let (files, filter) = (Files::read(), filter());
    let mut failures = Vec::new();
    for case in files.graphs.iter().filter(|case| case.is_named(&filter) && takes(case)) {
        let found = caught(|| run(target, case)).unwrap_or_else(|panic| vec![panic]);
        failures.extend(found.into_iter().map(|failure| format!("{} {failure}", case.place)));
    }
    report(test, failures);
}

/// Runs a case and returns its failures.
fn run(target: &str, case: &GraphCase) -> Vec<String> {
    let folder = folder::Folder::new();
    let program = match case.read(&data::registry(), &folder.0) {
        Ok(program) => program,
        Err(error) => return vec![error.message],
    };
    let session = open(target, &program);
    let (mut failures, mut last) = (Vec::new(), BTreeMap::new());
    for (number, step) in program.steps.iter().enumerate() {
        let answer = session.as_ref().map_err(Clone::clone).and_then(|session| run_step(session, step, &last));
        last.extend(step.fetches.iter().cloned().zip(answer.iter().flatten().cloned()));
        let found = compare_answer(program.tolerance, &step.want, answer);
        failures.extend(found.into_iter().map(|failure| format!("run {number}: {failure}")));
    }
    failures
}

fn open(target: &str, program: &Program) -> Result<Session> {
    let graph: Graph = AllOps::new();
    graph.import(&program.graph, &ImportOptions::default())?;
    let config = SessionConfig { isolate_state: true, step_timeout: Some(PATIENCE), ..SessionConfig::default() };
    Session::with_config(target, &graph, config)
}

/// Runs one step; `last` holds the answers so far.
pub(super) fn run_step(session: &Session, step: &Step, last: &BTreeMap<String, Tensor>) -> Result<Vec<Tensor>> {
    let mut feeds = Feeds::new();
    for (name, feed) in &step.feeds {
        let value = match feed {
            Feed::Value(value) => Some(value),
            Feed::Last(fetch) => last.get(fetch),
        };
        feeds = value.into_iter().fold(feeds, |feeds, value| feeds.with_name(name, value.clone()));
    }
    let fetches: Vec<&str> = step.fetches.iter().map(String::as_str).collect();
    let targets: Vec<&str> = step.targets.iter().map(String::as_str).collect();
    let (values, _): (Vec<Tensor>, Vec<()>) = session.run_with((fetches, targets), feeds)?;
    Ok(values)
}

#[path = "../../../io/src/tests/folder.rs"]
mod folder;

#[test]
fn graphs_in_a_local_session() {
    check("graphs_in_a_local_session", "", |_| true);
}

#[test]
fn graphs_on_our_server() {
    let cluster = ClusterSpec::parse("localhost=127.0.0.1:0").expect("a cluster");
    let server = Server::start(ServerOptions::new(cluster, Task { job: "localhost".to_string(), index: 0 }));
    check("graphs_on_our_server", server.expect("it starts").target(), |_| true);
}

#[test]
fn graphs_on_a_tensorflow_server() {
    check("graphs_on_a_tensorflow_server", &TensorFlowServer::start().target, |case| !case.is_direct());
}

#[test]
fn graphs_have_no_idle_nodes() {
    let mut idle = Vec::new();
    for case in Files::read().graphs {
        match case.read(&data::registry(), "") {
            Ok(program) => idle.extend(program.idle().into_iter().map(|name| format!("{}: {name}", case.place))),
            Err(error) => idle.push(error.message),
        }
    }
    assert!(idle.is_empty(), "no step runs these\n{}\n", idle.join("\n"));
}
