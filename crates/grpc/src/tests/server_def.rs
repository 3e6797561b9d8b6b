//! What TensorFlow's description of a server says.

use crate::ServerDef;
use prost::Message;
use proto::tensorflow as pb;

/// A description with one change: `ps=p:1; worker=a:1,b:1`, of which it is worker 1.
fn described(change: impl FnOnce(&mut pb::ServerDef)) -> Vec<u8> {
    let job = |name: &str, tasks: &[(i32, &str)]| pb::JobDef {
        name: name.to_string(),
        tasks: tasks.iter().map(|(index, address)| (*index, address.to_string())).collect(),
    };
    let mut def = pb::ServerDef {
        cluster: Some(pb::ClusterDef { job: vec![job("ps", &[(0, "p:1")]), job("worker", &[(0, "a:1"), (1, "b:1")])] }),
        job_name: "worker".to_string(),
        task_index: 1,
        protocol: "grpc".to_string(),
        ..pb::ServerDef::default()
    };
    change(&mut def);
    def.encode_to_vec()
}

/// The task and where it listens, or the error.
fn read(message: &[u8], job: Option<&str>, index: Option<u32>) -> String {
    match ServerDef::read(message, job, index) {
        Ok(def) => format!("{} at {}", def.task, def.cluster.address(&def.task).unwrap_or_default()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_server_is_the_task_it_describes_or_another_that_is_named() {
    let message = described(|_| {});
    assert_eq!(read(&message, None, None), "/job:worker/replica:0/task:1 at b:1");
    assert_eq!(read(&message, None, Some(0)), "/job:worker/replica:0/task:0 at a:1");
    assert_eq!(read(&message, Some("ps"), Some(0)), "/job:ps/replica:0/task:0 at p:1");
    assert!(read(&message, Some("ps"), None).starts_with("INVALID_ARGUMENT: "), "ps has no task 1");
}

#[test]
fn its_port_is_that_of_the_task_it_describes() {
    let message = described(|def| def.port = 77);
    assert_eq!(read(&message, None, None), "/job:worker/replica:0/task:1 at b:77");
    assert_eq!(read(&message, None, Some(0)), "/job:worker/replica:0/task:0 at a:1");
    assert_eq!(
        read(&described(|def| def.port = 65536), None, None),
        "INVALID_ARGUMENT: ServerDef.port 65536 is not a port"
    );
}

#[test]
fn malformed_server_definitions_are_refused() {
    let message = described(|def| def.protocol = "grpc+verbs".to_string());
    let error = read(&message, None, None);
    assert!(error.starts_with("NOT_FOUND: No server factory registered for the given ServerDef"), "{error}");
    let message = described(|def| def.task_index = -1);
    let text = "INVALID_ARGUMENT: Task -1 of a cluster: task indexes start at 0";
    assert_eq!(read(&message, None, None), text);
    assert_eq!(read(&message, None, Some(0)), "/job:worker/replica:0/task:0 at a:1");
    let negative = |def: &mut pb::ServerDef| {
        def.cluster.iter_mut().for_each(|cluster| drop(cluster.job[0].tasks.insert(-1, "c:1".to_string())));
    };
    assert_eq!(read(&described(negative), None, None), text);
    assert!(read(b"\xff", None, None).starts_with("INVALID_ARGUMENT: 1 bytes are not a ServerDef"));
}
