//! Plans: when their graphs are registered at the tasks, for how long, and what the client sees of them.

use crate::tests::{Client, SUMS, THREE, ms, net::Net, open};
use crate::{RunMetadata, RunOptions, RunStep, SessionConfig};
use status::{Code, Result};
use std::sync::Arc;

fn three(config: SessionConfig) -> (Arc<Net>, Client) {
    let net = Net::new(THREE);
    let client = open(&net, SUMS, config).expect("a session");
    (net, client)
}

impl Client {
    /// Forgets the graph with this number at a task.
    async fn deregister(&self, task: &str, number: usize) -> Result<()> {
        let task = self.net.worker(task).client();
        task.deregister_graph(self.session.clone(), format!("{number:016x}")).await
    }

    fn run(&self, name: &str, options: RunOptions) -> Result<RunMetadata> {
        let step = RunStep { fetches: vec![format!("{name}:0")], options, ..RunStep::default() };
        Ok(self.net.run(self.master.run_step(&self.session, step))?.metadata)
    }
}

#[test]
fn a_graph_that_is_deregistered_is_gone_but_for_steps_under_way() {
    let (net, client) = three(SessionConfig::default());
    assert_eq!(client.fetch("c"), Ok(5));
    net.delay(ms(1000));
    let (step, forgotten) = net.run(futures_util::future::join(client.step("c"), client.deregister("worker:0", 0)));
    assert_eq!((step, forgotten), (Ok(5), Ok(())));
    let error = client.fails("c");
    assert_eq!((error.code, &*error.message), (Code::Aborted, "Graph handle is not found: 0000000000000000"));
    let error = net.run(client.deregister("worker:0", 0)).expect_err("it is gone");
    let text = "Graph handle is not found: 0000000000000000. Possibly, this worker just restarted.";
    assert_eq!((error.code, &*error.message), (Code::Aborted, text));
    assert_eq!(client.fetch("near"), Ok(9), "others stay");
}

#[test]
fn a_plan_that_one_task_refuses_leaves_nothing_at_the_others() {
    let (net, client) = three(SessionConfig::default());
    net.lose("register_graph");
    assert_eq!(client.fails("c").code, Code::Unavailable);
    assert_eq!(net.run(client.deregister("worker:0", 0)).err().map(|error| error.code), Some(Code::Aborted));
    assert_eq!(client.fetch("c"), Ok(5), "the next step makes the plan again");
}

#[test]
fn the_first_step_has_no_more_time_than_others_and_the_next_finds_its_plan() {
    let (net, client) = three(SessionConfig::default());
    net.delay(ms(3_600_000));
    let error = client.run("c", RunOptions { timeout: Some(ms(1000)), ..RunOptions::default() });
    assert_eq!(error.err().map(|error| error.code), Some(Code::DeadlineExceeded));
    assert!((ms(900)..ms(1000)).contains(&net.now()), "{:?}", net.now());
    assert_eq!(client.fetch("c"), Ok(5));
    net.delay(ms(0));
    assert_eq!(net.run(client.deregister("ps:0", 1)).err().map(|error| error.code), Some(Code::Aborted));
    assert_eq!(net.run(client.deregister("ps:0", 0)), Ok(()), "there was one registration");
}

#[test]
fn the_placement_is_returned_once_for_each_plan() {
    let (_, client) = three(SessionConfig { log_placement: true, ..SessionConfig::default() });
    let placement = |name: &str| {
        let mut lines = client.run(name, RunOptions::default()).expect("a step").placement();
        lines.sort_unstable();
        lines
    };
    let (ps, other) = ("/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0");
    let own = "/job:worker/replica:0/task:0/device:CPU:0";
    let all = [format!("a: (Number): {ps}"), format!("b: (Number): {other}"), format!("c: (Sum): {own}")];
    assert_eq!(placement("c"), all);
    assert!(placement("c").is_empty());
    assert_eq!(placement("near"), [format!("near: (Number): {own}")]);
    let asked = client.run("c", RunOptions { partition_graphs: true, ..RunOptions::default() });
    assert_eq!(asked.expect("a step").placement().len(), 3, "a step that asks for the graphs gets them again");
}

#[test]
fn a_cost_graph_is_returned_for_every_nth_step_of_a_plan() {
    let (_, client) = three(SessionConfig { cost_graph_every: 2, cost_graph_after: 1, ..SessionConfig::default() });
    let costs = |name: &str| client.run(name, RunOptions::default()).expect("a step");
    let counts: Vec<usize> = (0..4).map(|_| costs("c").cost_graph.len()).collect();
    // TensorFlow's rule: (steps so far - 1) is divisible by two.
    assert_eq!(counts.iter().map(|count| *count > 0).collect::<Vec<_>>(), [true, false, true, false]);
    let metadata = costs("c");
    assert!(metadata.stats.is_empty(), "a trace was not asked for");
    let node = |name: &str| metadata.cost_graph.iter().find(|node| node.name == name).expect("a node");
    let sum = node("c");
    assert_eq!(sum.device, "/job:worker/replica:0/task:0/device:CPU:0");
    assert_eq!(sum.outputs, [(tensor::DType::I32, tensor::Shape::new(&[]))]);
    assert_eq!(sum.output_sizes().collect::<Vec<_>>(), [4]);
    assert_eq!(sum.inputs.len(), 2);
    assert!(sum.inputs.iter().all(|&(id, _)| metadata.cost_graph[id as usize].name.contains("/_")));
    assert!(metadata.cost_graph.iter().zip(0..).all(|(node, id)| node.id == id));
    // The tensors of two tasks, and the fetch.
    assert_eq!(metadata.cost_graph.iter().filter(|node| node.is_final).count(), 3);
    let (_, plain) = three(SessionConfig::default());
    assert!(plain.run("c", RunOptions::default()).expect("a step").cost_graph.is_empty());
}

#[test]
fn the_device_map_names_every_device() {
    let devices = ["/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:1"];
    let attributes = devices.map(|name| crate::DeviceAttributes {
        name: name.to_string(),
        kind: "CPU".to_string(),
        ..crate::DeviceAttributes::default()
    });
    let expected = format!("Device mapping:\n{} -> device: CPU\n{} -> device: CPU", devices[0], devices[1]);
    assert_eq!(crate::master::session::device_map(&attributes), expected);
}
