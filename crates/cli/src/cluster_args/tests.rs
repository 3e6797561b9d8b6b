//! Whose word counts: flags, or TF_CONFIG.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ClusterArgs,
}

const CONFIG: &str =
    r#"{"cluster": {"ps": ["p:1"], "worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}"#;

/// The cluster and the task, or the error.
fn resolved(flags: &[&str], tf_config: &str) -> String {
    let line = Line::try_parse_from(std::iter::once(&"flowgrid").chain(flags)).unwrap();
    match line.args.resolve(Some(tf_config)) {
        Ok((cluster, task)) => format!("{cluster} {}:{}", task.job, task.index),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_task_of_tf_config_is_none_of_another_cluster() {
    assert_eq!(resolved(&[], CONFIG), "ps=p:1;worker=a:1,b:1 worker:1");
    let both = ["--ps_hosts", "c:1", "--worker_hosts", "d:1,e:1"];
    for flags in [
        &["--cluster", "ps=c:1;worker=d:1,e:1"][..],
        &["--cluster-json", r#"{"ps": ["c:1"], "worker": ["d:1", "e:1"]}"#],
        &both,
    ] {
        assert_eq!(
            resolved(flags, CONFIG),
            "INVALID_ARGUMENT: The cluster has more than one job: say which of ps, worker"
        );
        let job = [flags, &["--job", "worker"]].concat();
        assert_eq!(resolved(&job, CONFIG), "INVALID_ARGUMENT: The cluster has more than one task: say which of 0, 1");
        let task = [&job[..], &["--task", "0"]].concat();
        assert_eq!(resolved(&task, CONFIG), "ps=c:1;worker=d:1,e:1 worker:0");
        assert_eq!(resolved(&task, "[1]"), "ps=c:1;worker=d:1,e:1 worker:0", "nobody reads TF_CONFIG");
    }
    assert_eq!(resolved(&["--worker_hosts", "d:1"], CONFIG), "worker=d:1 worker:0");
}

#[test]
fn flags_say_which_task_of_tf_config_this_is() {
    assert_eq!(resolved(&["--task", "0"], CONFIG), "ps=p:1;worker=a:1,b:1 worker:0");
    assert!(resolved(&[], r#"{"task": "ps"}"#).contains("'task' of TF_CONFIG is \"ps\"; expected an object"));
    assert!(resolved(&[], "").starts_with("no cluster given: use --cluster"));
}
