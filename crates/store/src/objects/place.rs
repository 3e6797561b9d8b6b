//! One object: its address, its requests and its errors.

use super::error;
use crate::threads::{Threads, answer};
use object_store::ObjectStore;
use object_store::path::Path;
use status::{Error, Result};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Request sizes and limits.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Parts of an upload, and pieces of a large read.
    pub part: usize,
    /// Parts of an upload that has become very long.
    pub long_part: usize,
    /// The number of parts after which `long_part` applies; stores accept ten thousand parts per upload.
    pub short_parts: usize,
    /// The number of parts or pieces in flight at the same time.
    pub parallel: usize,
    /// Read-ahead of a small read; files up to this size are read in one request.
    pub ahead: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { part: 8 << 20, long_part: 64 << 20, short_parts: 2000, parallel: 4, ahead: 256 << 10 }
    }
}

/// What all objects of a scheme share.
pub(crate) struct Shared {
    pub threads: Arc<Threads>,
    pub secrets: Vec<String>,
    pub sizes: Sizes,
}

impl Shared {
    /// The error of a file, without secrets.
    pub fn failed(&self, name: &str, error: &object_store::Error) -> Error {
        error::failed(name, error, &self.secrets)
    }
}

/// One object, or a folder.
#[derive(Clone)]
pub(super) struct Place {
    pub store: Arc<dyn ObjectStore>,
    pub key: Path,
    pub name: String,
    pub shared: Arc<Shared>,
}

impl Place {
    /// Another object of the same bucket.
    pub fn at(&self, key: Path) -> Place {
        Place { key, ..self.clone() }
    }

    /// Sends a request and waits for the response.
    pub fn wait<T, F>(&self, ask: impl FnOnce(Arc<dyn ObjectStore>, Path) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let asked = self.shared.threads.wait(ask(self.store.clone(), self.key.clone()))?;
        asked.map_err(|error| self.failed(&error))
    }

    /// Sends a request; `answer` waits for it.
    pub fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<Receiver<object_store::Result<T>>> {
        self.shared.threads.begin(work)
    }

    /// Waits for the response to a request that was begun.
    pub fn answer<T>(&self, begun: &Receiver<object_store::Result<T>>) -> Result<T> {
        answer(begun)?.map_err(|error| self.failed(&error))
    }

    /// The error of this file.
    pub fn failed(&self, error: &object_store::Error) -> Error {
        self.shared.failed(&self.name, error)
    }
}
