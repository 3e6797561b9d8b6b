//! Clusters as JSON, and the TF_CONFIG that names a process's place in one.

use cluster::{ClusterSpec, Task};
use serde_json::{Value, json};
use status::{Result, invalid};

/// What the environment variable TF_CONFIG says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TfConfig {
    /// The cluster, if it names one.
    pub cluster: Option<ClusterSpec>,
    /// The job of this process.
    pub job: Option<String>,
    /// Its number in that job.
    pub index: Option<u32>,
}

impl TfConfig {
    /// Reads the variable's text; an empty one says nothing.
    pub fn parse(text: &str) -> Result<TfConfig> {
        if text.trim().is_empty() {
            return Ok(TfConfig::default());
        }
        let value: Value = serde_json::from_str(text).map_err(|error| invalid!("TF_CONFIG is not JSON: {error}"))?;
        let cluster = value.get("cluster").map(cluster_from_json).transpose();
        let task = |key| value.get("task").and_then(|task| task.get(key));
        Ok(TfConfig {
            cluster: cluster.map_err(|error| invalid!("TF_CONFIG: {}", error.message))?,
            job: task("type").and_then(Value::as_str).map(str::to_string),
            index: task("index").and_then(number),
        })
    }
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
    let job = |job: &str| {
        let tasks = cluster.job(job)?;
        let dense = tasks.keys().copied().eq(0..tasks.len() as u32);
        Some((job.to_string(), if dense { json!(tasks.values().collect::<Vec<_>>()) } else { json!(tasks) }))
    };
    Value::Object(cluster.jobs().filter_map(job).collect())
}

fn cluster_from_json(value: &Value) -> Result<ClusterSpec> {
    let jobs = value.as_object().ok_or_else(|| invalid!("a cluster is an object of jobs, got {value}"))?;
    let mut spec = ClusterSpec::new();
    for (job, tasks) in jobs {
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
        let index = index.parse().map_err(|_| invalid!("'{index}' of job '{job}' is no task number"))?;
        Ok((index, address))
    };
    match tasks {
        Value::Array(list) => Ok(list.iter().enumerate().map(|(index, address)| (index as u32, address)).collect()),
        Value::Object(map) => map.iter().map(keyed).collect(),
        Value::String(_) => Ok(vec![(0, tasks)]),
        other => Err(invalid!("job '{job}' is a list or a map of addresses, got {other}")),
    }
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|n| n.try_into().ok()).or_else(|| value.as_str()?.parse().ok())
}
