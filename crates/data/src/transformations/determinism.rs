//! Whether a parallel stage keeps the order of its input.

use crate::Pipeline;
use op::Setup;
use status::{Result, invalid};

/// What an op says about its order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Determinism {
    /// The order of the input is kept.
    Kept,
    /// Elements come in the order in which they are computed.
    Free,
    /// The options of the pipeline decide.
    Default,
}

impl Determinism {
    /// The attribute `deterministic`.
    pub fn of(setup: &Setup<'_>) -> Result<Determinism> {
        match &*setup.string("deterministic")? {
            "true" => Ok(Determinism::Kept),
            "false" => Ok(Determinism::Free),
            "default" => Ok(Determinism::Default),
            other => Err(invalid!("Unrecognized determinism policy: {other}")),
        }
    }

    /// The attribute `sloppy` of older ops.
    pub fn of_sloppy(setup: &Setup<'_>) -> Result<Determinism> {
        Ok(if setup.bool("sloppy")? { Determinism::Free } else { Determinism::Default })
    }

    /// True if the order is kept in a pipeline.
    pub fn keeps_order(self, pipeline: &Pipeline) -> bool {
        match self {
            Determinism::Kept => true,
            Determinism::Free => false,
            Determinism::Default => !pipeline.may_reorder(),
        }
    }
}
