//! Variables that a killed task finds again: every change goes to a journal before others can see it.

use io::journal::{Change, Entry, Journal, Values};
use op::{Keeper, Variable, VariableKey};
use parking_lot::{Condvar, Mutex, RwLock};
use status::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tensor::{DType, Tensor};

/// How long a change may wait until it survives a power cut; that the process is killed it survives at once.
const GROUP: Duration = Duration::from_millis(100);
/// A journal is written anew when it has this many bytes,
const SLACK: u64 = 256 << 20;
/// and this many times the size of the values.
const TIMES: u64 = 4;

/// A keeper with a journal in a folder, and the thread that looks after it.
pub struct JournalKeeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Who holds several locks took the one of `orphans` first, then that of a variable's value, then that of `variables`. The
/// device calls with its own lock held when variables come and go: nothing here asks it for anything.
struct Shared {
    journal: Journal,
    /// Values that wait for their variable.
    orphans: Mutex<Values>,
    /// Those whose changes are kept. While it is locked, none is lost or forgotten.
    variables: RwLock<Known>,
    failure: Mutex<Option<Error>>,
    slack: u64,
    ended: Mutex<bool>,
    wake: Condvar,
}

type Known = BTreeMap<VariableKey, Weak<Variable>>;

impl JournalKeeper {
    /// Opens the journal in a folder; what it holds waits for its variables.
    pub fn open(folder: &Path) -> Result<JournalKeeper> {
        JournalKeeper::with_slack(folder, SLACK)
    }

    /// The same, with a journal that is not written anew before it has this many bytes.
    pub fn with_slack(folder: &Path, slack: u64) -> Result<JournalKeeper> {
        let (journal, values) = Journal::open(folder)?;
        let shared = Arc::new(Shared {
            journal,
            orphans: Mutex::new(values),
            variables: RwLock::default(),
            failure: Mutex::default(),
            slack,
            ended: Mutex::new(false),
            wake: Condvar::new(),
        });
        shared.compact()?; // what was read needs no older segment
        let carer = shared.clone();
        let thread = thread::Builder::new().name("flowgrid-journal".to_string()).spawn(move || carer.care());
        let thread = thread.map_err(|error| status::internal!("Cannot start a thread: {error}"))?;
        Ok(JournalKeeper { shared, thread: Some(thread) })
    }

    /// How many values there are, and how many bytes they have.
    pub fn held(&self) -> (usize, usize) {
        let orphans = self.shared.orphans.lock();
        (orphans.len(), orphans.values().map(Tensor::byte_size).sum())
    }
}

impl Drop for JournalKeeper {
    fn drop(&mut self) {
        *self.shared.ended.lock() = true;
        self.shared.wake.notify_all();
        // The thread may hold the last variable that knows of the keeper.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            // It reports what fails as a failure of the journal; there is nothing else to hear of.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn entry(key: &VariableKey) -> Entry {
        Entry { reference: key.reference, container: key.container.clone(), name: key.name.clone() }
    }

    /// Remembers and tells the first failure: those that follow are its echoes.
    fn check(&self, done: Result<()>) {
        if let Err(error) = done {
            self.failure.lock().get_or_insert_with(|| {
                tracing::error!("{error}");
                error
            });
        }
    }

    fn append(&self, key: &VariableKey, change: &Change<'_>) {
        self.check(self.journal.append(&Shared::entry(key), change));
    }

    /// Lets changes reach the disk in groups, and writes the journal anew when it has grown.
    fn care(&self) {
        let mut ended = self.ended.lock();
        while !*ended {
            self.wake.wait_for(&mut ended, GROUP);
            parking_lot::MutexGuard::unlocked(&mut ended, || {
                self.check(self.journal.sync());
                if self.size().is_some_and(|size| self.journal.bytes() > self.slack.max(TIMES * size)) {
                    self.check(self.compact());
                }
            });
        }
        drop(ended);
        self.check(self.journal.sync());
    }

    /// All variables; none if one is gone without having been lost or forgotten: then their device is on its way out, and
    /// the journal alone has the value.
    fn live(&self) -> Option<Vec<(VariableKey, Arc<Variable>)>> {
        let variables = self.variables.read();
        variables.iter().map(|(key, variable)| Some((key.clone(), variable.upgrade()?))).collect()
    }

