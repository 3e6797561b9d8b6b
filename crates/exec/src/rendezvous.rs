//! The rendezvous of one step inside this process.

use op::{Received, Rendezvous, Stored};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result};
use std::sync::Arc;
use tensor::Tensor;

/// A value that was sent.
#[derive(Clone)]
pub enum Sent {
    /// A tensor, and whether it is dead.
    Tensor(Tensor, bool),
    /// A tensor that is still in its file.
    Stored(Arc<dyn Stored>),
}

impl Sent {
    /// The tensor, which is read if it is in a file.
    pub fn read(self) -> Result<Received> {
        match self {
            Sent::Tensor(tensor, dead) => Ok((tensor, dead)),
            Sent::Stored(stored) => Ok((stored.read()?, false)),
        }
    }
}

type Reader = Box<dyn FnOnce(Result<Sent>) + Send>;

/// A rendezvous whose both ends are in this process.
#[derive(Default)]
pub struct LocalRendezvous {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    aborted: Option<Error>,
    waiting: FxHashMap<String, Slot>,
}

enum Slot {
    Value(Sent),
    Reader(Reader),
}

impl Slots {
    /// Stores the value, or returns it with the reader that waits for it.
    fn send(&mut self, key: &str, sent: Sent) -> Result<Option<(Reader, Sent)>> {
        if let Some(error) = &self.aborted {
            return Err(error.clone());
        }
        match self.waiting.remove(key) {
            Some(Slot::Reader(reader)) => Ok(Some((reader, sent))),
            Some(Slot::Value(_)) => Err(status::internal!("Duplicated send: {key}")),
            None => {
                self.waiting.insert(key.to_string(), Slot::Value(sent));
                Ok(None)
            }
        }
    }

    /// Stores the reader, or returns it with the value.
    fn recv(&mut self, key: &str, reader: Reader) -> Option<(Reader, Result<Sent>)> {
        if let Some(error) = &self.aborted {
            return Some((reader, Err(error.clone())));
        }
        match self.waiting.remove(key) {
            Some(Slot::Value(sent)) => Some((reader, Ok(sent))),
            Some(first @ Slot::Reader(_)) => {
                self.waiting.insert(key.to_string(), first);
                Some((reader, Err(status::internal!("Duplicated recv: {key}"))))
            }
            None => {
                self.waiting.insert(key.to_string(), Slot::Reader(reader));
                None
            }
        }
    }
}

impl LocalRendezvous {
    /// Like `recv`, but does not read a tensor that is in a file.
    pub fn recv_unread(&self, key: &str, done: impl FnOnce(Result<Sent>) + Send + 'static) {
        let answer = self.slots.lock().recv(key, Box::new(done));
        if let Some((reader, sent)) = answer {
            reader(sent);
        }
    }

    fn put(&self, key: &str, sent: Sent) -> Result<()> {
        let reader = self.slots.lock().send(key, sent)?;
        if let Some((reader, sent)) = reader {
            reader(Ok(sent)); // outside the lock, because the reader may call this rendezvous
        }
        Ok(())
    }
}

impl Rendezvous for LocalRendezvous {
    fn send(&self, key: &str, tensor: Tensor, dead: bool) -> Result<()> {
        self.put(key, Sent::Tensor(tensor, dead))
    }

    fn recv(&self, key: &str, done: Box<dyn FnOnce(Result<Received>) + Send>) {
        self.recv_unread(key, move |sent| done(sent.and_then(Sent::read)));
    }

    fn offer(&self, key: &str, stored: Arc<dyn Stored>) -> Result<()> {
        self.put(key, Sent::Stored(stored))
    }

    fn abort(&self, error: Error) {
        let waiting = {
            let mut slots = self.slots.lock();
            if slots.aborted.is_some() {
                return;
            }
            slots.aborted = Some(error.clone());
            std::mem::take(&mut slots.waiting)
        };
        for slot in waiting.into_values() {
            if let Slot::Reader(reader) = slot {
                reader(Err(error.clone()));
            }
        }
    }
}
