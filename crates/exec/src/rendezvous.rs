//! The rendezvous of one step in this process: matches tensors that are sent with the receivers that ask for them.

use op::{Received, Rendezvous, Stored};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Error, Result};
use std::sync::Arc;
use tensor::Tensor;

/// What was sent under a key.
#[derive(Clone)]
pub enum Sent {
    /// A tensor, and whether it is dead.
    Tensor(Tensor, bool),
    /// A tensor that is still in a file.
    Stored(Arc<dyn Stored>),
}

impl Sent {
    /// The tensor, read now if it is still in a file.
    pub fn read(self) -> Result<Received> {
        match self {
            Sent::Tensor(tensor, dead) => Ok((tensor, dead)),
            Sent::Stored(stored) => Ok((stored.read()?, false)),
        }
    }
}

type Receiver = Box<dyn FnOnce(Result<Sent>) + Send>;

/// A rendezvous whose senders and receivers are in this process.
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
    Sent(Sent),
    Wanted(Receiver),
}

impl Slots {
    /// Stores what was sent, or returns it with the receiver that waits for it.
    fn send(&mut self, key: &str, sent: Sent) -> Result<Option<(Receiver, Sent)>> {
        if let Some(error) = &self.aborted {
            return Err(error.clone());
        }
        match self.waiting.remove(key) {
            Some(Slot::Wanted(receiver)) => Ok(Some((receiver, sent))),
            Some(Slot::Sent(_)) => Err(status::internal!("Duplicated send: {key}")),
            None => {
                self.waiting.insert(key.to_string(), Slot::Sent(sent));
                Ok(None)
            }
        }
    }

    /// Stores the receiver, or returns it with what it receives.
    fn recv(&mut self, key: &str, receiver: Receiver) -> Option<(Receiver, Result<Sent>)> {
        if let Some(error) = &self.aborted {
            return Some((receiver, Err(error.clone())));
        }
        match self.waiting.remove(key) {
            Some(Slot::Sent(sent)) => Some((receiver, Ok(sent))),
            Some(first @ Slot::Wanted(_)) => {
                self.waiting.insert(key.to_string(), first);
                Some((receiver, Err(status::internal!("Duplicated recv: {key}"))))
            }
            None => {
                self.waiting.insert(key.to_string(), Slot::Wanted(receiver));
                None
            }
        }
    }
}

impl LocalRendezvous {
    /// Like `recv`, but leaves a tensor that is in a file there.
    pub fn recv_unread(&self, key: &str, done: impl FnOnce(Result<Sent>) + Send + 'static) {
        let answer = self.slots.lock().recv(key, Box::new(done));
        if let Some((receiver, sent)) = answer {
            receiver(sent);
        }
    }

    fn put(&self, key: &str, sent: Sent) -> Result<()> {
        let waiting = self.slots.lock().send(key, sent)?;
        if let Some((receiver, sent)) = waiting {
            receiver(Ok(sent)); // outside the lock: the receiver may use the rendezvous again
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

    fn send_stored(&self, key: &str, stored: Arc<dyn Stored>) -> Result<()> {
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
            if let Slot::Wanted(receiver) = slot {
                receiver(Err(error.clone()));
            }
        }
    }
}
