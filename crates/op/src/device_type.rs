//! Device types that a program registers beside the CPU: their names, priorities and kernels.

use crate::{Kernel, Setup};
use graph::DeviceSpec;
use rustc_hash::FxHashMap;
use status::{Result, already_exists, invalid};
use std::fmt;
use std::sync::Arc;

/// The type of the devices that every task has. It has a kernel for every op.
pub const CPU: &str = "CPU";

/// TensorFlow's priority of the CPU; its GPUs have 210.
const CPU_PRIORITY: i32 = 70;
/// The memory a device reports if its type says nothing: what TensorFlow reports for a CPU.
const MEMORY_LIMIT: i64 = 256 << 20;
/// The placer keeps a bit for each type.
const MOST_TYPES: usize = 64;

/// Builds the kernel of a node on a device of this type.
type MakeKernel = Arc<dyn Fn(&Setup<'_>) -> Result<Kernel> + Send + Sync>;

/// A type of device: its name, which ops have kernels on it, and how many devices of it a task has.
///
/// The devices of a task share its memory: kernels read and write ordinary tensors. A kernel that computes on other
/// hardware copies its inputs and outputs itself.
///
/// The placer puts a node only on devices whose type supports its op. Of those that match a node's device string, it
/// prefers the type with the highest priority. Nodes that the runtime adds, such as `_Send`, run with the CPU's
/// kernels on every device.
///
/// # Examples
///
/// ```
/// use flowgrid_op::{DeviceType, unary};
///
/// let fake = DeviceType::new("FAKE")
///     .priority(210) // preferred to CPUs, as TensorFlow's GPUs are
///     .cpu_kernels(&["Const", "Add"])
///     .kernel("Neg", |_| Ok(unary(|_, x| Ok(x))));
/// assert!(fake.supports("Add") && !fake.supports("MatMul"));
/// ```
#[derive(Clone)]
pub struct DeviceType {
    name: String,
    priority: i32,
    memory_limit: i64,
    count: usize,
    supports_all: bool,
    /// The supported ops; `None` where the CPU's kernel is used.
    kernels: FxHashMap<String, Option<MakeKernel>>,
}

impl DeviceType {
    /// A type without kernels. Each task has one device of it, whose priority is below the CPU's.
    pub fn new(name: &str) -> DeviceType {
        DeviceType {
            name: name.to_string(),
            priority: CPU_PRIORITY - 20,
            memory_limit: MEMORY_LIMIT,
            count: 1,
            supports_all: false,
            kernels: FxHashMap::default(),
        }
    }

    /// Sets the priority. The CPU's is 70.
    pub fn priority(self, priority: i32) -> DeviceType {
        DeviceType { priority, ..self }
    }

    /// Sets the number of bytes that a device reports as its memory.
    pub fn memory_limit(self, memory_limit: i64) -> DeviceType {
        DeviceType { memory_limit, ..self }
    }

    /// Sets how many devices a task has. The `device_count` of a session or server configuration overrides it.
    pub fn count(self, count: usize) -> DeviceType {
        DeviceType { count, ..self }
    }

    /// Registers a kernel of an op. `make` is called once per node and reads the node's attributes.
    pub fn kernel(
        mut self,
        op: &str,
        make: impl Fn(&Setup<'_>) -> Result<Kernel> + Send + Sync + 'static,
    ) -> DeviceType {
        self.kernels.insert(op.to_string(), Some(Arc::new(make)));
        self
    }

    /// Supports these ops with the kernels of the CPU, unless they have kernels of their own.
    pub fn cpu_kernels(mut self, ops: &[&str]) -> DeviceType {
        for op in ops {
            self.kernels.entry(op.to_string()).or_default();
        }
        self
    }

    /// Supports all ops, with the kernels of the CPU where no others are registered.
    pub fn all_cpu_kernels(self) -> DeviceType {
        DeviceType { supports_all: true, ..self }
    }

    /// The name, as in `/device:NAME:0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes a device reports as its memory.
    pub fn memory(&self) -> i64 {
        self.memory_limit
    }

    /// How many devices a task has.
    pub fn devices(&self) -> usize {
        self.count
    }

    /// True if nodes of this op can be placed on devices of this type.
    pub fn supports(&self, op: &str) -> bool {
        self.supports_all || self.kernels.contains_key(op)
    }
}

impl fmt::Debug for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceType({}, priority {})", self.name, self.priority)
    }
}

