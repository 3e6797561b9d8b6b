//! Several answers of RecvTensor in one body, in parts that name the request they answer.
//!
//! Only tasks of Flowgrid use this. A part is a message of gRPC: eight bytes for the index of the request and the kind of
//! the part, then bytes of the answer. All parts of an answer together have the bytes that it would have in a call of its
//! own.

use super::recv_tensor::{Incoming, Outgoing, PREFIX, ReceivedTensor};
use bytes::{Bytes, BytesMut};
use status::{Code, Error, Result, internal};

/// The bytes before each part: the prefix of a message and the batch's own header.
const HEADER: usize = PREFIX + OWN;
/// The bytes of the index of the request and of the kind of the part.
const OWN: usize = 8;
/// The limit for the text of an error.
const MAX_FAILURE: usize = 1 << 20;

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes of an answer; more follow.
    More = 0,
    /// The last bytes of an answer.
    Last = 1,
    /// The size of the raw content that follows the first message of an answer.
    Raw = 2,
    /// An error in place of an answer: its code, whether it is derived, and its text.
    Failed = 3,
}

fn header(index: usize, kind: Kind, len: usize) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[1..PREFIX].copy_from_slice(&((OWN + len) as u32).to_be_bytes());
    bytes[PREFIX..PREFIX + 4].copy_from_slice(&(index as u32).to_be_bytes());
    bytes[PREFIX + 4] = kind as u8;
    bytes
}

fn parse(bytes: &[u8; HEADER]) -> Option<(usize, Kind, usize)> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes[at..at + 4].try_into().ok()?) as usize);
    let kinds = [Kind::More, Kind::Last, Kind::Raw, Kind::Failed];
    let kind = kinds.into_iter().find(|&kind| kind as u8 == bytes[PREFIX + 4]).filter(|_| bytes[0] == 0)?;
    Some((number(PREFIX)?, kind, number(1)?.checked_sub(OWN)?))
}

/// Bytes of an answer as a part. The first piece is copied behind the header, so it should be short.
pub(crate) fn part(index: usize, kind: Kind, pieces: Vec<Bytes>) -> Vec<Bytes> {
    let len = pieces.iter().map(Bytes::len).sum();
    let mut pieces = pieces.into_iter();
    let first = pieces.next().unwrap_or_default();
    let mut start = BytesMut::with_capacity(HEADER + first.len());
    start.extend_from_slice(&header(index, kind, len));
    start.extend_from_slice(&first);
    std::iter::once(start.freeze()).chain(pieces).collect()
}

/// A whole answer.
pub(crate) fn whole(index: usize, outgoing: Outgoing) -> Vec<Bytes> {
    let Some(size) = outgoing.raw else { return part(index, Kind::Last, outgoing.pieces) };
    let parts = outgoing.pieces.into_iter().flat_map(|piece| part(index, Kind::More, vec![Bytes::new(), piece]));
    std::iter::once(raw(index, size)).chain(parts).chain(part(index, Kind::Last, Vec::new())).collect()
}

/// A part with the size of the raw content that follows.
pub(crate) fn raw(index: usize, size: usize) -> Bytes {
    part(index, Kind::Raw, vec![Bytes::copy_from_slice(&(size as u64).to_be_bytes())]).concat().into()
}

/// A part with an error in place of an answer.
pub(crate) fn failed(index: usize, error: &Error) -> Bytes {
    let mut text = (error.code as i32).to_be_bytes().to_vec();
    text.push(error.derived as u8);
    let end = (0..=error.message.len().min(MAX_FAILURE / 2)).rev().find(|&end| error.message.is_char_boundary(end));
    text.extend_from_slice(&error.message.as_bytes()[..end.unwrap_or(0)]);
    part(index, Kind::Failed, vec![text.into()]).concat().into()
}

