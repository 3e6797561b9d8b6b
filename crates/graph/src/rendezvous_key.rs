//! The key under which a tensor passes from one device to another. This is the only place that builds or parses one.
//!
//! The text is TensorFlow's, because keys travel between tasks:
//! `send_device;incarnation;recv_device;tensor_name;frame:iteration`, with the incarnation as 16 hexadecimal digits.

use status::{Result, invalid};
use std::fmt;

/// A rendezvous key in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RendezvousKey<'a> {
    /// The device that sends the tensor.
    pub send_device: &'a str,
    /// The incarnation of that device: a task that was restarted has another one.
    pub send_incarnation: u64,
    /// The device that receives the tensor.
    pub recv_device: &'a str,
    /// The name of the tensor, the same in the Send and the Recv.
    pub tensor_name: &'a str,
    /// The frame and the iteration, as `frame:iteration`. Like TensorFlow, the parser only asks that it is not empty.
    pub frame_and_iteration: &'a str,
}

impl<'a> RendezvousKey<'a> {
    /// Parses a key; the error is TensorFlow's.
    pub fn parse(text: &'a str) -> Result<RendezvousKey<'a>> {
        RendezvousKey::split(text).ok_or_else(|| RendezvousKey::invalid(text))
    }

    /// TensorFlow's error for a malformed key. The two spaces are TensorFlow's too.
    pub fn invalid(text: &str) -> status::Error {
        invalid!("Invalid  rendezvous key: {text}")
    }

    fn split(text: &'a str) -> Option<RendezvousKey<'a>> {
        let mut parts = text.split(';');
        let mut next = || parts.next();
        let key = RendezvousKey {
            send_device: next()?,
            send_incarnation: u64::from_str_radix(next()?, 16).ok()?,
            recv_device: next()?,
            tensor_name: next()?,
            frame_and_iteration: next().filter(|text| !text.is_empty())?,
        };
        next().is_none().then_some(key)
    }
}

impl fmt::Display for RendezvousKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RendezvousKey { send_device, send_incarnation, recv_device, tensor_name, frame_and_iteration } = self;
        write!(f, "{send_device};{send_incarnation:016x};{recv_device};{tensor_name};{frame_and_iteration}")
    }
}

/// The part of a key that is the same in every frame and iteration. A Send or Recv node formats it once, so that a
/// step only appends two numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RendezvousKeyPrefix(String);

impl RendezvousKeyPrefix {
    /// The prefix of the keys of one tensor between two devices.
    pub fn new(send_device: &str, send_incarnation: u64, recv_device: &str, tensor_name: &str) -> RendezvousKeyPrefix {
        let frame_and_iteration = "";
        let key = RendezvousKey { send_device, send_incarnation, recv_device, tensor_name, frame_and_iteration };
        RendezvousKeyPrefix(key.to_string())
    }

    /// The key in a frame and an iteration.
    pub fn key(&self, frame: u64, iteration: u64) -> String {
        format!("{}{frame}:{iteration}", self.0)
    }

    /// The key outside of any loop.
    pub fn root_key(&self) -> String {
        self.key(0, 0)
    }
}
