//! A variable: a tensor that lives longer than a step.

use crate::{Keeper, OneCall, Resource, VariableKey};
use parking_lot::{Mutex, MutexGuard};
use status::{Result, failed_precondition};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};
use tensor::{DType, Shape, Tensor};

/// A variable of either kind. Reading shares the tensor; whoever updates it afterwards writes to a copy
/// while readers remain, so every read is a consistent snapshot.
pub struct Variable {
    name: String,
    dtype: DType,
    shape: Shape,
    value: Mutex<Option<Tensor>>,
    /// How many elements the value has, for those who need not be exact: changed while it is locked.
    elements: AtomicUsize,
    kept: OnceLock<(VariableKey, Arc<dyn Keeper>)>,
    adoption: Once,
    /// Who wants to know that there is a value, and whether there is anybody: changed while the value is locked.
    awaited: Mutex<Vec<OneCall>>,
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
            kept: OnceLock::new(),
            adoption: Once::new(),
            awaited: Mutex::default(),
            is_awaited: AtomicBool::new(false),
        }
    }

    /// A variable that counts, from zero on, in int64.
    pub fn counter(name: &str) -> Variable {
        let variable = Variable::new(name, DType::I64);
        variable.assign(Tensor::scalar(0i64));
        variable
    }

    /// Counts on. If a client has put something else into the variable, nothing happens.
    pub fn count(&self, amount: usize) {
        let _ = self.update(|count| {
            count.values_mut::<i64>()?.iter_mut().for_each(|count| *count = count.wrapping_add(amount as i64));
            Ok(())
        });
    }

    /// What was counted; zero if it is no counter.
    pub fn counted(&self) -> i64 {
        self.read().and_then(|count| count.to_scalar()).unwrap_or_default()
    }

    /// The same variable, made for values of this shape.
    pub fn of_shape(mut self, shape: Shape) -> Variable {
        self.shape = shape;
        self
    }

    /// The shape it was made for: what a first value is checked against.
    pub fn made_for(&self) -> &Shape {
        &self.shape
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Type of its values.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The value; an error that says so if there is none yet.
    pub fn read(&self) -> Result<Tensor> {
        self.value.lock().clone().ok_or_else(|| self.uninitialized())
    }

    /// How many elements its value has, or had a moment ago; none without a value. Locks nothing.
    pub fn elements(&self) -> usize {
        self.elements.load(Ordering::Relaxed)
    }

    /// The shape of its value; none without a value, or while somebody changes it. Waits for nobody.
    pub fn try_shape(&self) -> Option<Shape> {
        self.value.try_lock()?.as_ref().map(|value| value.shape().clone())
    }

    /// Whether it has a value.
    pub fn is_initialized(&self) -> bool {
        self.value.lock().is_some()
    }

    /// Makes a call when there is a value. It is made while the variable is locked.
    pub fn when_initialized(&self, call: OneCall) {
        let value = self.value.lock();
        if value.is_some() {
            return call.make();
        }
        let mut awaited = self.awaited.lock();
        awaited.retain(OneCall::is_open);
        awaited.push(call);
        self.is_awaited.store(true, Ordering::Relaxed);
    }

    /// The value, which is locked, has changed.
    fn changed(&self, value: Option<&Tensor>) {
        self.elements.store(value.map_or(0, Tensor::elements), Ordering::Relaxed);
        if value.is_none() {
            return;
        }
        // A load first: nearly nobody waits, and every update comes here.
        if !self.is_awaited.load(Ordering::Relaxed) || !self.is_awaited.swap(false, Ordering::Relaxed) {
            return;
        }
        let awaited = std::mem::take(&mut *self.awaited.lock());
        awaited.iter().for_each(OneCall::make);
    }

    /// Replaces the value.
    pub fn assign(&self, tensor: Tensor) {
        let _old = self.lock().replace(tensor);
    }

    /// Exclusive access to the value, which may be none.
    pub fn lock(&self) -> Locked<'_> {
        let value = self.value.lock();
        Locked { variable: self, was: value.is_some(), value, change: Change::None }
    }

    /// Changes the value in place; an error if there is none yet.
    pub fn update<R>(&self, change: impl FnOnce(&mut Tensor) -> Result<R>) -> Result<R> {
        match self.lock().as_mut() {
            Some(tensor) => change(tensor),
            None => Err(self.uninitialized()),
        }
    }

    /// As `update`, of some rows alone: `change` says which.
    pub fn update_rows(&self, change: impl FnOnce(&mut Tensor) -> Result<Vec<usize>>) -> Result<()> {
        let mut locked = self.lock();
        let Some(tensor) = locked.as_mut() else { return Err(self.uninitialized()) };
        let rows = change(tensor)?;
        locked.only_rows(&rows);
        Ok(())
    }

    /// From now on a keeper is told of changes, unless one is already. Whoever comes second waits until it has the value
    /// that was kept from an earlier life.
    pub(crate) fn keep(self: &Arc<Variable>, key: VariableKey, keeper: &Arc<dyn Keeper>) {
        self.adoption.call_once(|| {
            let _ = self.kept.set((key.clone(), keeper.clone())); // nobody else sets it
            keeper.adopt(&key, self);
        });
    }

    /// Whether a keeper is told of changes.
    pub(crate) fn is_kept(&self) -> bool {
        self.adoption.is_completed()
    }

    /// The variable is no longer to be found, and has no value for the keeper.
    pub(crate) fn lose(&self) {
        if let Some((key, keeper)) = self.kept.get() {
            let _locked = self.value.lock();
            keeper.lose(key, self);
        }
    }

    /// Calls `recall` with the value as it is, while nobody can change it. If there is none, it gets the one returned,
    /// which the keeper has already.
    pub fn recall(&self, recall: impl FnOnce(Option<&Tensor>) -> Option<Tensor>) {
        let mut held = self.value.lock();
        let kept = recall(held.as_ref());
        if held.is_none() && kept.is_some() {
            *held = kept;
            self.changed(held.as_ref());
        }
    }

    /// Calls `visit` with the value as it is, while nobody can change it.
    pub fn visit<R>(&self, visit: impl FnOnce(Option<&Tensor>) -> R) -> R {
        visit(self.value.lock().as_ref())
    }

    /// The error for a variable that is used before it has a value; session managers look for the word.
    pub fn uninitialized(&self) -> status::Error {
        failed_precondition!("Attempting to use uninitialized value {}", self.name)
    }
}

/// A variable that is reached by references, among the resources of a device: apart from those behind handles, which may
/// have the same names.
pub struct ReferenceVariable(pub Arc<Variable>);

/// The value of a variable, held by one who may change it. The keeper hears of changes when it is let go.
pub struct Locked<'a> {
    variable: &'a Variable,
    value: MutexGuard<'a, Option<Tensor>>,
    /// Whether there was one.
    was: bool,
    change: Change,
}

enum Change {
    None,
    Rows(Vec<usize>),
    All,
}

impl Locked<'_> {
    /// Of all that was changed so far, only these rows are different.
    pub fn only_rows(&mut self, rows: &[usize]) {
        if self.variable.kept.get().is_some() {
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
        let Some((key, keeper)) = self.variable.kept.get() else { return };
        if !self.was && self.value.is_none() {
            return; // an update that found nothing to change
        }
        match &self.change {
            Change::None => {}
            Change::Rows(rows) => keeper.note(key, self.variable, self.value.as_ref(), Some(rows)),
            Change::All => keeper.note(key, self.variable, self.value.as_ref(), None),
        }
    }
}
