//! Checkpoints of the demo, with a progress bar.

use anyhow::{Context, Result};
use flowgrid::prelude::*;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::Path;

/// Writes and reads the variables of a graph.
pub struct Checkpoints {
    saver: Saver,
    folder: String,
    bar: ProgressBar,
}

impl Checkpoints {
    /// Checkpoints in a folder, which is created if it does not exist. Every task writes its own variables.
    pub fn new(graph: &Graph, folder: &Path) -> Result<Checkpoints> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        // Hidden until a save or a restore starts.
        let bar = ProgressBar::hidden();
        let style = "{prefix:10} {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}";
        bar.set_style(ProgressStyle::with_template(style)?);
        let shown = bar.clone();
        let saver = Saver::builder(graph).sharded(true).progress(move |progress| {
            shown.set_length(progress.total);
            shown.set_position(progress.bytes);
        });
        let (saver, folder) = (saver.build()?, folder.to_string_lossy().into_owned());
        // The checkpoints of earlier runs count towards the number that is kept.
        if let Some(state) = saver.checkpoint_state(&folder)? {
            saver.recover_last_checkpoints(&state.all_model_checkpoint_paths)?;
        }
        Ok(Checkpoints { saver, folder, bar })
    }

    /// Restores the variables from the newest checkpoint. Returns its path, or none if there is no checkpoint.
    pub fn restore(&self, session: &Session) -> Result<Option<String>> {
        let Some(path) = latest_checkpoint(&self.folder)? else { return Ok(None) };
        self.with_bar("restore", || self.saver.restore(session, &path))?;
        Ok(Some(path))
    }

    /// Writes a checkpoint with the number of steps in its name. Returns its path.
    pub fn save(&self, session: &Session, step: &Variable) -> Result<String> {
        let (path, step) = (format!("{}/model.ckpt", self.folder), session.run::<i64>(step)?);
        self.with_bar("save", || self.saver.save(session, &path, step))
    }

    fn with_bar<T>(&self, what: &'static str, work: impl FnOnce() -> Result<T, Error>) -> Result<T> {
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.set_prefix(what);
        self.bar.reset();
        let result = work();
        self.bar.finish();
        Ok(result?)
    }
}
