//! A seam for code that follows the changes of variables, such as a journal.

use crate::Variable;
use status::Error;
use std::sync::Arc;
use tensor::Tensor;

/// Identifies a variable of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableKey {
    /// True if it is a reference variable, false if it is a resource variable. Both kinds may share a name.
    pub reference: bool,
    /// Its container.
    pub container: String,
    /// Its name in the container.
    pub name: String,
}

/// Is notified when variables of one device are added, changed and removed.
///
/// Changes are reported while the variable is locked: before any other thread can see them, and in the order in which
/// they are made. Variables are added and removed while the resources of the device are locked, so an observer must not
/// call back into them.
pub trait VariableObserver: Send + Sync {
    /// A variable exists from now on. The observer may give it an initial value with `Variable::restore`.
    fn added(&self, key: &VariableKey, variable: &Arc<Variable>);

    /// A variable got another value, or lost it. If there are `rows`, only these differ from before. Steps may still
    /// change a variable that was removed; the key may belong to another variable by then.
    fn changed(&self, key: &VariableKey, variable: &Variable, value: Option<&Tensor>, rows: Option<&[usize]>);

    /// A variable was removed from the device.
    fn removed(&self, key: &VariableKey, variable: &Variable);

    /// All variables of a container were removed.
    fn cleared(&self, container: &str);

    /// The error that keeps the observer from following further changes, if any. Steps then fail with it.
    fn failure(&self) -> Option<Error>;
}
