//! TF_CONFIG: what is read, and what is said of mistakes.

use crate::{ClusterSpec, Task, TfConfig, cluster_from_text, tf_config};
use status::Code;

#[test]
fn a_config_that_says_nothing_is_none() {
    for text in ["", " \n", "{}", r#"{"environment": "cloud", "task": {}}"#] {
        assert_eq!(TfConfig::parse(text), Ok(TfConfig::default()), "{text}");
    }
}

#[test]
fn numbers_of_tasks_may_be_text() {
    for (text, index) in [("1", 1), (r#""1""#, 1), (r#"" 2 ""#, 2), ("4294967295", u32::MAX)] {
        let config = TfConfig::parse(&format!(r#"{{"task": {{"index": {text}}}}}"#));
        assert_eq!(config, Ok(TfConfig { index: Some(index), ..TfConfig::default() }));
    }
}

#[test]
fn a_config_that_cannot_be_meant_is_an_error_that_names_the_field() {
    let (whole, task) = ("an object such as {\"cluster\": {", r#"an object such as {"type": "worker", "index": 0}"#);
    let (kind, index) = (r#"the name of a job, such as "worker""#, "the number of a task: 0 or more");
    for (text, found, expected) in [
        ("[1]", "TF_CONFIG is [1]", whole),
        ("null", "TF_CONFIG is null", whole),
        (r#"{"task": "ps"}"#, r#"'task' of TF_CONFIG is "ps""#, task),
        (r#"{"task": null}"#, "'task' of TF_CONFIG is null", task),
        (r#"{"task": {"type": 3}}"#, "'type' of 'task' of TF_CONFIG is 3", kind),
        (r#"{"task": {"index": "x"}}"#, r#"'index' of 'task' of TF_CONFIG is "x""#, index),
        (r#"{"task": {"index": -1}}"#, "'index' of 'task' of TF_CONFIG is -1", index),
        (r#"{"task": {"index": 1.5}}"#, "'index' of 'task' of TF_CONFIG is 1.5", index),
        (r#"{"task": {"index": 4294967296}}"#, "'index' of 'task' of TF_CONFIG is 4294967296", index),
        (r#"{"task": {"index": null}}"#, "'index' of 'task' of TF_CONFIG is null", index),
    ] {
        let error = TfConfig::parse(text).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(error.message.starts_with(&format!("{found}; expected {expected}")), "{text}: {error}");
    }
}

#[test]
fn jobs_without_tasks_are_kept() {
    let cluster = cluster_from_text(r#"{"ps": [], "worker": ["a:1"]}"#).unwrap();
    assert_eq!(cluster, ClusterSpec::parse("ps=;worker=a:1").unwrap());
    let task = Task { job: "worker".to_string(), index: 0 };
    assert_eq!(TfConfig::parse(&tf_config(&cluster, &task)).unwrap().cluster, Some(cluster));
}
