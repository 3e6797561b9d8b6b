//! The variables of a device and their journal, with the thread that syncs and compacts it.

use io::journal::{Change, Entry, Journal, Values};
use op::{Resources, Variable, VariableKey, VariableObserver};
use parking_lot::{Condvar, Mutex, RwLock};
use status::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tensor::{DType, Tensor};

/// The longest time until a change survives a power failure. It survives the death of the process at once.
const SYNC_PERIOD: Duration = Duration::from_millis(100);
/// A journal is compacted when it has at least this many bytes,
const COMPACT_BYTES: u64 = 256 << 20;
/// and at least this many times the bytes of the values.
const COMPACT_RATIO: u64 = 4;

/// The variables of one device, stored in a journal. Dropping it stops its thread and syncs the journal.
pub struct DurableVariables {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State shared with the thread.
///
/// Locks are taken in this order: `unclaimed`, the value of a variable, `variables`. The device holds its own lock while it
/// reports that variables are added or removed, so nothing here may call back into the device.
struct Shared {
    journal: Journal,
    /// Values from the journal whose variables have not been created since the restart.
    unclaimed: Mutex<Values>,
    /// The variables that are followed. While it is locked, none of them is removed or cleared.
    variables: RwLock<Known>,
    failure: Mutex<Option<Error>>,
    compact_bytes: u64,
    stopped: Mutex<bool>,
    wake: Condvar,
}

type Known = BTreeMap<VariableKey, Weak<Variable>>;

impl DurableVariables {
    /// Opens the journal in a folder, or creates it. Values in it wait for their variables.
    pub fn open(folder: &Path) -> Result<DurableVariables> {
        DurableVariables::open_with(folder, COMPACT_BYTES)
    }

    /// As `open`, for a journal that is compacted when it has at least this many bytes, and four times the bytes of the
    /// values.
    pub fn open_with(folder: &Path, compact_bytes: u64) -> Result<DurableVariables> {
        let (journal, values) = Journal::open(folder)?;
        let shared = Arc::new(Shared {
            journal,
            unclaimed: Mutex::new(values),
            variables: RwLock::default(),
            failure: Mutex::default(),
            compact_bytes,
            stopped: Mutex::new(false),
            wake: Condvar::new(),
        });
        shared.compact()?; // the values that were read need none of the older segments
        let maintained = shared.clone();
        let thread = thread::Builder::new().name("flowgrid-journal".to_string()).spawn(move || maintained.maintain());
        let thread = thread.map_err(|error| status::internal!("Cannot start a thread: {error}"))?;
        Ok(DurableVariables { shared, thread: Some(thread) })
    }

    /// Follows the variables of a device from now on, and restores the resource variables that are in the journal.
    /// Reference variables are restored when their ops run for the first time. Must be called before any variable of the
    /// device is created.
    pub fn attach(self: &Arc<Self>, device: &Resources) -> Result<()> {
        device.observe_variables(self.clone());
        for (key, dtype) in self.restorable() {
            let variable = Arc::new(Variable::new(&key.name, dtype));
            device.create(&key.container, &key.name, variable.clone())?;
            device.observe_variable(false, &key.container, &key.name, &variable);
        }
        Ok(())
    }

    /// The resource variables in the journal that can be found by name.
    fn restorable(&self) -> Vec<(VariableKey, DType)> {
        let unclaimed = self.shared.unclaimed.lock();
        let restorable =
            unclaimed.iter().filter(|(entry, _)| !entry.reference && Resources::is_found_by_name(&entry.container));
        restorable.map(|(entry, value)| (key_of(entry), value.dtype())).collect()
    }

