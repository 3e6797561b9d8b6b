//! Variables: tensors that outlive a step.

use crate::{OnceCallback, Resource, VariableKey, VariableObserver};
use parking_lot::{Mutex, MutexGuard};
use status::{Result, failed_precondition};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use tensor::{DType, Shape, Tensor};

/// A reference or resource variable. Reading shares the tensor; an update writes to a copy while readers hold the old
/// value, so every read is a consistent snapshot.
pub struct Variable {
    name: String,
    dtype: DType,
    shape: Shape,
    value: Mutex<Option<Tensor>>,
    /// The number of elements, readable without the lock; written while the value is locked.
    elements: AtomicUsize,
    observer: OnceLock<(VariableKey, Arc<dyn VariableObserver>)>,
    /// Completed when the observer knows the variable and has restored its value.
    observed: Once,
    /// Callbacks that wait for a value, and whether there are any; written while the value is locked.
    awaited: Mutex<Vec<OnceCallback>>,
    is_awaited: AtomicBool,
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({}, {})", self.name, self.dtype)
    }
}

impl Resource for Variable {
    const TYPE_NAME: &'static str = "N10tensorflow3VarE";
}

impl Variable {
    /// A variable without a value.
    pub fn new(name: &str, dtype: DType) -> Variable {
        Variable {
            name: name.to_string(),
            dtype,
            shape: Shape::scalar(),
            value: Mutex::new(None),
            elements: AtomicUsize::new(0),
            observer: OnceLock::new(),
            observed: Once::new(),
            awaited: Mutex::default(),
            is_awaited: AtomicBool::new(false),
        }
    }

    /// An int64 counter that starts at zero.
    pub fn counter(name: &str) -> Variable {
        let variable = Variable::new(name, DType::I64);
        variable.assign(Tensor::scalar(0i64));
        variable
    }

    /// Adds to a counter. Does nothing if a client replaced its value by something else.
    pub fn count(&self, amount: usize) {
        let _ = self.update(|count| {
            count.values_mut::<i64>()?.iter_mut().for_each(|count| *count = count.wrapping_add(amount as i64));
            Ok(())
        });
    }

    /// The value of a counter; zero for other variables.
    pub fn counted(&self) -> i64 {
        self.read().and_then(|count| count.to_scalar()).unwrap_or_default()
    }

    /// The same variable with a declared shape.
    pub fn of_shape(mut self, shape: Shape) -> Variable {
        self.shape = shape;
        self
    }

    /// The declared shape, against which the first value is checked.
    pub fn declared_shape(&self) -> &Shape {
        &self.shape
    }

    /// The name, for error messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type of its values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The value; TensorFlow's error if there is none yet.
    pub fn read(&self) -> Result<Tensor> {
        self.value.lock().clone().ok_or_else(|| self.uninitialized())
    }

    /// The number of elements of the current or the previous value; zero without a value. Takes no lock.
    pub fn elements(&self) -> usize {
        self.elements.load(Ordering::Relaxed)
    }

    /// The shape of the value; `None` without a value or while it is locked. Does not block.
    pub fn try_shape(&self) -> Option<Shape> {
        self.value.try_lock()?.as_ref().map(|value| value.shape().clone())
    }

    /// True if it has a value.
    pub fn is_initialized(&self) -> bool {
        self.value.lock().is_some()
    }

    /// Calls back when there is a value, while the variable is locked.
    pub fn when_initialized(&self, call: OnceCallback) {
        let value = self.value.lock();
        if value.is_some() {
            return call.run();
        }
        let mut awaited = self.awaited.lock();
        awaited.retain(OnceCallback::is_open);
        awaited.push(call);
        self.is_awaited.store(true, Ordering::Relaxed);
    }

    /// Updates what is derived from the value after it changed; the caller holds the lock.
    fn changed(&self, value: Option<&Tensor>) {
        self.elements.store(value.map_or(0, Tensor::elements), Ordering::Relaxed);
        if value.is_none() {
            return;
        }
        // Relaxed load before the swap: waiting callbacks are rare, and every update passes here.
        if !self.is_awaited.load(Ordering::Relaxed) || !self.is_awaited.swap(false, Ordering::Relaxed) {
            return;
        }
        let awaited = std::mem::take(&mut *self.awaited.lock());
        awaited.iter().for_each(OnceCallback::run);
    }

