//! Hadoop's file system: `hdfs://namenode:port/path`, or the name of a service in the configuration in
//! `HADOOP_CONF_DIR`.

mod error;
mod files;

use crate::StoreOptions;
use crate::threads::Threads;
use error::failed;
use files::{HdfsReader, HdfsWriter};
use hdfs_native::client::FileStatus;
use hdfs_native::{Client, ClientBuilder, HdfsError, WriteOptions};
use io::fs::path::{basename, split_scheme};
use io::fs::{FileStat, FileSystem, RandomAccessFile, WritableFile};
use parking_lot::Mutex;
use status::{Code, Error, Result, already_exists, failed_precondition, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// All name nodes and services.
pub(crate) struct HdfsFileSystem {
    clients: Mutex<BTreeMap<String, Client>>,
    config: Option<String>,
    user: Option<String>,
    /// Number of retries and their time limit, unless a configuration sets them.
    retries: [(&'static str, String); 2],
    calls: Arc<Calls>,
}

/// Runs requests on the threads of the store, with a time limit.
pub(crate) struct Calls {
    threads: Arc<Threads>,
    limit: Duration,
}

impl Calls {
    /// Runs a request and waits for its result, at most for the limit.
    fn wait<T: Send + 'static>(
        &self,
        name: &str,
        ask: impl Future<Output = hdfs_native::Result<T>> + Send + 'static,
    ) -> Result<T> {
        let limit = self.limit;
        match self.threads.wait(async move { tokio::time::timeout(limit, ask).await })? {
            Ok(answer) => answer.map_err(|error| failed(name, &error)),
            Err(_) => Err(Error::new(Code::DeadlineExceeded, format!("{name}; no answer within {limit:?}"))),
        }
    }
}

/// Directory mode: readable by all, writable by the owner, as created by Hadoop's own tools.
const FOLDER_MODE: u32 = 0o755;

impl HdfsFileSystem {
    /// The configuration is read at the first access to a file.
    pub fn new(threads: Arc<Threads>, options: &StoreOptions) -> HdfsFileSystem {
        let home = options.get("HADOOP_HOME").map(|home| format!("{home}/etc/hadoop"));
        HdfsFileSystem {
            clients: Mutex::default(),
            config: options.get("HADOOP_CONF_DIR").map(str::to_string).or(home),
            user: options.get("HADOOP_USER_NAME").map(str::to_string),
            retries: retries(options),
            calls: Arc::new(Calls { threads, limit: options.request_timeout + options.retry_timeout }),
        }
    }

    fn client(&self, name: &str, service: &str) -> Result<Client> {
        let mut clients = self.clients.lock();
        if let Some(client) = clients.get(service) {
            return Ok(client.clone());
        }
        let mut builder = ClientBuilder::new();
        // Without a host, the default file system of the configuration is used.
        if !service.ends_with("://") {
            builder = builder.with_url(service);
        }
        builder = match &self.config {
            Some(folder) => builder.with_config_dir(folder.clone()),
            None => builder.with_config(self.retries.clone()),
        };
        if let Some(user) = &self.user {
            builder = builder.with_user(user.clone());
        }
        let made = self.calls.threads.wait(async move { builder.build() })?;
        let client = made.map_err(|error| failed(name, &error))?;
        clients.insert(service.to_string(), client.clone());
        Ok(client)
    }

    /// Asks about a path.
    fn ask<T, F>(&self, name: &str, ask: impl FnOnce(Client, String) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = hdfs_native::Result<T>> + Send + 'static,
    {
        let (service, path) = address(name)?;
        let client = self.client(name, &service)?;
        self.calls.wait(name, ask(client, path))
    }

    fn status(&self, name: &str) -> Result<FileStatus> {
        self.ask(name, |client, path| async move { client.get_file_info(&path).await })
    }
}

/// Hadoop's default is 15 attempts with up to 15 s between them; our request timeout would hide the reason of the
/// failure.
fn retries(options: &StoreOptions) -> [(&'static str, String); 2] {
    let longest = options.retry_timeout / (options.retries as u32).max(1);
    [
        ("dfs.client.failover.max.attempts", options.retries.to_string()),
        ("dfs.client.failover.sleep.max.millis", longest.as_millis().to_string()),
    ]
}

/// The service in a URL, and the path there.
pub(crate) fn address(name: &str) -> Result<(String, String)> {
    let (scheme, rest) = split_scheme(name);
    if scheme.is_empty() {
        return Err(invalid!("{name} is not a URL of the form hdfs://host:port/path"));
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    Ok((format!("{scheme}://{host}"), format!("/{}", parts.join("/"))))
}

impl FileSystem for HdfsFileSystem {
    fn open(&self, name: &str) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.ask(name, |client, path| async move { client.read(&path).await })?;
        Ok(Arc::new(HdfsReader::new(name, file, self.calls.clone())))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        let file = self.ask(name, |client, path| async move {
            client.create(&path, WriteOptions::default().overwrite(true)).await
        })?;
        Ok(Box::new(HdfsWriter::new(name, file, self.calls.clone())))
    }

    fn append(&self, name: &str) -> Result<Box<dyn WritableFile>> {
        let file = self.ask(name, |client, path| async move {
            match client.append(&path).await {
                Err(HdfsError::FileNotFound(_)) => client.create(&path, WriteOptions::default()).await,
                other => other,
            }
        })?;
        Ok(Box::new(HdfsWriter::new(name, file, self.calls.clone())))
    }

    fn stat(&self, name: &str) -> Result<FileStat> {
        let status = self.status(name)?;
        let modified = SystemTime::UNIX_EPOCH + Duration::from_millis(status.modification_time);
        Ok(FileStat { size: status.length as u64, modified, is_dir: status.isdir })
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        if !self.status(folder)?.isdir {
            return Err(failed_precondition!("{folder}; Not a directory"));
        }
        let found = self.ask(folder, |client, path| async move { client.list_status(&path, false).await })?;
        let mut names: Vec<String> = found.iter().map(|status| basename(&status.path).to_string()).collect();
        names.sort();
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<()> {
        if self.status(name)?.isdir {
            return Err(failed_precondition!("{name}; Is a directory"));
        }
        self.ask(name, |client, path| async move { client.delete(&path, false).await }).map(drop)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        if self.exists(name)? {
            return Err(already_exists!("{name}; File exists"));
        }
        self.ask(name, |client, path| async move { client.mkdirs(&path, FOLDER_MODE, false).await })
    }

    fn create_dirs(&self, name: &str) -> Result<()> {
        self.ask(name, |client, path| async move { client.mkdirs(&path, FOLDER_MODE, true).await })
    }

    fn delete_dir(&self, name: &str) -> Result<()> {
        if !self.list(name)?.is_empty() {
            return Err(failed_precondition!("{name}; Directory not empty"));
        }
        self.ask(name, |client, path| async move { client.delete(&path, false).await }).map(drop)
    }

    fn is_far(&self) -> bool {
        true
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let ((source, _), (target, path)) = (address(from)?, address(to)?);
        if source != target {
            return Err(status::unimplemented_op!("Renaming {from} to {to} not implemented"));
        }
        self.ask(from, |client, from| async move { client.rename(&from, &path, true).await })
    }
}
