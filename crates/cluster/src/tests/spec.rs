//! The text form of clusters, the errors of malformed ones, and the answers of `tf.train.ClusterSpec` of TensorFlow 2.21
//! to the same questions.

use crate::{Addresses, ClusterSpec, Task, host_and_port};
use std::collections::BTreeMap;

fn parse(text: &str) -> ClusterSpec {
    ClusterSpec::parse(text).unwrap()
}

fn message<T: std::fmt::Debug>(answer: status::Result<T>) -> String {
    let error = answer.unwrap_err();
    assert_eq!(error.code, status::Code::InvalidArgument);
    error.message
}

/// `ClusterSpec({"worker": {1: "a:1", 3: "b:2"}, "ps": ["p:1", "q:1"], "none": []})`.
fn sparse() -> ClusterSpec {
    parse("worker=,a:1,,b:2;ps=p:1,q:1;none=")
}

#[test]
fn tasks_of_a_job_are_counted_and_listed_as_tensorflow_does() {
    let spec = sparse();
    let counted = |job| (spec.num_tasks(job).unwrap(), spec.task_indices(job).unwrap(), spec.job_tasks(job).unwrap());
    assert_eq!(counted("worker"), (2, vec![1, 3], vec![None, Some("a:1"), None, Some("b:2")]));
    assert_eq!(counted("ps"), (2, vec![0, 1], vec![Some("p:1"), Some("q:1")]));
    // TensorFlow has no answer to `job_tasks` of this one: "max() arg is an empty sequence".
    assert_eq!(counted("none"), (0, vec![], vec![]));
    assert_eq!(spec.task_address("worker", 3), Ok("b:2"));
    assert_eq!(spec.address(&Task { job: "worker".to_string(), index: 2 }), None);
    assert_eq!(spec.jobs().collect::<Vec<_>>(), ["none", "ps", "worker"]);
}