/// Several answers that are being received.
pub(crate) struct BatchReader {
    answers: Vec<Option<Open>>,
    header: Vec<u8>,
    /// The index and kind of the current part, and how many of its bytes are missing.
    current: Option<(usize, Kind, usize)>,
    /// The received bytes of a part that is decoded as a whole.
    text: Vec<u8>,
}

/// An answer that is not complete.
#[derive(Default)]
struct Open {
    raw: Option<usize>,
    incoming: Option<Incoming>,
}

impl BatchReader {
    /// A reader of `count` answers.
    pub fn new(count: usize) -> BatchReader {
        let answers = (0..count).map(|_| Some(Open::default())).collect();
        BatchReader { answers, header: Vec::new(), current: None, text: Vec::new() }
    }

    /// Reads the next bytes; `done` gets the answers that they complete, with their index.
    pub fn push(&mut self, mut bytes: &[u8], mut done: impl FnMut(usize, Result<ReceivedTensor>)) -> Result<()> {
        loop {
            let Some((index, kind, left)) = self.current else {
                let (now, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
                self.header.extend_from_slice(now);
                bytes = rest;
                let Ok(header) = self.header.as_slice().try_into() else { return Ok(()) };
                self.current = Some(parse(header).ok_or_else(|| broken("a part has a malformed header"))?);
                self.header.clear();
                continue;
            };
            let (now, rest) = bytes.split_at(bytes.len().min(left));
            bytes = rest;
            self.take(index, kind, now, left)?;
            if now.len() < left {
                self.current = Some((index, kind, left - now.len()));
                return Ok(());
            }
            self.current = None;
            if let Some(answer) = self.end(index, kind)? {
                done(index, answer);
            }
        }
    }

    /// Reads bytes of a part.
    fn take(&mut self, index: usize, kind: Kind, bytes: &[u8], left: usize) -> Result<()> {
        let open = self.open(index)?;
        match kind {
            Kind::More | Kind::Last if bytes.is_empty() => Ok(()),
            Kind::More | Kind::Last => {
                let incoming = match &mut open.incoming {
                    Some(incoming) => incoming,
                    none => none.insert(Incoming::new(open.raw)?),
                };
                incoming.push(bytes)
            }
            Kind::Raw | Kind::Failed if self.text.len().saturating_add(left) > MAX_FAILURE => {
                Err(broken("a part is too long"))
            }
            Kind::Raw | Kind::Failed => {
                self.text.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Ends a part; returns the answer if it is complete.
    fn end(&mut self, index: usize, kind: Kind) -> Result<Option<Result<ReceivedTensor>>> {
        let text = std::mem::take(&mut self.text);
        match kind {
            Kind::More => return Ok(None),
            Kind::Raw => {
                let size = text.try_into().map_err(|_| broken("a size does not have eight bytes"))?;
                self.open(index)?.raw = usize::try_from(u64::from_be_bytes(size)).ok();
                return Ok(None);
            }
            Kind::Last | Kind::Failed => {}
        }
        let open = self.answers.get_mut(index).and_then(Option::take).unwrap_or_default();
        match (kind, open.incoming) {
            (Kind::Failed, _) => Ok(Some(Err(failure(&text)?))),
            (_, Some(incoming)) => Ok(Some(incoming.finish())),
            (_, None) => Err(broken("an answer is empty")),
        }
    }

    fn open(&mut self, index: usize) -> Result<&mut Open> {
        let open = self.answers.get_mut(index).and_then(Option::as_mut);
        open.ok_or_else(|| broken("a part names no open request"))
    }
}

fn failure(text: &[u8]) -> Result<Error> {
    let Some((code, [derived, message @ ..])) = text.split_first_chunk::<4>() else {
        return Err(broken("an error is incomplete"));
    };
    let mut error = Error::new(Code::from_number(i32::from_be_bytes(*code)), String::from_utf8_lossy(message));
    error.derived = *derived != 0;
    Ok(error)
}

fn broken(what: &str) -> Error {
    internal!("The answer to several RecvTensors cannot be read: {what}")
}