    /// The number and the total bytes of the values whose variables have not been created since the journal was opened.
    pub fn unclaimed(&self) -> (usize, usize) {
        let unclaimed = self.shared.unclaimed.lock();
        (unclaimed.len(), unclaimed.values().map(Tensor::byte_size).sum())
    }
}

impl Drop for DurableVariables {
    fn drop(&mut self) {
        *self.shared.stopped.lock() = true;
        self.shared.wake.notify_all();
        // The thread itself may drop the last variable that refers to this observer; it cannot join itself.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            // A panic of the thread is not reported: errors of the journal are in `failure` already.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Logs and stores the first error. Later ones are consequences of it.
    fn check(&self, result: Result<()>) {
        if let Err(error) = result {
            self.failure.lock().get_or_insert_with(|| {
                tracing::error!("{error}");
                error
            });
        }
    }

    fn append(&self, key: &VariableKey, change: &Change<'_>) {
        self.check(self.journal.append(&entry_of(key), change));
    }

    /// The loop of the thread: syncs changes to the disk in groups, and compacts the journal when it has grown.
    fn maintain(&self) {
        let mut stopped = self.stopped.lock();
        while !*stopped {
            self.wake.wait_for(&mut stopped, SYNC_PERIOD);
            parking_lot::MutexGuard::unlocked(&mut stopped, || {
                self.check(self.journal.sync());
                let limit = |size| self.compact_bytes.max(COMPACT_RATIO * size);
                if self.compacted_size().is_some_and(|size| self.journal.bytes() > limit(size)) {
                    self.check(self.compact());
                }
            });
        }
        drop(stopped);
        self.check(self.journal.sync());
    }

    /// All variables that are followed. None if one of them was freed without having been removed: then the device is being
    /// dropped, and only the journal has the value.
    fn live(&self) -> Option<Vec<(VariableKey, Arc<Variable>)>> {
        let variables = self.variables.read();
        variables.iter().map(|(key, variable)| Some((key.clone(), variable.upgrade()?))).collect()
    }

    /// The bytes of all values, which is the size of a compacted journal. None if it must not be compacted.
    fn compacted_size(&self) -> Option<u64> {
        let unclaimed: usize = self.unclaimed.lock().values().map(Tensor::byte_size).sum();
        let bytes = |variable: &Variable| variable.inspect(|value| value.map_or(0, Tensor::byte_size));
        let live: usize = self.live()?.iter().map(|(_, variable)| bytes(variable)).sum();
        Some((unclaimed + live) as u64)
    }

    /// Writes every value to a new segment, each while it is locked, and deletes the older segments.
    fn compact(&self) -> Result<()> {
        let segment = self.journal.rotate()?;
        for (entry, value) in &*self.unclaimed.lock() {
            self.journal.renew(entry, value)?;
        }
        // The older segments stay if a variable was freed: they have its value.
        let Some(live) = self.live() else { return Ok(()) };
        for (key, variable) in live {
            variable.inspect(|value| {
                // The variable may have been removed since; this lock keeps it until its value is written.
                let known = self.variables.read();
                match value {
                    Some(value) if is_storable(value) && is_known(&known, &key, &variable) => {
                        self.journal.renew(&entry_of(&key), value)
                    }
                    _ => Ok(()),
                }
            })?;
        }
        self.journal.drop_before(segment)
    }
}

fn entry_of(key: &VariableKey) -> Entry {
    Entry { reference: key.reference, container: key.container.clone(), name: key.name.clone() }
}

fn key_of(entry: &Entry) -> VariableKey {
    VariableKey { reference: entry.reference, container: entry.container.clone(), name: entry.name.clone() }
}

/// True if a key belongs to this variable. After the variable was removed, another one may have the key.
fn is_known(known: &Known, key: &VariableKey, variable: &Variable) -> bool {
    known.get(key).is_some_and(|known| std::ptr::eq(known.as_ptr(), variable))
}

fn row_count(value: &Tensor) -> usize {
    value.shape().dims().first().copied().unwrap_or(0)
}

/// Handles and variants have no meaning outside this process.
fn is_storable(value: &Tensor) -> bool {
    value.buffer().is_some() || value.dtype() == DType::STRING
}

impl VariableObserver for DurableVariables {
    fn added(&self, key: &VariableKey, variable: &Arc<Variable>) {
        // Locked until the variable is known, so that `compact` finds the value here or in the variable.
        let mut unclaimed = self.shared.unclaimed.lock();
        // A value of another type belongs to another variable of the same name. The shape is not compared: a reference
        // variable may have been assigned a value of another shape than the declared one.
        let fits = |value: &Tensor| value.dtype() == variable.dtype();
        let stored = unclaimed.remove(&entry_of(key));
        variable.restore(|value| {
            let mut known = self.shared.variables.write();
            let former = known.insert(key.clone(), Arc::downgrade(variable));
            // The removal of a former variable may be reported later; its value must not become the value of this one.
            if former.is_some() || stored.as_ref().is_some_and(|value| !fits(value)) {
                self.shared.append(key, &Change::Gone);
            }
            // Another thread may have assigned a value before the variable was known here.
            if let Some(value) = value.filter(|value| is_storable(value)) {
                self.shared.append(key, &Change::Value(value));
            }
            stored.filter(fits)
        });
    }

    fn changed(&self, key: &VariableKey, variable: &Variable, value: Option<&Tensor>, rows: Option<&[usize]>) {
        let change = match (value, rows) {
            (Some(value), _) if !is_storable(value) => return,
            (Some(value), Some(rows)) if rows.len() < row_count(value) => Change::Rows(value, rows),
            (Some(value), _) => Change::Value(value),
            (None, _) => Change::Gone,
        };
        // The lock keeps the variable from being removed before the change is written: rows that follow the removal in the
        // journal would have no value to apply to.
        let known = self.shared.variables.read();
        if is_known(&known, key, variable) {
            self.shared.append(key, &change);
        }
    }

    fn removed(&self, key: &VariableKey, variable: &Variable) {
        let mut known = self.shared.variables.write();
        if is_known(&known, key, variable) {
            known.remove(key);
            self.shared.append(key, &Change::Gone);
        }
    }

    fn cleared(&self, container: &str) {
        self.shared.unclaimed.lock().retain(|entry, _| entry.container != container);
        let key = VariableKey { reference: false, container: container.to_string(), name: String::new() };
        let mut known = self.shared.variables.write();
        known.retain(|key, _| key.container != container);
        self.shared.append(&key, &Change::Forgotten);
    }

    fn failure(&self) -> Option<Error> {
        self.shared.failure.lock().clone()
    }
}
