//! Writes an object: small ones in one request, large ones as a multipart upload that runs while more is written.

use super::place::Place;
use io::fs::WritableFile;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use status::{Code, Error, Result};
use std::collections::VecDeque;
use std::sync::mpsc::Receiver;

/// An object that is being written. `flush` and `close` publish its content atomically; what was written since is
/// discarded if it is dropped before.
pub(super) struct ObjectWriter {
    place: Place,
    /// Bytes of the published object that precede the upload and the buffer.
    kept: u64,
    upload: Option<Upload>,
    /// Bytes not uploaded yet; everything, while that is less than a part.
    buffer: Vec<u8>,
    /// True if the published content differs from what was written.
    changed: bool,
    /// The error that prevents completion.
    failure: Option<Error>,
}

struct Upload {
    inner: Box<dyn MultipartUpload>,
    parts: usize,
    bytes: u64,
    running: VecDeque<Receiver<object_store::Result<()>>>,
}

impl ObjectWriter {
    /// Replaces an existing object.
    pub fn create(place: Place) -> ObjectWriter {
        ObjectWriter { place, kept: 0, upload: None, buffer: Vec::new(), changed: true, failure: None }
    }

    /// Appends to an existing object of `size` bytes.
    pub fn after(place: Place, size: u64) -> Result<ObjectWriter> {
        let mut writer = ObjectWriter::create(place);
        writer.changed = false;
        match size < writer.part() as u64 {
            true if size == 0 => {}
            true => writer.buffer = writer.read(0..size)?,
            false => writer.kept = size,
        }
        Ok(writer)
    }

    fn read(&self, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
        let bytes = self.place.wait(|store, key| async move { store.get_range(&key, range).await })?;
        Ok(bytes.into())
    }

    /// How long the next part is.
    fn part(&self) -> usize {
        let sizes = &self.place.shared.sizes;
        let parts = self.upload.as_ref().map_or(0, |upload| upload.parts);
        if parts < sizes.short_parts { sizes.part } else { sizes.long_part }
    }

    fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.changed |= !bytes.is_empty();
        while !bytes.is_empty() {
            let room = self.part().saturating_sub(self.buffer.len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            self.send_full_parts()?;
        }
        Ok(())
    }

    fn send_full_parts(&mut self) -> Result<()> {
        while self.buffer.len() >= self.part() {
            self.begin_upload()?;
            let rest = self.buffer.split_off(self.part().min(self.buffer.len()));
            let part = std::mem::replace(&mut self.buffer, rest);
            self.send(part)?;
        }
        Ok(())
    }

    /// Starts a multipart upload, with the bytes to preserve as its beginning.
    fn begin_upload(&mut self) -> Result<()> {
        if self.upload.is_some() {
            return Ok(());
        }
        let inner = self.place.wait(|store, key| async move { store.put_multipart(&key).await })?;
        self.upload = Some(Upload { inner, parts: 0, bytes: 0, running: VecDeque::new() });
        let (kept, mut at) = (std::mem::take(&mut self.kept), 0);
        while at < kept {
            let end = (at + self.part() as u64).min(kept);
            let mut piece = self.read(at..end)?;
            at = end;
            match piece.len() < self.part() {
                true => {
                    piece.append(&mut self.buffer);
                    self.buffer = piece;
                }
                false => self.send(piece)?,
            }
        }
        Ok(())
    }

    fn send(&mut self, part: Vec<u8>) -> Result<()> {
        let parallel = self.place.shared.sizes.parallel;
        let Some(upload) = &mut self.upload else { return Ok(()) };
        if upload.running.len() >= parallel
            && let Some(first) = upload.running.pop_front()
        {
            self.place.answer(&first)?;
        }
        upload.bytes += part.len() as u64;
        let sent = upload.inner.put_part(PutPayload::from(part));
        upload.parts += 1;
        upload.running.push_back(self.place.begin(sent)?);
        Ok(())
    }

    /// Publishes everything written so far.
    fn publish(&mut self) -> Result<()> {
        if !self.changed {
            return Ok(());
        }
        if self.upload.is_none() && self.kept == 0 {
            let whole = PutPayload::from(self.buffer.clone());
            self.place.wait(|store, key| async move { store.put(&key, whole).await })?;
        } else {
            self.complete()?;
        }
        self.changed = false;
        Ok(())
    }

    fn complete(&mut self) -> Result<()> {
        self.begin_upload()?;
        self.send_full_parts()?;
        let rest = std::mem::take(&mut self.buffer);
        if !rest.is_empty() {
            self.send(rest)?;
        }
        let Some(upload) = &mut self.upload else { return Ok(()) };
        while let Some(first) = upload.running.pop_front() {
            self.place.answer(&first)?;
        }
        let Some(Upload { mut inner, bytes, .. }) = self.upload.take() else { return Ok(()) };
        let (completed, inner) = self.place.shared.threads.wait(async move { (inner.complete().await, inner) })?;
        if let Err(error) = completed {
            self.upload = Some(Upload { inner, parts: 0, bytes: 0, running: VecDeque::new() });
            return Err(self.place.failed(&error));
        }
        self.kept = bytes;
        Ok(())
    }

    /// Runs `work` unless an earlier call failed; a failure is permanent.
    fn once(&mut self, work: impl FnOnce(&mut ObjectWriter) -> Result<()>) -> Result<()> {
        if let Some(error) = &self.failure {
            return Err(error.clone());
        }
        work(self).inspect_err(|error| self.failure = Some(error.clone()))
    }
}

impl WritableFile for ObjectWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.once(|writer| writer.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.once(ObjectWriter::publish)
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.flush()
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        let Some(Upload { mut inner, running, .. }) = self.upload.take() else { return };
        // A store that does not respond cannot receive the request to abort either.
        let silent = |error: &Error| matches!(error.code, Code::Unavailable | Code::DeadlineExceeded);
        if self.failure.as_ref().is_some_and(silent) {
            return;
        }
        running.iter().for_each(|part| drop(self.place.answer(part)));
        let _ = self.place.shared.threads.wait(async move { drop(inner.abort().await) });
    }
}