    /// How many bytes there would be if the journal was written anew; none if it must not be.
    fn size(&self) -> Option<u64> {
        let orphans: usize = self.orphans.lock().values().map(Tensor::byte_size).sum();
        let bytes = |variable: &Variable| variable.visit(|value| value.map_or(0, Tensor::byte_size));
        let live: usize = self.live()?.iter().map(|(_, variable)| bytes(variable)).sum();
        Some((orphans + live) as u64)
    }

    /// Renews every value, each while nobody can change it, and drops the older segments.
    fn compact(&self) -> Result<()> {
        let segment = self.journal.rotate()?;
        for (entry, value) in &*self.orphans.lock() {
            self.journal.renew(entry, value)?;
        }
        // The older segments stay if somebody is gone.
        let Some(live) = self.live() else { return Ok(()) };
        for (key, variable) in live {
            variable.visit(|value| {
                // Its container may have been forgotten since: nobody can say so before the value is written.
                let known = self.variables.read();
                match value {
                    Some(value) if can_keep(value) && means(&known, &key, &variable) => {
                        self.journal.renew(&Shared::entry(&key), value)
                    }
                    _ => Ok(()),
                }
            })?;
        }
        self.journal.drop_before(segment)
    }
}

/// Whether a key stands for this variable: not after it was lost or forgotten, even if another one has the key.
fn means(known: &Known, key: &VariableKey, variable: &Variable) -> bool {
    known.get(key).is_some_and(|known| std::ptr::eq(known.as_ptr(), variable))
}

fn rows_of(value: &Tensor) -> usize {
    value.shape().dims().first().copied().unwrap_or(0)
}

/// Handles and variants mean something to this process alone.
fn can_keep(value: &Tensor) -> bool {
    value.buffer().is_some() || value.dtype() == DType::STRING
}

impl Keeper for JournalKeeper {
    fn adopt(&self, key: &VariableKey, variable: &Arc<Variable>) {
        // Locked to the end: who writes the journal anew finds the value here or in the variable.
        let mut orphans = self.shared.orphans.lock();
        // Of another type, it is another variable that happens to have the name. The shape says nothing: a reference may
        // have been assigned a value of another shape than it was made for.
        let fits = |value: &Tensor| value.dtype() == variable.dtype();
        let orphan = orphans.remove(&Shared::entry(key));
        variable.recall(|value| {
            let mut known = self.shared.variables.write();
            let former = known.insert(key.clone(), Arc::downgrade(variable));
            // One that was removed, as its keeper is about to hear, must not leave its value to this one.
            if former.is_some() || orphan.as_ref().is_some_and(|value| !fits(value)) {
                self.shared.append(key, &Change::Gone);
            }
            // Whoever found the variable before it was known here may have changed it.
            if let Some(value) = value.filter(|value| can_keep(value)) {
                self.shared.append(key, &Change::Value(value));
            }
            orphan.filter(fits)
        });
    }

    fn note(&self, key: &VariableKey, variable: &Variable, value: Option<&Tensor>, rows: Option<&[usize]>) {
        let change = match (value, rows) {
            (Some(value), _) if !can_keep(value) => return,
            (Some(value), Some(rows)) if rows.len() < rows_of(value) => Change::Rows(value, rows),
            (Some(value), _) => Change::Value(value),
            (None, _) => Change::Gone,
        };
        // Rows after the end of their variable would be rows of nothing: nobody can end it before they are written.
        let known = self.shared.variables.read();
        if means(&known, key, variable) {
            self.shared.append(key, &change);
        }
    }

    fn lose(&self, key: &VariableKey, variable: &Variable) {
        let mut known = self.shared.variables.write();
        if means(&known, key, variable) {
            known.remove(key);
            self.shared.append(key, &Change::Gone);
        }
    }

    fn forget(&self, container: &str) {
        self.shared.orphans.lock().retain(|entry, _| entry.container != container);
        let key = VariableKey { reference: false, container: container.to_string(), name: String::new() };
        let mut known = self.shared.variables.write();
        known.retain(|key, _| key.container != container);
        self.shared.append(&key, &Change::Forgotten);
    }

    fn orphans(&self) -> Vec<(VariableKey, Tensor)> {
        let orphans = self.shared.orphans.lock();
        let key = |entry: &Entry| VariableKey {
            reference: entry.reference,
            container: entry.container.clone(),
            name: entry.name.clone(),
        };
        orphans.iter().map(|(entry, value)| (key(entry), value.clone())).collect()
    }

    fn failure(&self) -> Option<Error> {
        self.shared.failure.lock().clone()
    }
}
