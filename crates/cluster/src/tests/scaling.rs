//! Work grows in proportion to graphs, fetches and sessions. It is counted, not timed: what is compared, what is sent.

use crate::master::step::in_order;
use crate::tests::{Client, net::Net, open, toy};
use crate::{RunStep, SessionConfig};
use graph::GraphDef;
use rustc_hash::FxHashMap;
use status::Result;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

thread_local! {
    static COMPARISONS: Cell<usize> = const { Cell::new(0) };
}

/// A key that counts how often it is compared and hashed.
struct Counted(usize);

fn count() {
    COMPARISONS.set(COMPARISONS.get() + 1);
}

impl PartialEq for Counted {
    fn eq(&self, other: &Counted) -> bool {
        count();
        self.0 == other.0
    }
}

impl Eq for Counted {}

impl Hash for Counted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        count();
        self.0.hash(state);
    }
}

#[test]
fn fetches_are_put_in_order_with_one_lookup_each() {
    for size in [1_000, 10_000, 100_000] {
        let received: FxHashMap<Counted, usize> = (0..size).map(|i| (Counted(i), i)).collect();
        let keys: Vec<Counted> = (0..size).rev().map(Counted).collect();
        COMPARISONS.set(0);
        let values = in_order(&received, keys.iter().map(Ok)).collect::<Result<Vec<_>>>().expect("keys");
        assert!((0..size).all(|i| values[i] == Some(size - 1 - i)));
        // A hash and, but for a few collisions, one comparison.
        assert!(COMPARISONS.get() <= 3 * size, "{} for {size}", COMPARISONS.get());
    }
}

/// As many sums as `size`, each of a number on the ps and one on the worker.
fn wide(size: usize) -> GraphDef {
    let mut graph = toy::parse("a @ps:0 = Number 2; b @worker:0 = Number 3; c @worker:0 = Sum a b");
    let sum = graph.nodes.pop().expect("a sum");
    graph.nodes.extend((0..size).map(|i| {
        let mut node = (*sum).clone();
        node.name = format!("c{i}");
        Arc::new(node)
    }));
    graph
}

fn names(size: usize) -> Vec<String> {
    (0..size).map(|i| format!("c{i}:0")).collect()
}

/// A session over two tasks with the graph.
fn session(net: &Arc<Net>, graph: GraphDef) -> Client {
    let client = open(net, "", SessionConfig::default()).expect("a session");
    client.master.extend_session(&client.session, &graph, 0).expect("more nodes");
    client
}

#[test]
fn a_step_sends_each_node_and_each_fetch_once() {
    for size in [1_000, 10_000, 100_000] {
        let net = Net::new("worker:0 ps:0");
        let client = session(&net, wide(size));
        let step = RunStep { fetches: names(size), ..RunStep::default() };
        let run = || client.net.run(client.master.run_step(&client.session, step.clone())).expect("a step");
        let answer = run();
        assert!(answer.tensors.iter().zip(&step.fetches).all(|((name, _), fetch)| name == fetch));
        assert_eq!(answer.tensors[size - 1].1.to_scalar(), Ok(5i32));
        // The ps has its number and a send: the tensor goes to the other task once, not once for each sum.
        assert_eq!(net.sent_nodes(), 2);
        let first = net.sent_calls();
        run();
        // One run of the graph and one tensor, however many fetches there are.
        assert_eq!(net.sent_calls() - first, 2);
    }
}

#[test]
fn a_session_costs_the_same_beside_many_others() {
    let net = Net::new("worker:0 ps:0");
    let mut clients: Vec<Client> = Vec::new();
    let mut calls = |net: &Arc<Net>| {
        let before = net.sent_calls();
        let client = session(net, wide(1));
        let step = RunStep { fetches: names(1), ..RunStep::default() };
        net.run(client.master.run_step(&client.session, step)).expect("a step");
        clients.push(client);
        net.sent_calls() - before
    };
    // Status, session, graph, run and tensor.
    assert!((0..1000).all(|_| calls(&net) == 5));
}
