//! MatchingFilesDataset: the names of the files that match patterns, found folder by folder.

use super::files::one_string;
use crate::attrs::{DATASET, dataset_kernel};
use crate::{
    Cardinality, Dataset, Element, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter, full_name,
};
use io::FileSystems;
use io::fs::{matches, path};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use ops::checkpoint::systems;
use smallvec::smallvec;
use status::{Code, Result, not_found};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::task::Poll;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MatchingFilesDataset(patterns: string) -> handle: variant; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalMatchingFilesDataset(patterns: string) -> handle: variant; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let patterns = inputs.look(0)?.strings()?;
        let patterns = patterns.iter().map(|pattern| String::from_utf8_lossy(pattern).into_owned()).collect();
        Ok(MatchingFiles { patterns, systems: systems.clone(), spec: one_string() })
    })
}

struct MatchingFiles {
    patterns: Vec<String>,
    systems: Arc<FileSystems>,
    spec: Spec,
}

impl Dataset for MatchingFiles {
    fn kind(&self) -> &'static str {
        "MatchingFiles"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(MatchingFilesIterator {
            dataset: self,
            index: 0,
            pattern: String::new(),
            has_backslashes: false,
            found: BinaryHeap::new(),
            has_match: false,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// A name and whether it is a folder; the first in the order of names comes first.
type Found = Reverse<(String, bool)>;

struct MatchingFilesIterator {
    dataset: Arc<MatchingFiles>,
    /// The number of patterns that were begun.
    index: usize,
    pattern: String,
    /// True if the pattern separates folders by backslashes, as its results do then.
    has_backslashes: bool,
    /// Matching files, and folders that may contain some.
    found: BinaryHeap<Found>,
    has_match: bool,
    prefix: Arc<str>,
}

impl MatchingFilesIterator {
    fn next(&mut self, ctx: &PollContext<'_>) -> Result<Option<Element>> {
        loop {
            if let Some(error) = ctx.pipeline.cancel().reason() {
                return Err(error);
            }
            match self.found.pop() {
                Some(Reverse((file, false))) => {
                    self.has_match = true;
                    let name = if self.has_backslashes { file.replace('/', "\\") } else { file };
                    return Ok(Some(smallvec![Tensor::string(name)]));
                }
                Some(Reverse((folder, true))) => self.search(&folder, false)?,
                None if self.index < self.dataset.patterns.len() => self.begin_pattern()?,
                None if self.has_match => return Ok(None),
                None => return Err(not_found!("Don't find any matched files")),
            }
        }
    }

    fn begin_pattern(&mut self) -> Result<()> {
        self.pattern = self.dataset.patterns[self.index].clone();
        self.has_backslashes = self.pattern.contains('\\');
        if self.has_backslashes {
            self.pattern = self.pattern.replace('\\', "/");
        }
        let mut folder = path::dirname(fixed_part(&self.pattern)).to_string();
        if folder.is_empty() {
            folder = ".".to_string();
            self.pattern = path::join(".", &self.pattern);
        }
        self.index += 1;
        self.search(&folder, true)
    }

    /// Adds what is in a folder and may match. Folders that disappear during the search have no files.
    fn search(&mut self, folder: &str, is_first: bool) -> Result<()> {
        let names = match self.dataset.systems.list(folder) {
            Err(error) if error.code == Code::NotFound && !is_first => return Ok(()),
            names => names?,
        };
        let fixed = fixed_part(&self.pattern);
        for name in names {
            let path = path::join(folder, &name);
            let fit = if path.starts_with(fixed) { fit(&self.pattern, &path) } else { Fit::None };
            let is_folder = !matches!(fit, Fit::None) && self.dataset.systems.is_dir(&path)?;
            if is_folder && matches!(fit, Fit::Begin) || !is_folder && matches!(fit, Fit::Whole) {
                self.found.push(Reverse((path, is_folder)));
            }
        }
        Ok(())
    }
}

/// The part of a pattern before its first special character.
fn fixed_part(pattern: &str) -> &str {
    pattern.split(['*', '?', '[']).next().unwrap_or(pattern)
}

/// How a path fits a pattern.
enum Fit {
    /// It does not.
    None,
    /// It fits the first components.
    Begin,
    /// It fits the whole pattern.
    Whole,
}

/// Compares component by component: `*` does not match slashes.
fn fit(pattern: &str, path: &str) -> Fit {
    let mut components = pattern.split('/');
    for name in path.split('/') {
        if !components.next().is_some_and(|component| matches(component, name)) {
            return Fit::None;
        }
    }
    if components.next().is_some() { Fit::Begin } else { Fit::Whole }
}

impl Iterate for MatchingFilesIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        Poll::Ready(self.next(ctx))
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        let mut int = |key: &str, value: i64| writer.int(prefix, &full_name(prefix, key), value);
        int("current_pattern_index", self.index as i64);
        int("hasMatch", i64::from(self.has_match));
        int("isWindows", i64::from(self.has_backslashes));
        if !self.found.is_empty() {
            int("queue_size", self.found.len() as i64);
        }
        for (number, Reverse((_, is_folder))) in self.found.iter().enumerate() {
            int(&format!("path_status_{number}"), i64::from(*is_folder));
        }
        writer.string(prefix, &full_name(prefix, "current_pattern"), self.pattern.clone());
        for (number, Reverse((path, _))) in self.found.iter().enumerate() {
            writer.string(prefix, &full_name(prefix, &format!("path_{number}")), path.clone());
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = &*self.prefix;
        let text = |key: &str| reader.string(prefix, key).map(|text| String::from_utf8_lossy(&text).into_owned());
        self.index = reader.count(prefix, "current_pattern_index")?;
        self.pattern = text("current_pattern")?;
        self.has_match = reader.int(prefix, "hasMatch")? != 0;
        self.has_backslashes = reader.int(prefix, "isWindows")? != 0;
        let count = if reader.contains(prefix, "queue_size") { reader.count(prefix, "queue_size")? } else { 0 };
        let found = |number| {
            let is_folder = reader.int(prefix, &format!("path_status_{number}"))? != 0;
            Ok(Reverse((text(&format!("path_{number}"))?, is_folder)))
        };
        self.found = (0..count).map(found).collect::<Result<_>>()?;
        Ok(())
    }
}