/// The device types of a process beside the CPU, and which types its jobs prefer.
///
/// A session in this process finds them in its configuration, a server in its options. All tasks of a cluster should
/// register the same types, because the master places the nodes of all tasks.
///
/// # Examples
///
/// ```
/// use flowgrid_op::{DeviceType, DeviceTypes, Extensions};
///
/// let fake = DeviceType::new("FAKE").priority(210).all_cpu_kernels();
/// // Parameter servers compute on their CPUs, although they have devices of the other type.
/// let types = DeviceTypes::new([fake])?.prefer("ps", "CPU");
/// let extensions = Extensions::new().with(types);
/// assert!(extensions.get::<DeviceTypes>().is_some());
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct DeviceTypes {
    types: Vec<Arc<DeviceType>>,
    preferred: Vec<(String, String)>,
}

impl DeviceTypes {
    /// These types. A malformed name, a second type of the same name and a type called CPU are errors.
    pub fn new(types: impl IntoIterator<Item = DeviceType>) -> Result<DeviceTypes> {
        let mut known = DeviceTypes::default();
        for new in types {
            let name = &new.name;
            let letters = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !letters(name) || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(invalid!(
                    "'{name}' is not the name of a device type; expected a letter, then letters, digits and underscores"
                ));
            }
            if name.eq_ignore_ascii_case(CPU) || known.find(name).is_some() {
                return Err(already_exists!("device type {name} is registered already"));
            }
            known.types.push(Arc::new(new));
        }
        match known.types.len() > MOST_TYPES {
            true => Err(invalid!("{} device types are registered; at most {MOST_TYPES} can be", known.types.len())),
            false => Ok(known),
        }
    }

    /// On the tasks of this job, other types are used only by nodes that ask for them.
    pub fn prefer(mut self, job: &str, name: &str) -> DeviceTypes {
        self.preferred.retain(|(other, _)| other != job);
        self.preferred.push((job.to_string(), name.to_string()));
        self
    }

    /// The same types with these numbers of devices, by name of the type.
    pub fn with_counts(&self, counts: &[(String, usize)]) -> DeviceTypes {
        let counted = |old: &Arc<DeviceType>| match counts.iter().find(|(name, _)| *name == old.name) {
            Some(&(_, count)) => Arc::new(DeviceType::clone(old).count(count)),
            None => old.clone(),
        };
        DeviceTypes { types: self.types.iter().map(counted).collect(), preferred: self.preferred.clone() }
    }

    /// The types, in the order in which they were registered.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<DeviceType>> {
        self.types.iter()
    }

    /// The type of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<DeviceType>> {
        self.types.iter().find(|own| own.name == name)
    }

    /// The priority of a type. Types that only other tasks know come last.
    pub fn priority_of(&self, name: &str) -> i32 {
        match self.find(name) {
            Some(own) => own.priority,
            None if name == CPU => CPU_PRIORITY,
            None => i32::MIN,
        }
    }

    /// The type that a job prefers, if it prefers one.
    pub fn preferred_by(&self, job: &str) -> Option<&str> {
        self.preferred.iter().find(|(own, _)| own == job).map(|(_, name)| &**name)
    }

    /// True if an op has a kernel of its own on the device of this name.
    pub fn has_kernel(&self, device: &str, op: &str) -> bool {
        self.kernel(device, op).is_some()
    }

    /// Builds the kernel that is registered for a node's device, if one is.
    pub fn build_kernel(&self, setup: &Setup<'_>) -> Option<Result<Kernel>> {
        let make = self.kernel(setup.device(), &setup.def().op)?;
        Some(make(setup).map_err(|error| error.at_node(setup.name())))
    }

    fn kernel(&self, device: &str, op: &str) -> Option<&MakeKernel> {
        if self.types.is_empty() {
            return None; // the usual case needs no parsing
        }
        let kind = DeviceSpec::parse(device).ok()?.kind?;
        self.find(&kind)?.kernels.get(op)?.as_ref()
    }
}
