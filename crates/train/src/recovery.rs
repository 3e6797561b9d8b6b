//! Replaces lost sessions without losing the progress of the model silently.

use crate::session_manager::{Initialization, Recovery, SessionManager};
use checkpoint::step_number;
use graph::Output;
use session::{Session, SessionConfig};
use status::{Code, Error, Result};
use std::path::Path;
use std::time::Duration;
use tensor::Tensor;

/// The progress of the session that is replaced.
#[derive(Clone, Copy)]
pub(crate) struct LastProgress<'a> {
    /// The step counter.
    pub counter: Option<&'a Output>,
    /// Its last known value.
    pub step: Option<i64>,
    /// The setting by which users enable checkpoints, for error messages.
    pub setting: &'a str,
}

/// The source of the variables of the new session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin {
    /// The servers still had them, or another client restored them.
    Servers,
    /// They were lost, and restored from a checkpoint.
    Checkpoint,
}

impl SessionManager {
    /// Replaces a lost session of a chief. Variables that still have values are kept, others are restored. It is an
    /// error if there is no checkpoint, because initializing again would lose all progress.
    pub(crate) fn prepare_again(
        &self,
        (master, config): (&str, &SessionConfig),
        recovery: &Recovery<'_>,
        init: &Initialization<'_>,
        last: LastProgress<'_>,
    ) -> Result<(Session, Origin)> {
        let session = Session::with_config(master, self.graph(), config.clone())?;
        let (lost, origin) = match self.why_not(&session)? {
            Some(missing) => (state_lost(last, &missing, recovery.checkpoint_dir), Origin::Checkpoint),
            None => match last.regressed(&session)? {
                Some(found) if recovery.keep_newer => (last.step_regressed(found), Origin::Servers),
                Some(found) => (last.step_regressed(found), Origin::Checkpoint),
                None => return Ok((session, Origin::Servers)),
            },
        };
        drop(session);
        match recovery.find()? {
            Some(_) => Ok((self.prepare_session(master, config, recovery, init)?, origin)),
            None => Err(lost),
        }
    }

    /// Replaces a lost session of another worker. If the step counter went back, the chief must have restored a
    /// checkpoint.
    pub(crate) fn wait_again(
        &self,
        (master, config): (&str, &SessionConfig),
        limit: Option<Duration>,
        folder: Option<&Path>,
        last: LastProgress<'_>,
    ) -> Result<Session> {
        let session = self.wait_for_session(master, config, limit)?;
        match last.regressed(&session)? {
            Some(found) if folder.is_none() => Err(last.step_regressed(found)),
            _ => Ok(session),
        }
    }
}

impl LastProgress<'_> {
    /// The value of the step counter, if it is less than the last known one.
    fn regressed(&self, session: &Session) -> Result<Option<i64>> {
        let (Some(counter), Some(step)) = (self.counter, self.step) else { return Ok(None) };
        let found = step_number(&session.run::<Tensor>(counter)?)?;
        Ok((found < step).then_some(found))
    }

    fn step_regressed(&self, found: i64) -> Error {
        let (step, setting) = (self.step.unwrap_or_default(), self.setting);
        let message = format!(
            "The global step went back from {step} to {found}: a task lost its state and was initialized again; set \
             {setting} to restore it from a checkpoint"
        );
        Error::new(Code::DataLoss, message)
    }
}

fn state_lost(last: LastProgress<'_>, missing: &str, folder: Option<&Path>) -> Error {
    let when = last.step.map_or(String::new(), |step| format!(" at global step {step}"));
    let cure = match folder {
        Some(folder) => format!("there is no checkpoint in {} to restore it from", folder.display()),
        None => format!("set {} to restore it from a checkpoint", last.setting),
    };
    let message = format!("A task lost its state{when}, and training cannot go on where it was: {cure}. {missing}");
    Error::new(Code::DataLoss, message)
}