    /// Replaces the value.
    pub fn assign(&self, tensor: Tensor) {
        let _old = self.lock().replace(tensor);
    }

    /// Exclusive access to the value, which may be none.
    pub fn lock(&self) -> Locked<'_> {
        let value = self.value.lock();
        Locked { variable: self, had_value: value.is_some(), value, change: Change::None }
    }

    /// Changes the value in place; an error if there is none yet.
    pub fn update<R>(&self, change: impl FnOnce(&mut Tensor) -> Result<R>) -> Result<R> {
        match self.lock().as_mut() {
            Some(tensor) => change(tensor),
            None => Err(self.uninitialized()),
        }
    }

    /// As `update`, for a change of some rows only: `change` returns which.
    pub fn update_rows(&self, change: impl FnOnce(&mut Tensor) -> Result<Vec<usize>>) -> Result<()> {
        let mut locked = self.lock();
        let Some(tensor) = locked.as_mut() else { return Err(self.uninitialized()) };
        let rows = change(tensor)?;
        locked.only_rows(&rows);
        Ok(())
    }

    /// From now on the observer is notified of changes, unless the variable has one. A concurrent second call waits
    /// until the observer has restored the value of the first call.
    pub(crate) fn observe(self: &Arc<Variable>, key: VariableKey, observer: &Arc<dyn VariableObserver>) {
        self.observed.call_once(|| {
            let _ = self.observer.set((key.clone(), observer.clone())); // not set before: `call_once`
            observer.added(&key, self);
        });
    }

    /// True if an observer is notified of changes.
    pub(crate) fn is_observed(&self) -> bool {
        self.observed.is_completed()
    }

    /// Tells the observer that the variable was removed from its device.
    pub(crate) fn notify_removed(&self) {
        if let Some((key, observer)) = self.observer.get() {
            let _locked = self.value.lock();
            observer.removed(key, self);
        }
    }

    /// For observers: calls `restore` with the value while it is locked. A variable without a value gets the returned
    /// one, and the observer is not notified of it.
    pub fn restore(&self, restore: impl FnOnce(Option<&Tensor>) -> Option<Tensor>) {
        let mut value = self.value.lock();
        let restored = restore(value.as_ref());
        if value.is_none() && restored.is_some() {
            *value = restored;
            self.changed(value.as_ref());
        }
    }

    /// Calls `inspect` with the value while it is locked.
    pub fn inspect<R>(&self, inspect: impl FnOnce(Option<&Tensor>) -> R) -> R {
        inspect(self.value.lock().as_ref())
    }

    /// The error for a variable used before it is initialized; session managers look for this wording.
    pub fn uninitialized(&self) -> status::Error {
        failed_precondition!("Attempting to use uninitialized value {}", self.name)
    }
}

/// A reference variable among the resources of a device. The type keeps it apart from resource variables, which may
/// have the same names.
pub struct ReferenceVariable(pub Arc<Variable>);

/// Exclusive access to the value of a variable. The observer is notified of changes when it is dropped.
pub struct Locked<'a> {
    variable: &'a Variable,
    value: MutexGuard<'a, Option<Tensor>>,
    /// True if there was a value when it was locked.
    had_value: bool,
    change: Change,
}

enum Change {
    None,
    Rows(Vec<usize>),
    All,
}

impl Locked<'_> {
    /// Declares that only these rows differ of everything changed so far.
    pub fn only_rows(&mut self, rows: &[usize]) {
        if self.variable.observer.get().is_some() {
            let mut rows = rows.to_vec();
            rows.sort_unstable();
            rows.dedup(); // a row may have been changed any number of times
            self.change = Change::Rows(rows);
        }
    }
}

impl Deref for Locked<'_> {
    type Target = Option<Tensor>;

    fn deref(&self) -> &Option<Tensor> {
        &self.value
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Option<Tensor> {
        self.change = Change::All;
        &mut self.value
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if matches!(self.change, Change::All) {
            self.variable.changed(self.value.as_ref());
        }
        let Some((key, observer)) = self.variable.observer.get() else { return };
        if !self.had_value && self.value.is_none() {
            return; // an update that found nothing to change
        }
        match &self.change {
            Change::None => {}
            Change::Rows(rows) => observer.changed(key, self.variable, self.value.as_ref(), Some(rows)),
            Change::All => observer.changed(key, self.variable, self.value.as_ref(), None),
        }
    }
}
