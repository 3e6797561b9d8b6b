//! Files in memory, under `ram://`. They are deleted with the value that holds them.

use super::{FileStat, FileSystem, RandomAccessFile, WritableFile, path};
use parking_lot::RwLock;
use status::{Code, Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// A file system in memory. The folders of a file are created with it.
#[derive(Default)]
pub struct MemoryFileSystem {
    /// By name without scheme and with single slashes, so a folder comes directly before its contents.
    nodes: RwLock<BTreeMap<String, Node>>,
}

#[derive(Clone)]
enum Node {
    Folder,
    File(Arc<RwLock<Contents>>),
}

struct Contents {
    bytes: Vec<u8>,
    modified: SystemTime,
}

impl MemoryFileSystem {
    fn node(&self, name: &str) -> Result<Node> {
        let key = key(name);
        let known = self.nodes.read().get(&key).cloned();
        known.or(key.is_empty().then_some(Node::Folder)).ok_or_else(|| missing(name))
    }

    fn file(&self, name: &str) -> Result<Arc<RwLock<Contents>>> {
        match self.node(name)? {
            Node::File(file) => Ok(file),
            Node::Folder => Err(failed(name, Code::FailedPrecondition, "Is a directory")),
        }
    }

    /// Adds a file, with the folders that contain it.
    fn put(&self, name: &str, file: Arc<RwLock<Contents>>) -> Result<()> {
        let key = key(name);
        let mut nodes = self.nodes.write();
        if key.is_empty() || matches!(nodes.get(&key), Some(Node::Folder)) {
            return Err(failed(name, Code::FailedPrecondition, "Is a directory"));
        }
        make_folders(&mut nodes, name, path::dirname(&key))?;
        nodes.insert(key, Node::File(file));
        Ok(())
    }
}

/// Creates a folder and those that contain it.
fn make_folders(nodes: &mut BTreeMap<String, Node>, name: &str, folder: &str) -> Result<()> {
    if folder.is_empty() {
        return Ok(());
    }
    make_folders(nodes, name, path::dirname(folder))?;
    match nodes.entry(folder.to_string()).or_insert(Node::Folder) {
        Node::Folder => Ok(()),
        Node::File(_) => Err(failed(name, Code::FailedPrecondition, "Not a directory")),
    }
}

/// Everything below a folder, without the folder itself.
fn below(nodes: &BTreeMap<String, Node>, folder: &str) -> Vec<String> {
    let begin = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let names = nodes.range(begin.clone()..).map(|(name, _)| name);
    names.take_while(|name| name.starts_with(&begin)).cloned().collect()
}

fn key(name: &str) -> String {
    let parts: Vec<&str> = path::split_scheme(name).1.split('/').filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

fn failed(name: &str, code: Code, sentence: &str) -> Error {
    Error::new(code, format!("{name}; {sentence}"))
}

fn missing(name: &str) -> Error {
    failed(name, Code::NotFound, "No such file or directory")
}

impl FileSystem for MemoryFileSystem {
    fn open(&self, name: &str) -> Result<Arc<dyn RandomAccessFile>> {
        Ok(Arc::new(MemoryReader(self.file(name)?)))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        let file = Arc::new(RwLock::new(Contents { bytes: Vec::new(), modified: SystemTime::now() }));
        self.put(name, file.clone())?;
        Ok(Box::new(MemoryWriter(file)))
    }

    fn append(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        match self.file(name) {
            Ok(file) => Ok(Box::new(MemoryWriter(file))),
            Err(error) if error.code == Code::NotFound => self.create(name),
            Err(error) => Err(error),
        }
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        Ok(match self.node(name)? {
            Node::Folder => FileStat { size: 0, modified: SystemTime::UNIX_EPOCH, is_dir: true },
            Node::File(file) => {
                let contents = file.read();
                FileStat { size: contents.bytes.len() as u64, modified: contents.modified, is_dir: false }
            }
        })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        if !self.stat(folder)?.is_dir {
            return Err(failed(folder, Code::FailedPrecondition, "Not a directory"));
        }
        let key = key(folder);
        let skip = if key.is_empty() { 0 } else { key.len() + 1 };
        let nodes = self.nodes.read();
        let names = below(&nodes, &key).into_iter().map(|name| name[skip..].to_string());
        Ok(names.filter(|name| !name.contains('/')).collect())
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.file(name)?;
        self.nodes.write().remove(&key(name));
        Ok(())
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        if self.node(name).is_ok() {
            return Err(failed(name, Code::AlreadyExists, "File exists"));
        }
        make_folders(&mut self.nodes.write(), name, &key(name))
    }

    fn delete_dir(&self, name: &str) -> Result<()> {
        if !self.list(name)?.is_empty() {
            return Err(failed(name, Code::FailedPrecondition, "Directory not empty"));
        }
        self.nodes.write().remove(&key(name));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        if let Node::File(file) = self.node(from)? {
            self.put(to, file)?;
            if key(from) != key(to) {
                self.nodes.write().remove(&key(from));
            }
            return Ok(());
        }
        let (from, to) = (key(from), key(to));
        let mut nodes = self.nodes.write();
        make_folders(&mut nodes, &to, &to)?;
        for name in below(&nodes, &from) {
            let node = nodes.remove(&name).expect("it was listed under the same lock");
            nodes.insert(format!("{to}{}", &name[from.len()..]), node);
        }
        nodes.remove(&from);
        Ok(())
    }
}

struct MemoryReader(Arc<RwLock<Contents>>);

impl RandomAccessFile for MemoryReader {
    fn size(&self) -> Result<u64> {
        Ok(self.0.read().bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let contents = self.0.read();
        let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(contents.bytes.len());
        let count = buffer.len().min(contents.bytes.len() - begin);
        buffer[..count].copy_from_slice(&contents.bytes[begin..begin + count]);
        Ok(count)
    }
}

struct MemoryWriter(Arc<RwLock<Contents>>);

impl WritableFile for MemoryWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let mut contents = self.0.write();
        contents.bytes.extend_from_slice(bytes);
        contents.modified = SystemTime::now();
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
