//! Device names: parsing, merging, matching.

use status::{Result, invalid};
use std::fmt;

/// A full or partial device name; a part that is `None` is unconstrained.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceSpec {
    /// `worker` in `/job:worker`.
    pub job: Option<String>,
    /// Always 0 in practice.
    pub replica: Option<u32>,
    /// `3` in `/task:3`.
    pub task: Option<u32>,
    /// `CPU` in `/device:CPU:0`.
    pub kind: Option<String>,
    /// `0` in `/device:CPU:0`.
    pub id: Option<u32>,
}

impl DeviceSpec {
    /// Reads `/job:worker/task:1/device:CPU:0` with any part left out, in any order, or the short
    /// forms `/cpu:0` and `/GPU:*`.
    pub fn parse(text: &str) -> Result<DeviceSpec> {
        DeviceSpec::read(text).map_err(|cure| invalid!("Malformed device specification '{text}': {cure}"))
    }

    /// Like `parse`, but the error says which part is malformed and what is expected.
    pub fn read(text: &str) -> std::result::Result<DeviceSpec, String> {
        let mut spec = DeviceSpec::default();
        for part in text.split('/').filter(|part| !part.is_empty()) {
            spec.read_part(part).ok_or_else(|| format!("'/{part}' {}", cure(part)))?;
        }
        Ok(spec)
    }

    fn read_part(&mut self, part: &str) -> Option<()> {
        let fields: Vec<&str> = part.split(':').collect();
        match fields[..] {
            ["job", name] => self.job = open(name).map(job_name).transpose_flat()?,
            ["replica", number] => self.replica = open(number).map(|n| n.parse().ok()).transpose_flat()?,
            ["task", number] => self.task = open(number).map(|n| n.parse().ok()).transpose_flat()?,
            ["device", kind] => self.kind = open(kind).map(canonical),
            ["device", kind, id] => {
                self.kind = open(kind).map(canonical);
                self.id = open(id).map(|n| n.parse().ok()).transpose_flat()?;
            }
            [kind @ ("cpu" | "CPU" | "gpu" | "GPU"), id] => {
                self.kind = Some(kind.to_uppercase());
                self.id = open(id).map(|n| n.parse().ok()).transpose_flat()?;
            }
            [kind @ ("cpu" | "CPU" | "gpu" | "GPU")] => self.kind = Some(kind.to_uppercase()),
            _ => return None,
        }
        Some(())
    }

    /// Fills the unset parts from `outer`: the rule of nested device scopes.
    pub fn or(mut self, outer: &DeviceSpec) -> DeviceSpec {
        self.job = self.job.or_else(|| outer.job.clone());
        self.replica = self.replica.or(outer.replica);
        self.task = self.task.or(outer.task);
        self.kind = self.kind.or_else(|| outer.kind.clone());
        self.id = self.id.or(outer.id);
        self
    }

    /// True if no part is set to different values on both sides.
    pub fn matches(&self, other: &DeviceSpec) -> bool {
        fn agree<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
            a.is_none() || b.is_none() || a == b
        }
        agree(&self.job, &other.job)
            && agree(&self.replica, &other.replica)
            && agree(&self.task, &other.task)
            && agree(&self.kind, &other.kind)
            && agree(&self.id, &other.id)
    }

    /// True if every part is set.
    pub fn is_full(&self) -> bool {
        self.job.is_some() && self.replica.is_some() && self.task.is_some() && self.kind.is_some() && self.id.is_some()
    }

    /// The part that names the task: `/job:worker/replica:0/task:1`.
    pub fn task_name(&self) -> String {
        DeviceSpec { kind: None, id: None, ..self.clone() }.to_string()
    }
}

/// Explains the expected form of a part that could not be parsed.
fn cure(part: &str) -> String {
    let (key, value) = part.split_once(':').unwrap_or((part, ""));
    match key {
        "job" => "needs a letter, then letters, digits and underscores, such as /job:worker".to_string(),
        "device" if value.contains(':') => "needs a kind and one number, such as /device:CPU:0".to_string(),
        "device" => "needs a kind of device, such as /device:CPU:0".to_string(),
        "replica" | "task" | "cpu" | "CPU" | "gpu" | "GPU" => format!("needs a number, such as /{key}:0"),
        _ => "is none of its parts, which are as in /job:worker/replica:0/task:0/device:CPU:0".to_string(),
    }
}

/// `*` leaves a part unconstrained.
fn open(text: &str) -> Option<&str> {
    (text != "*").then_some(text)
}

fn canonical(kind: &str) -> String {
    if kind == "cpu" || kind == "gpu" { kind.to_uppercase() } else { kind.to_string() }
}

fn job_name(name: &str) -> Option<String> {
    let mut chars = name.chars();
    let valid =
        chars.next().is_some_and(|c| c.is_ascii_alphabetic()) && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    valid.then(|| name.to_string())
}

/// Turns "absent", "malformed" and "a value" into an optional value, or none if malformed.
trait TransposeFlat<T> {
    fn transpose_flat(self) -> Option<Option<T>>;
}

impl<T> TransposeFlat<T> for Option<Option<T>> {
    fn transpose_flat(self) -> Option<Option<T>> {
        match self {
            None => Some(None),
            Some(None) => None,
            Some(some) => Some(some),
        }
    }
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(job) = &self.job {
            write!(f, "/job:{job}")?;
        }
        if let Some(replica) = self.replica {
            write!(f, "/replica:{replica}")?;
        }
        if let Some(task) = self.task {
            write!(f, "/task:{task}")?;
        }
        match (&self.kind, self.id) {
            (Some(kind), Some(id)) => write!(f, "/device:{kind}:{id}"),
            (Some(kind), None) => write!(f, "/device:{kind}:*"),
            (None, Some(id)) => write!(f, "/device:*:{id}"),
            (None, None) => Ok(()),
        }
    }
}
