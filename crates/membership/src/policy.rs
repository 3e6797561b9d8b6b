//! How a task counts the gradients of synchronous training.

use status::{Error, Result, invalid};
use std::str::FromStr;

/// How a task counts the gradients that several sessions send to its accumulators, and how it hands out tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// TensorFlow's policy: every gradient that is not stale counts, whichever session sent it, and tokens are handed
    /// out in the order of the requests.
    #[default]
    Tf,
    /// One gradient of each session counts in a step, and a second one is dropped. A step therefore needs as many
    /// sessions as it requires gradients. A session gets one token for each step.
    Exact,
    /// As `Exact`, but a step does not wait for a session that ended or whose task died, and the token that such a
    /// session held goes to another session.
    Shrink,
}

impl FromStr for SyncPolicy {
    type Err = Error;
    fn from_str(text: &str) -> Result<SyncPolicy> {
        match text {
            "tf" => Ok(SyncPolicy::Tf),
            "exact" => Ok(SyncPolicy::Exact),
            "shrink" => Ok(SyncPolicy::Shrink),
            _ => Err(invalid!("unknown sync policy '{text}'; expected tf, exact or shrink")),
        }
    }
}
