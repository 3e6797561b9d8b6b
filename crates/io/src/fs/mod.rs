//! File systems, selected by the URL scheme of a file name. They do not interpret the content of files.

mod error;
mod glob;
pub(crate) mod local;
mod memory;
pub mod path;
mod registry;
mod stream;

pub use glob::matches;
pub use local::LocalFileSystem;
pub use memory::MemoryFileSystem;
pub use registry::FileSystems;
pub(crate) use registry::Pending;
pub use stream::FileStream;

pub(crate) use error::{data_loss, failed};
pub(crate) use stream::{FileSink, carried, carrying};

use status::{Code, Error, Result, failed_precondition, not_found};
use std::sync::Arc;
use std::time::SystemTime;

/// A place for files. Names are whole, with their scheme; folders are separated by `/`.
///
/// Nothing here seeks in what it writes: a writer is a stream, and what it wrote is there for others at the latest when
/// it is closed. So stores that keep whole objects are file systems too.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading at any offset.
    fn open(&self, path: &str) -> Result<Arc<dyn RandomAccessFile>>;

    /// Begins a file, in place of the one that had this name.
    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>>;

    /// Goes on at the end of a file, or begins it.
    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>>;

    /// What is known of a file or folder without opening it.
    fn stat(&self, path: &str) -> Result<FileStat>;

    /// Names of what is directly in a folder, without the folder, in order.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Takes a file away.
    fn delete(&self, path: &str) -> Result<()>;

    /// Makes a folder inside one that exists; `AlreadyExists` if it is there.
    fn create_dir(&self, path: &str) -> Result<()>;

    /// Takes an empty folder away.
    fn delete_dir(&self, path: &str) -> Result<()>;

    /// Gives a file another name, in place of what had that name before.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// True if `rename` is atomic. If not, files are written under their final name at once.
    fn renames_atomically(&self) -> bool {
        true
    }

    /// Whether to read may be to wait for a network.
    fn is_far(&self) -> bool {
        false
    }

    /// Whether there is a file or folder of this name.
    fn exists(&self, path: &str) -> Result<bool> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a folder and all folders around it that are missing.
    fn create_dirs(&self, path: &str) -> Result<()> {
        match self.stat(path) {
            Ok(stat) if stat.is_dir => return Ok(()),
            Ok(_) => return Err(failed_precondition!("{path} is not a directory")),
            Err(error) if error.code == Code::NotFound || error.code == Code::FailedPrecondition => {}
            Err(error) => return Err(error),
        }
        let folder = path::dirname(path);
        if !folder.is_empty() && folder.len() < path.len() {
            self.create_dirs(folder)?;
        }
        match self.create_dir(path) {
            Err(error) if error.code == Code::AlreadyExists => Ok(()), // created concurrently
            done => done,
        }
    }

    /// Takes a file, or a folder with all that is in it, away.
    fn delete_recursively(&self, path: &str) -> Result<()> {
        match self.stat(path) {
            Ok(stat) if !stat.is_dir => return self.delete(path),
            Err(error) if error.code == Code::NotFound => return Err(not_found!("{path} not found")),
            other => other?,
        };
        for name in self.list(path)? {
            self.delete_recursively(&path::join(path, &name))?;
        }
        self.delete_dir(path)
    }

    /// Files and folders whose names match a pattern, in order: `*` and `?` match within a folder, `[a-z]` and `[!a]`
    /// one character of a set, and `\` takes the next character as it is.
    fn glob(&self, pattern: &str) -> Result<Vec<String>> {
        glob::expand(pattern, |folder| self.list(folder), |path| self.exists(path))
    }
}

/// What is known of a file without opening it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileStat {
    /// How many bytes it has.
    pub size: u64,
    /// When it was written last.
    pub modified: SystemTime,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// A file that is read at any offset, by several at once.
pub trait RandomAccessFile: Send + Sync {
    /// How many bytes it has now.
    fn size(&self) -> Result<u64>;

    /// Reads from `offset` on, as much as there is room and there are bytes; fewer bytes mean the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// Fills the buffer, or says that the file ends too early.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        match self.read_at(offset, buffer)? {
            count if count == buffer.len() => Ok(()),
            _ => Err(Error::new(Code::OutOfRange, "Read less bytes than requested")),
        }
    }
}

/// A file that is being written, as a stream. It is complete when it was closed without an error; dropped before, it may
/// be there in part or not at all.
pub trait WritableFile: Send {
    /// Adds bytes at the end.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Lets others see what was written so far, where the file system can do that.
    fn flush(&mut self) -> Result<()>;

    /// Lets what was written so far survive a power cut, where the file system can do that before `close`.
    fn sync(&mut self) -> Result<()>;

    /// Begins what `sync` will wait for, where that can go on beside more writing. What goes wrong is said by `sync`.
    fn begin_sync(&mut self) {}

    /// Completes the file.
    fn close(self: Box<Self>) -> Result<()>;
}
