//! Clusters as JSON, and `TF_CONFIG`, which gives a process its cluster and its task.

use cluster::{Addresses, ClusterSpec, Task};
use serde_json::{Map, Value, json};
use status::{Error, Result, invalid};

/// The content of the environment variable `TF_CONFIG`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TfConfig {
    /// The cluster, if there is one.
    pub cluster: Option<ClusterSpec>,
    /// The job of this process.
    pub job: Option<String>,
    /// The number of its task.
    pub index: Option<u32>,
}

impl TfConfig {
    /// Reads the text of the variable. An empty text and an empty object give a default value.
    pub fn parse(text: &str) -> Result<TfConfig> {
        if text.trim().is_empty() {
            return Ok(TfConfig::default());
        }
        let value: Value = serde_json::from_str(text).map_err(|error| invalid!("TF_CONFIG is not JSON: {error}"))?;
        let config = value.as_object().ok_or_else(|| unexpected("", &value, EXAMPLE))?;
        let cluster = config.get("cluster").map(cluster_from_json).transpose();
        let task = config.get("task").map(task_fields).transpose()?;
        let field = |key| task.and_then(|task| task.get(key));
        Ok(TfConfig {
            cluster: cluster.map_err(|error| invalid!("TF_CONFIG: {}", error.message))?,
            job: field("type").map(job).transpose()?,
            index: field("index").map(index).transpose()?,
        })
    }
}

const EXAMPLE: &str =
    r#"an object such as {"cluster": {"worker": ["host:port"]}, "task": {"type": "worker", "index": 0}}"#;

fn task_fields(task: &Value) -> Result<&Map<String, Value>> {
    let expected = r#"an object such as {"type": "worker", "index": 0}"#;
    task.as_object().ok_or_else(|| unexpected("'task' of ", task, expected))
}

fn job(value: &Value) -> Result<String> {
    let expected = r#"the name of a job, such as "worker""#;
    value.as_str().map(str::to_string).ok_or_else(|| unexpected("'type' of 'task' of ", value, expected))
}

/// TensorFlow calls Python's `int`, which reads text too.
fn index(value: &Value) -> Result<u32> {
    let number = value.as_u64().and_then(|number| number.try_into().ok());
    let number = number.or_else(|| value.as_str()?.trim().parse().ok());
    number.ok_or_else(|| unexpected("'index' of 'task' of ", value, "the number of a task: 0 or more"))
}

fn unexpected(place: &str, found: &Value, expected: &str) -> Error {
    invalid!("{place}TF_CONFIG is {found}; expected {expected}")
}

/// The TF_CONFIG of a task.
pub fn tf_config(cluster: &ClusterSpec, task: &Task) -> String {
    json!({ "cluster": cluster_as_json(cluster), "task": { "type": task.job, "index": task.index } }).to_string()
}

/// Reads `{"ps": ["host:port"], "worker": {"3": "host:port"}}`.
pub fn cluster_from_text(text: &str) -> Result<ClusterSpec> {
    cluster_from_json(&serde_json::from_str(text).map_err(|error| invalid!("The cluster is not JSON: {error}"))?)
}

/// Jobs whose numbers have no gaps become lists, others maps.
fn cluster_as_json(cluster: &ClusterSpec) -> Value {
    let json = |addresses| match addresses {
        Addresses::List(list) => json!(list),
        Addresses::Map(map) => json!(map),
    };
    Value::Object(cluster.as_dict().into_iter().map(|(job, addresses)| (job.to_string(), json(addresses))).collect())
}

fn cluster_from_json(value: &Value) -> Result<ClusterSpec> {
    let jobs = value.as_object().ok_or_else(|| invalid!("a cluster is an object of jobs, got {value}"))?;
    let mut spec = ClusterSpec::new();
    for (job, tasks) in jobs {
        spec = spec.with_job(job)?;
        for (index, address) in addresses(job, tasks)? {
            let text = address
                .as_str()
                .ok_or_else(|| invalid!("the address of {job} task {index} is a string, got {address}"))?;
            if !text.is_empty() {
                spec = spec.with_task(job, index, text)?;
            }
        }
    }
    Ok(spec)
}

fn addresses<'a>(job: &str, tasks: &'a Value) -> Result<Vec<(u32, &'a Value)>> {
    let keyed = |(index, address): (&String, &'a Value)| {
        let index = index.parse().map_err(|_| invalid!("'{index}' of job '{job}' is not a task number"))?;
        Ok((index, address))
    };
    match tasks {
        Value::Array(list) => Ok(list.iter().enumerate().map(|(index, address)| (index as u32, address)).collect()),
        Value::Object(map) => map.iter().map(keyed).collect(),
        Value::String(_) => Ok(vec![(0, tasks)]),
        other => Err(invalid!("job '{job}' is a list or a map of addresses, got {other}")),
    }
}
