//! Which of flags and TF_CONFIG takes effect.

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
    match line.args.options(Some(tf_config)) {
        Ok(ServerOptions { cluster, task, .. }) => format!("{cluster} {}:{}", task.job, task.index),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_flag_with_a_cluster_disables_tf_config() {
    assert_eq!(resolved(&[], CONFIG), "ps=p:1;worker=a:1,b:1 worker:1");
    let both = ["--ps_hosts", "c:1", "--worker_hosts", "d:1,e:1"];
    for flags in [
        &["--cluster", "ps=c:1;worker=d:1,e:1"][..],
        &["--cluster-json", r#"{"ps": ["c:1"], "worker": ["d:1", "e:1"]}"#],
        &both,
    ] {
        assert_eq!(
            resolved(flags, CONFIG),
            "INVALID_ARGUMENT: The cluster has more than one job; name one of ps, worker"
        );
        let job = [flags, &["--job", "worker"]].concat();
        assert_eq!(resolved(&job, CONFIG), "INVALID_ARGUMENT: The cluster has more than one task; name one of 0, 1");
        let task = [&job[..], &["--task", "0"]].concat();
        assert_eq!(resolved(&task, CONFIG), "ps=c:1;worker=d:1,e:1 worker:0");
        assert_eq!(resolved(&task, "[1]"), "ps=c:1;worker=d:1,e:1 worker:0", "TF_CONFIG is not read");
    }
    assert_eq!(resolved(&["--worker_hosts", "d:1"], CONFIG), "worker=d:1 worker:0");
}

#[test]
fn flags_override_the_task_of_tf_config() {
    assert_eq!(resolved(&["--task", "0"], CONFIG), "ps=p:1;worker=a:1,b:1 worker:0");
    assert!(resolved(&[], r#"{"task": "ps"}"#).contains("'task' of TF_CONFIG is \"ps\"; expected an object"));
    assert!(resolved(&[], "").starts_with("no cluster given: use --cluster"));
}

#[test]
fn a_server_def_names_cluster_and_task_and_flags_override_the_task() {
    let folder = std::env::temp_dir().join(format!("flowgrid-server-def-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // What Python prints of `tf.train.Server(...).server_def`.
    let text = r#"
        cluster {
          job { name: "ps" tasks { key: 0 value: "p:1" } }
          job { name: "worker" tasks { key: 0 value: "a:1" } tasks { key: 2 value: "b:1" } }
        }
        job_name: "worker"
        task_index: 2
        protocol: "grpc"
        default_session_config { inter_op_parallelism_threads: 3 allow_soft_placement: true }
    "#;
    let (as_text, as_bytes, broken) = (folder.join("s.pbtxt"), folder.join("s.pb"), folder.join("broken.pb"));
    let bytes = text_to_binary("tensorflow.ServerDef", text).unwrap();
    std::fs::write(&as_text, text).unwrap();
    std::fs::write(&as_bytes, &bytes).unwrap();
    std::fs::write(&broken, &bytes[..bytes.len() - 1]).unwrap();
    let cluster = "ps=p:1;worker=a:1,2:b:1";
    for file in [&as_text, &as_bytes] {
        let flags = ["--server-def", file.to_str().unwrap()];
        assert_eq!(resolved(&flags, CONFIG), format!("{cluster} worker:2"));
        assert_eq!(resolved(&[&flags[..], &["--task", "0"]].concat(), ""), format!("{cluster} worker:0"));
        assert_eq!(resolved(&[&flags[..], &["--job", "ps", "--task", "0"]].concat(), ""), format!("{cluster} ps:0"));
        let line = Line::try_parse_from(["flowgrid", flags[0], flags[1]]).unwrap();
        let options = line.args.options(None).unwrap();
        assert_eq!((options.inter_op_threads, options.default_session_config.soft_placement), (3, true));
    }
    assert!(resolved(&["--server-def", broken.to_str().unwrap()], "").contains("are not a ServerDef"));
    assert!(resolved(&["--server-def", "/nowhere/s.pb"], "").contains("cannot read /nowhere/s.pb"));
    std::fs::remove_dir_all(folder).unwrap();
}
