//! Several answers of RecvTensor in one body: chunks that say to which of them they belong.
//!
//! Only tasks of ours speak this. A chunk is a message of gRPC: eight bytes for its place and kind, then bytes of an answer,
//! which all together are those it would have alone.

use super::transfer::{Incoming, Outgoing, PREFIX, Received};
use bytes::{Bytes, BytesMut};
use status::{Code, Error, Result, internal};

/// Bytes before each chunk: the prefix of a message, its place among those that were asked for, its kind.
const HEADER: usize = PREFIX + OWN;
const OWN: usize = 8;
/// An error's text is shorter.
const MAX_FAILURE: usize = 1 << 20;

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes of an answer.
    More = 0,
    /// The last of them.
    Last = 1,
    /// How many bytes of raw content follow the first message of an answer.
    Raw = 2,
    /// A code, whether it is derived, and a text: there is no answer.
    Failed = 3,
}

fn header(place: usize, kind: Kind, len: usize) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[1..PREFIX].copy_from_slice(&((OWN + len) as u32).to_be_bytes());
    bytes[PREFIX..PREFIX + 4].copy_from_slice(&(place as u32).to_be_bytes());
    bytes[PREFIX + 4] = kind as u8;
    bytes
}

fn parse(bytes: &[u8; HEADER]) -> Option<(usize, Kind, usize)> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes[at..at + 4].try_into().ok()?) as usize);
    let kinds = [Kind::More, Kind::Last, Kind::Raw, Kind::Failed];
    let kind = kinds.into_iter().find(|&kind| kind as u8 == bytes[PREFIX + 4]).filter(|_| bytes[0] == 0)?;
    Some((number(PREFIX)?, kind, number(1)?.checked_sub(OWN)?))
}

/// Bytes of an answer as a chunk, no more of them than a message holds; the first piece is copied behind the header, so it
/// should be short.
pub(crate) fn chunk(place: usize, kind: Kind, pieces: Vec<Bytes>) -> Vec<Bytes> {
    let len = pieces.iter().map(Bytes::len).sum();
    let mut pieces = pieces.into_iter();
    let first = pieces.next().unwrap_or_default();
    let mut start = BytesMut::with_capacity(HEADER + first.len());
    start.extend_from_slice(&header(place, kind, len));
    start.extend_from_slice(&first);
    std::iter::once(start.freeze()).chain(pieces).collect()
}

/// A whole answer.
pub(crate) fn whole(place: usize, outgoing: Outgoing) -> Vec<Bytes> {
    let Some(size) = outgoing.raw else { return chunk(place, Kind::Last, outgoing.pieces) };
    let parts = outgoing.pieces.into_iter().flat_map(|piece| chunk(place, Kind::More, vec![Bytes::new(), piece]));
    std::iter::once(raw(place, size)).chain(parts).chain(chunk(place, Kind::Last, Vec::new())).collect()
}

/// The size of raw content that follows.
pub(crate) fn raw(place: usize, size: usize) -> Bytes {
    chunk(place, Kind::Raw, vec![Bytes::copy_from_slice(&(size as u64).to_be_bytes())]).concat().into()
}

/// There is no answer.
pub(crate) fn failed(place: usize, error: &Error) -> Bytes {
    let mut text = (error.code as i32).to_be_bytes().to_vec();
    text.push(error.derived as u8);
    let end = (0..=error.message.len().min(MAX_FAILURE / 2)).rev().find(|&end| error.message.is_char_boundary(end));
    text.extend_from_slice(&error.message.as_bytes()[..end.unwrap_or(0)]);
    chunk(place, Kind::Failed, vec![text.into()]).concat().into()
}

/// Several answers under way.
pub(crate) struct Reader {
    answers: Vec<Option<Open>>,
    header: Vec<u8>,
    /// Place and kind of the present chunk, and what is still to come of it.
    present: Option<(usize, Kind, usize)>,
    /// What has come of a chunk that is read as a whole.
    text: Vec<u8>,
}

/// An answer of which some may have come.
#[derive(Default)]
struct Open {
    raw: Option<usize>,
    incoming: Option<Incoming>,
}

impl Reader {
    /// So many answers were asked for.
    pub fn new(count: usize) -> Reader {
        let answers = (0..count).map(|_| Some(Open::default())).collect();
        Reader { answers, header: Vec::new(), present: None, text: Vec::new() }
    }

    /// Takes the next bytes; `done` gets the answers that end in them, by their place.
    pub fn push(&mut self, mut bytes: &[u8], mut done: impl FnMut(usize, Result<Received>)) -> Result<()> {
        loop {
            let Some((place, kind, left)) = self.present else {
                let (now, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
                self.header.extend_from_slice(now);
                bytes = rest;
                let Ok(header) = self.header.as_slice().try_into() else { return Ok(()) };
                self.present = Some(parse(header).ok_or_else(|| broken("it is no chunk"))?);
                self.header.clear();
                continue;
            };
            let (now, rest) = bytes.split_at(bytes.len().min(left));
            bytes = rest;
            self.take(place, kind, now, left)?;
            if now.len() < left {
                self.present = Some((place, kind, left - now.len()));
                return Ok(());
            }
            self.present = None;
            if let Some(answer) = self.end(place, kind)? {
                done(place, answer);
            }
        }
    }

    /// Takes bytes of a chunk.
    fn take(&mut self, place: usize, kind: Kind, bytes: &[u8], left: usize) -> Result<()> {
        let open = self.open(place)?;
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
                Err(broken("a chunk is too long"))
            }
            Kind::Raw | Kind::Failed => {
                self.text.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// A chunk is here as a whole; gives the answer if that was its last.
    fn end(&mut self, place: usize, kind: Kind) -> Result<Option<Result<Received>>> {
        let text = std::mem::take(&mut self.text);
        match kind {
            Kind::More => return Ok(None),
            Kind::Raw => {
                let size = text.try_into().map_err(|_| broken("a size is no number"))?;
                self.open(place)?.raw = usize::try_from(u64::from_be_bytes(size)).ok();
                return Ok(None);
            }
            Kind::Last | Kind::Failed => {}
        }
        let open = self.answers.get_mut(place).and_then(Option::take).unwrap_or_default();
        match (kind, open.incoming) {
            (Kind::Failed, _) => Ok(Some(Err(failure(&text)?))),
            (_, Some(incoming)) => Ok(Some(incoming.finish())),
            (_, None) => Err(broken("an answer is empty")),
        }
    }

    fn open(&mut self, place: usize) -> Result<&mut Open> {
        let open = self.answers.get_mut(place).and_then(Option::as_mut);
        open.ok_or_else(|| broken("a chunk belongs to nothing that was asked for"))
    }
}

fn failure(text: &[u8]) -> Result<Error> {
    let Some((code, [derived, message @ ..])) = text.split_first_chunk::<4>() else {
        return Err(broken("an error is cut off"));
    };
    let mut error = Error::new(Code::from_number(i32::from_be_bytes(*code)), String::from_utf8_lossy(message));
    error.derived = *derived != 0;
    Ok(error)
}

fn broken(what: &str) -> Error {
    internal!("The answer to several RecvTensors cannot be read: {what}")
}
