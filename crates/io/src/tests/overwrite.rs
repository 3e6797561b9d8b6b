//! A checkpoint that takes the name of another, by a process that is killed at any step: there is always one that is
//! whole, the old one or the new one.

use crate::bundle::{MergeOptions, merge_bundles};
use crate::fs::{FileStat, FileSystem, MemoryFileSystem, RandomAccessFile, WritableFile};
use crate::{Bundle, BundleWriter, FileSystems, TensorSlice};
use parking_lot::Mutex;
use status::{Result, unavailable};
use std::sync::Arc;
use tensor::{Shape, Tensor};

/// How many changes of files a process will live to see.
#[derive(Clone)]
struct ChangeBudget(Arc<Mutex<usize>>);

impl ChangeBudget {
    fn of(changes: usize) -> ChangeBudget {
        ChangeBudget(Arc::new(Mutex::new(changes)))
    }

    fn spend(&self) -> Result<()> {
        let mut left = self.0.lock();
        *left = left.checked_sub(1).ok_or_else(|| unavailable!("the process is gone"))?;
        Ok(())
    }
}

/// The files of a process that dies. In a store a file begins to exist when it is closed, and a new name is a copy.
struct FailingFiles {
    files: Arc<MemoryFileSystem>,
    budget: ChangeBudget,
    is_store: bool,
}

struct MortalFile {
    /// In a store there is nothing before the end.
    begun: Option<Box<dyn WritableFile>>,
    bytes: Vec<u8>,
    name: String,
    files: Arc<MemoryFileSystem>,
    budget: ChangeBudget,
}

impl WritableFile for MortalFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let alive = self.budget.spend();
        let written = if alive.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        match &mut self.begun {
            Some(file) => file.append(written)?,
            None => self.bytes.extend(written),
        }
        alive
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.budget.spend()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.budget.spend()?;
        if self.begun.is_none() {
            self.files.create(&self.name)?.append(&self.bytes)?;
        }
        Ok(())
    }
}

impl FileSystem for FailingFiles {
    fn open(&self, path: &str) -> Result<Arc<dyn RandomAccessFile>> {
        self.files.open(path)
    }

    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        self.budget.spend()?;
        let begun = if self.is_store { None } else { Some(self.files.create(path)?) };
        let (files, budget) = (self.files.clone(), self.budget.clone());
        Ok(Box::new(MortalFile { begun, bytes: Vec::new(), name: path.to_string(), files, budget }))
    }

    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        self.files.append(path)
    }

    fn stat(&self, path: &str) -> Result<FileStat> {
        self.files.stat(path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.files.list(folder)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.budget.spend()?;
        self.files.delete(path)
    }

    fn create_dir(&self, path: &str) -> Result<()> {
        self.budget.spend()?;
        self.files.create_dir(path)
    }

    fn delete_dir(&self, path: &str) -> Result<()> {
        self.budget.spend()?;
        self.files.delete_dir(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.budget.spend()?;
        if !self.is_store {
            return self.files.rename(from, to);
        }
        let systems = FileSystems::default().with("ram", self.files.clone());
        systems.copy(from, to, true)?;
        self.delete(from)
    }

    fn renames_atomically(&self) -> bool {
        !self.is_store
    }
}

const MODEL: &str = "ram://run/model";

/// How a checkpoint is written: by one task, or by several, whose parts are merged.
#[derive(Clone, Copy, Debug)]
enum How {
    Alone,
    Merged(usize),
}

/// A checkpoint whose values are all `value`, in place of the one that is there.
fn save(systems: &FileSystems, how: How, value: f32) -> Result<()> {
    let (parts, shape) = (6, Shape::new(&[6, 50]));
    let row = Tensor::from_slice([1, 50], &[value; 50])?;
    let write = |prefix: &str, rows: std::ops::Range<usize>| {
        let mut writer = BundleWriter::create(systems, prefix)?;
        for row_at in rows {
            writer.add_slice("w", &shape, &TensorSlice::parse(&format!("{row_at},1:-"))?, &row)?;
            writer.add(&format!("v{row_at}"), &row)?;
        }
        writer.finish()
    };
    let How::Merged(tasks) = how else { return write(MODEL, 0..parts) };
    let prefixes: Vec<String> = (0..tasks).map(|task| format!("{MODEL}_temp/part-{task}")).collect();
    for (task, prefix) in prefixes.iter().enumerate() {
        write(prefix, task * parts / tasks..(task + 1) * parts / tasks)?;
    }
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    merge_bundles(systems, &prefixes, MODEL, MergeOptions { delete_old_dirs: true, ..MergeOptions::default() })
}

/// The value of a checkpoint that is whole.
fn value(systems: &FileSystems) -> f32 {
    let bundle = Bundle::open(systems, MODEL).unwrap();
    let tensors = bundle.entries().keys().map(|name| bundle.read(name).unwrap_or_else(|error| panic!("{error}")));
    let values: Vec<f32> = tensors.flat_map(|tensor| tensor.values::<f32>().unwrap().to_vec()).collect();
    assert_eq!(values.len(), 600);
    assert!(values.iter().all(|&value| value == values[0]), "values of two checkpoints");
    values[0]
}

/// Kills a save after a number of file operations. Returns the checkpoint that is left, and whether the save completed.
fn killed(old: &[How], new: How, is_store: bool, changes: usize) -> (f32, bool) {
    let files = Arc::new(MemoryFileSystem::default());
    let process = |budget: &ChangeBudget| {
        FileSystems::default()
            .with("ram", Arc::new(FailingFiles { files: files.clone(), budget: budget.clone(), is_store }))
    };
    let (lasting, budget) = (process(&ChangeBudget::of(usize::MAX)), ChangeBudget::of(changes));
    old.iter().for_each(|&how| save(&lasting, how, 1.0).unwrap());
    // What fails when the checkpoint is complete is no error of the save.
    let saved = save(&process(&budget), new, 2.0).is_ok();
    let found = value(&lasting);
    assert_eq!(saved, found == 2.0);
    // Whatever was left behind, the next save is not disturbed.
    save(&lasting, new, 3.0).unwrap();
    assert_eq!(value(&lasting), 3.0);
    (found, budget.spend().is_ok())
}

#[test]
fn a_checkpoint_is_whole_until_the_next_one_is() {
    use How::{Alone, Merged};
    for old in [&[Alone][..], &[Alone, Alone], &[Merged(2)]] {
        for new in [Alone, Merged(2)] {
            for is_store in [false, true] {
                let (mut changes, mut last, mut ended) = (0, 1.0, false);
                while !ended {
                    let found;
                    (found, ended) = killed(old, new, is_store, changes);
                    assert!(found >= last, "{old:?} {new:?}: {found} after {last}, killed after {changes} changes");
                    (changes, last) = (changes + 1, found);
                }
                assert_eq!(last, 2.0);
            }
        }
    }
}

#[test]
fn nothing_of_the_old_checkpoint_is_left() {
    let systems = FileSystems::local();
    let files = || systems.list("ram://run").unwrap();
    let alone = ["model.data-00000-of-00001", "model.index"];
    save(&systems, How::Alone, 1.0).unwrap();
    assert_eq!(files(), alone);
    save(&systems, How::Alone, 2.0).unwrap();
    assert_eq!(files(), ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"]);
    save(&systems, How::Alone, 3.0).unwrap();
    assert_eq!(files(), alone);
    save(&systems, How::Merged(2), 4.0).unwrap();
    assert_eq!(files(), ["model.data-00000-of-00002", "model.data-00001-of-00002", "model.index"]);
    assert_eq!(value(&systems), 4.0);
}
