//! What outlives the process: whoever is told of every change of a variable.

use crate::Variable;
use status::Error;
use std::sync::Arc;
use tensor::Tensor;

/// Which variable of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariableKey {
    /// Whether it is reached by references; else by handles. Both may have the same name.
    pub reference: bool,
    /// Its container.
    pub container: String,
    /// Its name there.
    pub name: String,
}

/// Keeps the variables of one device. It is told of a change while the variable is locked: before anybody can see it,
/// and in the order of the changes.
pub trait Keeper: Send + Sync {
    /// A variable exists from now on. If it was kept and has no value, it gets the one that was kept.
    fn adopt(&self, key: &VariableKey, variable: &Arc<Variable>);

    /// A variable has another value, or none; if `rows` are given, only those are different. Of one that was lost or
    /// forgotten before, nothing is kept, even if another variable has its key.
    fn note(&self, key: &VariableKey, variable: &Variable, value: Option<&Tensor>, rows: Option<&[usize]>);

    /// A variable is no longer to be found; whoever still has it may change it, which is not kept.
    fn lose(&self, key: &VariableKey, variable: &Variable);

    /// All variables of a container are gone.
    fn forget(&self, container: &str);

    /// Kept variables that nobody has adopted.
    fn orphans(&self) -> Vec<(VariableKey, Tensor)>;

    /// Why changes cannot be kept, if they cannot.
    fn failure(&self) -> Option<Error>;
}
