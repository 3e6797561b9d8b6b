//! All file systems of a process, by scheme: a value that is handed down.

use super::{FileStat, FileSystem, LocalFileSystem, MemoryFileSystem, RandomAccessFile, WritableFile, path};
use bytes::Bytes;
use status::{Code, Result, already_exists, exhausted, unimplemented_op};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// File systems by scheme. Clones share them, and so the files in memory.
#[derive(Clone, Default)]
pub struct FileSystems {
    by_scheme: BTreeMap<String, Arc<dyn FileSystem>>,
}

impl FileSystems {
    /// Plain paths, `file://`, and a new `ram://`.
    pub fn local() -> FileSystems {
        let local = Arc::new(LocalFileSystem);
        let all = FileSystems::default().with("", local.clone()).with("file", local);
        all.with("ram", Arc::new(MemoryFileSystem::default()))
    }

    /// The same, and names with this scheme go to that file system.
    pub fn with(mut self, scheme: &str, system: Arc<dyn FileSystem>) -> FileSystems {
        self.by_scheme.insert(scheme.to_string(), system);
        self
    }

    /// The file system a name belongs to.
    pub fn of(&self, name: &str) -> Result<&dyn FileSystem> {
        let scheme = path::split_scheme(name).0;
        match self.by_scheme.get(scheme) {
            Some(system) => Ok(&**system),
            None => Err(unimplemented_op!(
                "File system scheme '{scheme}' not implemented (file: '{name}'){}",
                advice(scheme)
            )),
        }
    }

    /// Opens a file for reading at any offset.
    pub fn open(&self, name: &str) -> Result<Arc<dyn RandomAccessFile>> {
        self.of(name)?.open(name)
    }

    /// Begins a file, in place of the one that had this name.
    pub fn create(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        self.of(name)?.create(name)
    }

    /// Goes on at the end of a file, or begins it.
    pub fn append(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        self.of(name)?.append(name)
    }

    /// What is known of a file without opening it.
    pub fn stat(&self, name: &str) -> Result<FileStat> {
        self.of(name)?.stat(name)
    }

    /// Whether there is a file or folder of this name.
    pub fn exists(&self, name: &str) -> Result<bool> {
        self.of(name)?.exists(name)
    }

    /// Whether this is a folder.
    pub fn is_dir(&self, name: &str) -> Result<bool> {
        match self.stat(name) {
            Ok(stat) => Ok(stat.is_dir),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Names of what is directly in a folder, in order.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.of(folder)?.list(folder)
    }

    /// Files and folders whose names match a pattern, in order.
    pub fn glob(&self, pattern: &str) -> Result<Vec<String>> {
        self.of(pattern)?.glob(pattern)
    }

    /// Takes a file away.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.of(name)?.delete(name)
    }

    /// Takes a file, or a folder with all that is in it, away.
    pub fn delete_recursively(&self, name: &str) -> Result<()> {
        self.of(name)?.delete_recursively(name)
    }

    /// Makes a folder and all folders around it that are missing.
    pub fn create_dirs(&self, name: &str) -> Result<()> {
        match name.is_empty() {
            true => Ok(()),
            false => self.of(name)?.create_dirs(name),
        }
    }

    /// Takes an empty folder away.
    pub fn delete_dir(&self, name: &str) -> Result<()> {
        self.of(name)?.delete_dir(name)
    }

    /// Gives a file another name on the same file system; what had that name is replaced if `overwrite` says so.
    pub fn rename(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        if !overwrite && self.exists(to)? {
            return Err(already_exists!("file already exists"));
        }
        let (source, target) = (self.of(from)?, self.of(to)?);
        if !std::ptr::addr_eq(source, target) {
            return Err(unimplemented_op!("Renaming {from} to {to} not implemented"));
        }
        source.rename(from, to)
    }

    /// Copies a file, also from one file system to another.
    pub fn copy(&self, from: &str, to: &str, overwrite: bool) -> Result<()> {
        if !overwrite && self.exists(to)? {
            return Err(already_exists!("file already exists"));
        }
        let source = self.open(from)?;
        let mut target = self.create(to)?;
        let mut piece = vec![0; 1 << 20];
        let mut offset = 0;
        loop {
            let count = source.read_at(offset, &mut piece)?;
            target.append(&piece[..count])?;
            offset += count as u64;
            if count < piece.len() {
                return target.close();
            }
        }
    }

    /// All bytes of a file.
    pub fn read(&self, name: &str) -> Result<Bytes> {
        let file = self.open(name)?;
        let size = usize::try_from(file.size()?).map_err(|_| exhausted!("{name} does not fit into memory"))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| exhausted!("{name} does not fit into memory"))?;
        bytes.resize(size, 0);
        let count = file.read_at(0, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes.into())
    }

    /// Writes a whole file. Where names change atomically, others see the old file or the new one, never a part.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut file = Pending::begin(self, name)?;
        file.append(bytes)?;
        file.finish()
    }
}

/// How to get a file system that is not there, if there is a way.
fn advice(scheme: &str) -> String {
    let feature = match scheme {
        "s3" | "gs" | "az" | "hdfs" => scheme,
        "viewfs" => "hdfs",
        _ => return String::new(),
    };
    format!(
        "; build Flowgrid with the cargo feature '{feature}' (cargo build --release --features {feature}), and give \
         sessions and savers the file systems of flowgrid::store"
    )
}

/// A file that gets its name when it is complete and safe on disk; dropped before, it leaves nothing behind.
pub(crate) struct Pending {
    systems: FileSystems,
    file: Option<Box<dyn WritableFile>>,
    temporary: String,
    name: String,
    /// Bytes whose way to the disk has not begun.
    fresh: usize,
}

/// So much is written before it begins its way to the disk: at the end little is left to wait for.
const BEGIN_SYNC: usize = 16 << 20;

impl Pending {
    /// Begins a file that will be called `name`.
    pub fn begin(systems: &FileSystems, name: &str) -> Result<Pending> {
        let temporary = match systems.of(name)?.renames_atomically() {
            // Every `RandomState` has keys of its own, so its hash of nothing is as good as a random number.
            true => format!("{name}.tempstate{}", RandomState::new().hash_one(())),
            false => name.to_string(),
        };
        let file = Some(systems.create(&temporary)?);
        Ok(Pending { systems: systems.clone(), file, temporary, name: name.to_string(), fresh: 0 })
    }

    /// Adds bytes at the end.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let file = self.file.as_mut().expect("open until finished");
        file.append(bytes)?;
        self.fresh = self.fresh.saturating_add(bytes.len());
        if self.fresh >= BEGIN_SYNC {
            self.fresh = 0;
            file.begin_sync();
        }
        Ok(())
    }

    /// Completes the file under its name.
    pub fn finish(mut self) -> Result<()> {
        let mut file = self.file.take().expect("open until finished");
        let written = file.sync().and_then(|()| file.close());
        if self.temporary == self.name {
            return written;
        }
        let renamed = written.and_then(|()| self.systems.rename(&self.temporary, &self.name, true));
        renamed.inspect_err(|_| drop(self.systems.delete(&self.temporary)))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Without a name of its own the file is an object that begins to exist when it is closed.
        if self.file.take().is_some() && self.temporary != self.name {
            let _ = self.systems.delete(&self.temporary);
        }
    }
}
