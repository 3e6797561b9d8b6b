//! The file systems of a process by scheme, as a value that is passed to its users.

use super::{FileStat, FileSystem, LocalFileSystem, MemoryFileSystem, RandomAccessFile, WritableFile, path};
use bytes::Bytes;
use status::{Code, Error, Result, already_exists, exhausted, unimplemented_op};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// File systems by scheme. Clones share them, including the files in memory.
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

    /// The same, with a file system for the names of another scheme.
    pub fn with(mut self, scheme: &str, system: Arc<dyn FileSystem>) -> FileSystems {
        self.by_scheme.insert(scheme.to_string(), system);
        self
    }

    /// The file system of a name.
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

    /// Creates a file, or replaces the one with this name.
    pub fn create(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        self.of(name)?.create(name)
    }

    /// Opens a file for appending, or creates it.
    pub fn append(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        self.of(name)?.append(name)
    }

    /// The attributes of a file, without opening it.
    pub fn stat(&self, name: &str) -> Result<FileStat> {
        self.of(name)?.stat(name)
    }

    /// True if there is a file or folder with this name.
    pub fn exists(&self, name: &str) -> Result<bool> {
        self.of(name)?.exists(name)
    }

    /// True if this is a folder.
    pub fn is_dir(&self, name: &str) -> Result<bool> {
        match self.stat(name) {
            Ok(stat) => Ok(stat.is_dir),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The names directly in a folder, in order.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.of(folder)?.list(folder)
    }

    /// Files and folders whose names match a pattern, in order.
    pub fn glob(&self, pattern: &str) -> Result<Vec<String>> {
        self.of(pattern)?.glob(pattern)
    }

    /// Deletes a file.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.of(name)?.delete(name)
    }

    /// Deletes a file, or a folder with its contents.
    pub fn delete_recursively(&self, name: &str) -> Result<()> {
        self.of(name)?.delete_recursively(name)
    }

    /// Creates a folder in an existing folder, unless it exists.
    pub fn create_dir(&self, name: &str) -> Result<()> {
        if name.is_empty() {
            return Ok(());
        }
        match self.of(name)?.create_dir(name) {
            Err(error) if error.code == Code::AlreadyExists => Ok(()),
            done => done,
        }
    }

    /// Creates a folder and all missing folders that contain it.
    pub fn create_dirs(&self, name: &str) -> Result<()> {
        match name.is_empty() {
            true => Ok(()),
            false => self.of(name)?.create_dirs(name),
        }
    }

    /// Deletes an empty folder.
    pub fn delete_dir(&self, name: &str) -> Result<()> {
        self.of(name)?.delete_dir(name)
    }

    /// Renames a file within its file system. A file with the new name is replaced if `overwrite` is set.
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

    /// True if both names lead to the same file.
    pub fn is_same_file(&self, name: &str, other: &str) -> Result<bool> {
        let (one, two) = (self.of(name)?, self.of(other)?);
        Ok(std::ptr::addr_eq(one, two) && one.is_same_file(name, other))
    }

    /// Copies a file, also between file systems.
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

    /// The content of a file.
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

    /// Writes a whole file. Where renames are atomic, readers see the old or the new content, never a part.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut file = Pending::begin(self, name)?;
        file.append(bytes)?;
        file.finish()
    }
}

/// How to get a missing file system, if there is a way.
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

/// A file that gets its name when it is complete and synced. If it is dropped before, no file remains.
pub(crate) struct Pending {
    systems: FileSystems,
    file: Option<Box<dyn WritableFile>>,
    temporary: String,
    name: String,
    /// The number of bytes that are not being synced yet.
    fresh: usize,
}

/// The number of bytes between two syncs in the background, so that little remains to be synced at the end.
const BEGIN_SYNC: usize = 16 << 20;

impl Pending {
    /// Starts a file that will be named `name`.
    pub fn begin(systems: &FileSystems, name: &str) -> Result<Pending> {
        let system = systems.of(name)?;
        let temporary = match system.renames_atomically() && !system.is_device(name) {
            // Each `RandomState` has its own keys, so its hash of nothing serves as a random number.
            true => format!("{name}.tempstate{}", RandomState::new().hash_one(())),
            false => name.to_string(),
        };
        let created = systems.create(&temporary);
        let file = Some(created.map_err(|error| Error { message: error.message.replace(&temporary, name), ..error })?);
        Ok(Pending { systems: systems.clone(), file, temporary, name: name.to_string(), fresh: 0 })
    }

    /// Appends bytes.
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

    /// Completes the file and gives it its name.
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

impl WritableFile for Pending {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        Pending::append(self, bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.as_mut().expect("open until finished").flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.file.as_mut().expect("open until finished").sync()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.finish()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Without a temporary name the file is an object that appears when it is closed.
        if self.file.take().is_some() && self.temporary != self.name {
            let _ = self.systems.delete(&self.temporary);
        }
    }
}
