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

/// A file system. Names are complete, with their scheme; folders are separated by `/`.
///
/// Writing is sequential: a writer is a stream, and its content is visible to others at the latest when it is closed.
/// So stores of whole objects can implement this trait.
pub trait FileSystem: Send + Sync {
    /// Opens a file for reading at any offset.
    fn open(&self, path: &str) -> Result<Arc<dyn RandomAccessFile>>;

    /// Creates a file, or replaces the one with this name.
    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>>;

    /// Opens a file for appending, or creates it.
    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>>;

    /// The attributes of a file or folder, without opening it.
    fn stat(&self, path: &str) -> Result<FileStat>;

    /// The names directly in a folder, without the folder, in order.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Deletes a file.
    fn delete(&self, path: &str) -> Result<()>;

    /// Creates a folder in an existing folder. The error is `AlreadyExists` if it exists.
    fn create_dir(&self, path: &str) -> Result<()>;

    /// Deletes an empty folder.
    fn delete_dir(&self, path: &str) -> Result<()>;

    /// Renames a file, replacing a file with the new name.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// True if `rename` is atomic. If not, files are written under their final names.
    fn renames_atomically(&self) -> bool {
        true
    }

    /// True if reading may wait for a network.
    fn is_far(&self) -> bool {
        false
    }

    /// True if both names lead to the same file.
    fn is_same_file(&self, path: &str, other: &str) -> bool {
        path::relative(path, other) == "."
    }

    /// True if this is a device or a pipe, which is written in place.
    fn is_device(&self, _path: &str) -> bool {
        false
    }

    /// True if there is a file or folder with this name.
    fn exists(&self, path: &str) -> Result<bool> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.code == Code::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates a folder and all missing folders that contain it.
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

    /// Deletes a file, or a folder with its contents.
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
    /// match one character of a set, and `\` makes the next character literal.
    fn glob(&self, pattern: &str) -> Result<Vec<String>> {
        glob::expand(pattern, |folder| self.list(folder), |path| self.exists(path))
    }
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileStat {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last write.
    pub modified: SystemTime,
    /// True if it is a folder.
    pub is_dir: bool,
}

/// A file that can be read at any offset, by several threads at once.
pub trait RandomAccessFile: Send + Sync {
    /// The current size in bytes.
    fn size(&self) -> Result<u64>;

    /// Reads from `offset` into the buffer. Fewer bytes than requested mean the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize>;

    /// Fills the buffer, or returns an error if the file ends before.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        match self.read_at(offset, buffer)? {
            count if count == buffer.len() => Ok(()),
            _ => Err(Error::new(Code::OutOfRange, "Read less bytes than requested")),
        }
    }
}

/// A file that is being written sequentially. It is complete when it was closed without an error; if it is dropped
/// before, it may exist in part or not at all.
pub trait WritableFile: Send {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes everything written so far visible to others, where the file system supports this.
    fn flush(&mut self) -> Result<()>;

    /// Makes everything written so far survive a power cut, where the file system supports this before `close`.
    fn sync(&mut self) -> Result<()>;

    /// Starts the work of `sync` in the background, where this is supported. `sync` returns its errors.
    fn begin_sync(&mut self) {}

    /// Completes the file.
    fn close(self: Box<Self>) -> Result<()>;
}
