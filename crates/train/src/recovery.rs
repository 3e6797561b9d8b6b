//! Sessions in place of those that were lost: what the model had learned is not forgotten without a word.

use crate::session_manager::{Initialization, Recovery, SessionManager};
use checkpoint::step_number;
use graph::Output;
use session::{Session, SessionConfig};
use status::{Code, Error, Result};
use std::time::Duration;
use tensor::Tensor;

/// How far a session was that is made again.
#[derive(Clone, Copy)]
pub(crate) struct Last<'a> {
    /// What counts steps.
    pub counter: Option<&'a Output>,
    /// Where it was, as far as somebody saw.
    pub step: Option<i64>,
    /// What the user sets so that checkpoints are restored.
    pub setting: &'a str,
}

/// Where the variables of a session that was made again come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Origin {
    /// They were still there, or others have restored them.
    Servers,
    /// They were lost, and read from a checkpoint.
    Checkpoint,
}

impl SessionManager {
    /// A chief's session in place of one that was lost. State that is still there is used as it is; state that was
    /// lost is restored. It is an error if there is no checkpoint to restore it from: to initialize again would be to
    /// forget everything.
    pub(crate) fn prepare_again(
        &self,
        (master, config): (&str, &SessionConfig),
        recovery: &Recovery<'_>,
        init: &Initialization<'_>,
        last: Last<'_>,
    ) -> Result<(Session, Origin)> {
        let session = Session::with_config(master, self.graph(), config.clone())?;
        let (lost, origin) = match self.why_not(&session)? {
            Some(missing) => (lost_state(last, &missing, recovery.checkpoint_dir), Origin::Checkpoint),
            None => match last.went_back(&session)? {
                Some(found) if recovery.keep_newer => (last.set_back(found), Origin::Servers),
                Some(found) => (last.set_back(found), Origin::Checkpoint),
                None => return Ok((session, Origin::Servers)),
            },
        };
        drop(session);
        match recovery.find()? {
            Some(_) => Ok((self.prepare_session(master, config, recovery, init)?, origin)),
            None => Err(lost),
        }
    }

    /// Another worker's session in place of one that was lost. If the step counter is not where it was, the chief must
    /// have restored a checkpoint.
    pub(crate) fn wait_again(
        &self,
        (master, config): (&str, &SessionConfig),
        limit: Option<Duration>,
        folder: Option<&str>,
        last: Last<'_>,
    ) -> Result<Session> {
        let session = self.wait_for_session(master, config, limit)?;
        match last.went_back(&session)? {
            Some(found) if folder.is_none() => Err(last.set_back(found)),
            _ => Ok(session),
        }
    }
}

impl Last<'_> {
    /// Where the step counter is, if that is less than where it was.
    fn went_back(&self, session: &Session) -> Result<Option<i64>> {
        let (Some(counter), Some(step)) = (self.counter, self.step) else { return Ok(None) };
        let found = step_number(&session.run::<Tensor>(counter)?)?;
        Ok((found < step).then_some(found))
    }

    fn set_back(&self, found: i64) -> Error {
        let (step, setting) = (self.step.unwrap_or_default(), self.setting);
        let message = format!(
            "The global step went back from {step} to {found}: a task lost its state and was initialized again; set \
             {setting} to restore it from a checkpoint"
        );
        Error::new(Code::DataLoss, message)
    }
}

fn lost_state(last: Last<'_>, missing: &str, folder: Option<&str>) -> Error {
    let when = last.step.map_or(String::new(), |step| format!(" at global step {step}"));
    let cure = match folder {
        Some(folder) => format!("there is no checkpoint in {folder} to restore it from"),
        None => format!("set {} to restore it from a checkpoint", last.setting),
    };
    let message = format!("A task lost its state{when}, and training cannot go on where it was: {cure}. {missing}");
    Error::new(Code::DataLoss, message)
}
