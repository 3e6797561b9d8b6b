//! The file system of the operating system, under plain paths and `file://`.

use super::error::failed;
use super::{FileStat, FileSystem, RandomAccessFile, WritableFile, path};
use status::Result;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

/// The file system of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalFileSystem;

/// Small writes are buffered up to this size; larger ones go directly to the file.
const BUFFER: usize = 256 << 10;
/// The error number of "Is a directory".
const EISDIR: i32 = 21;

/// The path of a name, without scheme and host.
fn plain(name: &str) -> &str {
    match path::split_scheme(name) {
        ("", rest) => rest,
        (_, rest) => rest.find('/').map_or("", |at| &rest[at..]),
    }
}

fn named<T>(name: &str, result: io::Result<T>) -> Result<T> {
    result.map_err(|error| failed(name, &error))
}

/// Syncs the folder of a file. Folders that cannot be opened are left to the operating system.
fn sync_folder(name: &str) {
    let folder = path::dirname(plain(name));
    let folder = if folder.is_empty() { "." } else { folder };
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

impl FileSystem for LocalFileSystem {
    fn open(&self, name: &str) -> Result<Arc<dyn RandomAccessFile>> {
        let file = named(name, File::open(plain(name)))?;
        if named(name, file.metadata())?.is_dir() {
            return Err(failed(name, &io::Error::from_raw_os_error(EISDIR)));
        }
        Ok(Arc::new(LocalReader { file, name: name.to_string() }))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        let file = named(name, File::create(plain(name)))?;
        Ok(Box::new(LocalWriter::new(file, name)))
    }

    fn append(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        let file = named(name, OpenOptions::new().append(true).create(true).open(plain(name)))?;
        Ok(Box::new(LocalWriter::new(file, name)))
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        let data = named(name, fs::metadata(plain(name)))?;
        let modified = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(FileStat { size: data.len(), modified, is_dir: data.is_dir() })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in named(folder, fs::read_dir(plain(folder)))? {
            names.push(named(folder, entry)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<()> {
        named(name, fs::remove_file(plain(name)))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        named(name, fs::create_dir(plain(name)))
    }

    fn delete_dir(&self, name: &str) -> Result<()> {
        named(name, fs::remove_dir(plain(name)))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        named(from, fs::rename(plain(from), plain(to)))?;
        sync_folder(to);
        Ok(())
    }

    /// Links lead to the same file, too.
    fn is_same_file(&self, name: &str, other: &str) -> bool {
        match (fs::metadata(plain(name)), fs::metadata(plain(other))) {
            (Ok(one), Ok(two)) => (one.dev(), one.ino()) == (two.dev(), two.ino()),
            _ => path::relative(plain(name), plain(other)) == ".",
        }
    }

    fn is_device(&self, name: &str) -> bool {
        fs::metadata(plain(name)).is_ok_and(|data| !data.is_file() && !data.is_dir())
    }
}

struct LocalReader {
    file: File,
    name: String,
}

impl RandomAccessFile for LocalReader {
    fn size(&self) -> Result<u64> {
        Ok(named(&self.name, self.file.metadata())?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            match self.file.read_at(&mut buffer[count..], offset + count as u64) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.name, &error)),
            }
        }
        Ok(count)
    }
}

pub(crate) struct LocalWriter {
    pub(crate) file: BufWriter<File>,
    name: String,
    syncing: Option<JoinHandle<io::Result<()>>>,
    /// The error of a sync in the background. The operating system reports it only once.
    failure: Option<io::Error>,
}

impl LocalWriter {
    pub(crate) fn new(file: File, name: &str) -> LocalWriter {
        let file = BufWriter::with_capacity(BUFFER, file);
        LocalWriter { file, name: name.to_string(), syncing: None, failure: None }
    }

    /// Waits for the sync in the background.
    fn end_sync(&mut self) {
        let Some(syncing) = self.syncing.take() else { return };
        let synced =
            syncing.join().unwrap_or_else(|_| Err(io::Error::other("the thread that syncs the file has ended")));
        self.failure = self.failure.take().or(synced.err());
    }
}

impl Drop for LocalWriter {
    fn drop(&mut self) {
        self.end_sync(); // the thread has no other owner
    }
}

impl WritableFile for LocalWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        named(&self.name, self.file.write_all(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        named(&self.name, self.file.flush())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.end_sync();
        match &self.failure {
            Some(error) => Err(failed(&self.name, error)),
            None => named(&self.name, self.file.get_ref().sync_data()),
        }
    }

    fn begin_sync(&mut self) {
        if self.syncing.as_ref().is_some_and(|syncing| !syncing.is_finished()) {
            return;
        }
        self.end_sync();
        // Without a second handle or a thread, `sync` does all of the work.
        if self.failure.is_none()
            && let Ok(file) = self.file.get_ref().try_clone()
        {
            self.syncing = thread::Builder::new().name("flowgrid-sync".into()).spawn(move || file.sync_data()).ok();
        }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}