#[test]
fn jobs_without_gaps_are_lists_and_others_maps() {
    let spec = sparse();
    let map = |tasks: &[(u32, &'static str)]| Addresses::Map(tasks.iter().copied().collect());
    let expected = BTreeMap::from([
        ("none", map(&[])),
        ("ps", Addresses::List(vec!["p:1", "q:1"])),
        ("worker", map(&[(1, "a:1"), (3, "b:2")])),
    ]);
    assert_eq!(spec.as_dict(), expected);
    assert_eq!(ClusterSpec::new().as_dict(), BTreeMap::new());
}

#[test]
fn clusters_are_equal_when_their_tasks_are() {
    let turned = ClusterSpec::new().with_task("w", 1, "b:1").unwrap().with_task("w", 0, "a:1").unwrap();
    assert_eq!(turned, parse("w=a:1,b:1"));
    assert_ne!(turned, parse("w=a:1"));
    assert_ne!(parse("w="), ClusterSpec::new());
}

#[test]
fn unknown_jobs_and_tasks_are_errors_that_name_the_known_ones() {
    let spec = sparse();
    let unknown = "No such job in cluster: 'chief'; its jobs are: none, ps, worker";
    assert_eq!(message(spec.num_tasks("chief")), unknown);
    assert_eq!(message(spec.task_indices("chief")), unknown);
    assert_eq!(message(spec.job_tasks("chief")), unknown);
    assert_eq!(message(spec.task_address("chief", 0)), unknown);
    assert_eq!(message(ClusterSpec::new().num_tasks("ps")), "No such job in cluster: 'ps'; its jobs are: none");
    let missing = message(spec.task_address("worker", 2));
    assert_eq!(missing, "No task with index 2 in job 'worker'; its tasks are: 1, 3");
    let missing = message(spec.task_address("none", 3));
    assert_eq!(missing, "No task with index 3 in job 'none'; its tasks are: none");
}

#[test]
fn a_printed_cluster_is_parsed_again() {
    for (text, printed) in [
        ("", ""),
        ("worker=", "worker="),
        (" worker = a:1 , b:2 ; ps=c:3; ", "ps=c:3;worker=a:1,b:2"),
        ("ps=,a:1,,,b:1,c:1", "ps=1:a:1,4:b:1,c:1"),
        ("ps=a:1,5000:b:1,c:1", "ps=a:1,5000:b:1,c:1"),
        ("ps=4294967295:a:1", "ps=4294967295:a:1"),
        ("ps=[::1]:2222,7:[fe80::2]:1,127:80", "ps=[::1]:2222,7:[fe80::2]:1,127:80"),
    ] {
        let spec = parse(text);
        assert_eq!(spec.to_string(), printed, "{text}");
        assert_eq!(parse(printed), spec, "{text}");
    }
    let far = ClusterSpec::new().with_task("ps", 5000, "a:1").unwrap();
    assert_eq!(parse(&far.to_string()), far);
}

#[test]
fn malformed_clusters_are_refused_with_a_hint() {
    for (text, parts) in [
        ("ps=a:0;ps=b:1", ["names job 'ps' twice", "ps=host:port,host:port"]),
        ("ps=a:0;worker=c:1;ps=", ["names job 'ps' twice", "name it once"]),
        ("ps=1:a:0,0:b:1,c:1", ["Job 'ps' has two addresses for task 1", "leave one out"]),
        ("ps=4294967295:a:0,b:1", ["two addresses for task 4294967295", "leave one out"]),
        (
            "ps=grpc://127.0.0.1:2222",
            ["'grpc://127.0.0.1:2222' of /job:ps/task:0", "leave out grpc://, as in 127.0.0.1:2222"],
        ),
        ("ps=a:1,http://b:2", ["'http://b:2' of /job:ps/task:1", "leave out http://, as in b:2"]),
        ("ps=h", ["'h' of /job:ps/task:0", "expected host:port"]),
        ("ps=h:port", ["'h:port' of /job:ps/task:0", "expected host:port"]),
        ("ps=h:65536", ["'h:65536' of /job:ps/task:0", "such as 127.0.0.1:2222"]),
        ("ps=::1:2222", ["'::1:2222' of /job:ps/task:0", "in brackets, as in [::1]:2222"]),
        ("ps", ["'ps' is not of the form", "job=host:port,host:port"]),
        ("1ps=a:1", ["'1ps' is not a job name", "a letter, then letters"]),
        ("ps/task:1=a:1", ["'ps/task:1' is not a job name", "a letter, then letters"]),
    ] {
        let found = message(ClusterSpec::parse(text));
        assert!(parts.iter().all(|part| found.contains(part)), "{text}: {found}");
    }
}

#[test]
fn addresses_are_a_host_and_a_port() {
    let hosts = [
        ("a:1", "a", 1),
        ("10.0.0.1:0", "10.0.0.1", 0),
        ("[::1]:2222", "[::1]", 2222),
        ("a_b-c.d:65535", "a_b-c.d", 65535),
    ];
    for (text, host, port) in hosts {
        assert_eq!(host_and_port(text), Some((host, port)));
    }
    for text in [
        "", ":", ":1", "a", "a:", "a:b", "a:+1", "a:-1", "a:65536", "a/b:1", "a b:1", "a:1,b:1", "::1:1", "[a]:1",
        "[]:1",
    ] {
        assert_eq!(host_and_port(text), None, "{text}");
    }
}

#[test]
fn a_job_or_number_may_be_left_out_where_there_is_only_one() {
    let task = |text: &str, job, index| parse(text).task(job, index).map(|task| task.to_string());
    assert_eq!(task("w=a:1", None, None).unwrap(), "/job:w/replica:0/task:0");
    assert_eq!(task("p=a:1;w=,b:1", Some("w"), None).unwrap(), "/job:w/replica:0/task:1");
    assert_eq!(task("w=a:1,b:1", None, Some(1)).unwrap(), "/job:w/replica:0/task:1");
    assert_eq!(message(task("p=a:1;w=b:1", None, None)), "The cluster has more than one job; name one of p, w");
    assert_eq!(message(task("w=a:1,b:1", None, None)), "The cluster has more than one task; name one of 0, 1");
    assert_eq!(message(task("w=", None, None)), "The cluster has no task");
    assert_eq!(message(task("w=a:1", None, Some(4))), "No task with index 4 in job 'w'; its tasks are: 0");
}
