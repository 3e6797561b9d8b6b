//! The meeting point of one step inside this process.

use op::{Received, Rendezvous};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result};
use tensor::Tensor;

type Reader = Box<dyn FnOnce(Result<Received>) + Send>;

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
    Value(Tensor, bool),
    Reader(Reader),
}

impl Slots {
    /// Keeps the value, or gives back the reader who waits for it.
    fn send(&mut self, key: &str, tensor: &Tensor, dead: bool) -> Result<Option<Reader>> {
        if let Some(error) = &self.aborted {
            return Err(error.clone());
        }
        match self.waiting.remove(key) {
            Some(Slot::Reader(reader)) => Ok(Some(reader)),
            Some(Slot::Value(..)) => Err(status::internal!("Duplicated send: {key}")),
            None => {
                self.waiting.insert(key.to_string(), Slot::Value(tensor.clone(), dead));
                Ok(None)
            }
        }
    }

    /// Keeps the reader, or gives it back with what it reads.
    fn recv(&mut self, key: &str, reader: Reader) -> Option<(Reader, Result<Received>)> {
        if let Some(error) = &self.aborted {
            return Some((reader, Err(error.clone())));
        }
        match self.waiting.remove(key) {
            Some(Slot::Value(tensor, dead)) => Some((reader, Ok((tensor, dead)))),
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

impl Rendezvous for LocalRendezvous {
    fn send(&self, key: &str, tensor: Tensor, dead: bool) -> Result<()> {
        let reader = self.slots.lock().send(key, &tensor, dead)?;
        if let Some(reader) = reader {
            reader(Ok((tensor, dead))); // outside the lock: the reader may come straight back
        }
        Ok(())
    }

    fn recv(&self, key: &str, done: Reader) {
        let answer = self.slots.lock().recv(key, done);
        if let Some((reader, received)) = answer {
            reader(received);
        }
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
