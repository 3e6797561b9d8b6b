//! Writing of checkpoints.

use super::present::{Present, write_empty};
use super::{Entry, Header, Watch, data_path, index_path, values, wire};
use crate::fs::{FileSystems, Pending, path};
use crate::{TableBuilder, TensorSlice, crc};
use status::{Result, internal, invalid};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use tensor::{DType, Shape, Tensor};

/// Writes a checkpoint, one tensor after another, directly to its file. The checkpoint becomes visible when it is
/// finished; a writer that is dropped before leaves no files. An existing checkpoint of the same name stays complete
/// until then.
pub struct BundleWriter {
    systems: FileSystems,
    prefix: String,
    present: Present,
    shards: u32,
    data: Pending,
    offset: u64,
    entries: BTreeMap<Vec<u8>, Entry>,
    begun: Option<Begun>,
    watch: Option<Watch>,
}

/// A tensor whose bytes are being written.
struct Begun {
    key: Vec<u8>,
    dtype: DType,
    shape: Shape,
    size: u64,
    crc: u32,
}

impl BundleWriter {
    /// Starts a checkpoint with this prefix. Its folder is created if only the last part of its name does not exist.
    pub fn create(systems: &FileSystems, prefix: &str) -> Result<BundleWriter> {
        systems.create_dir(path::dirname(prefix))?;
        let present = Present::of(systems, prefix)?;
        let shards = present.shards_beside(1);
        let data = Pending::begin(systems, &data_path(prefix, 0, shards))?;
        let (systems, prefix, entries) = (systems.clone(), prefix.to_string(), BTreeMap::new());
        Ok(BundleWriter { systems, prefix, present, shards, data, offset: 0, entries, begun: None, watch: None })
    }

    /// The same writer, which reports its progress.
    pub fn watched(self, watch: Watch) -> BundleWriter {
        BundleWriter { watch: Some(watch), ..self }
    }

    /// Adds a tensor.
    pub fn add(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        let key = self.key(name, None, tensor.dtype(), tensor.shape())?;
        self.write(key, tensor)
    }

    /// Adds a slice of a tensor with the given shape. The other slices are added here, or to checkpoints that are
    /// merged with this one.
    pub fn add_slice(&mut self, name: &str, shape: &Shape, slice: &TensorSlice, tensor: &Tensor) -> Result<()> {
        let key = self.key(name, Some((shape, slice)), tensor.dtype(), tensor.shape())?;
        self.write(key, tensor)
    }

    /// Starts a plain tensor whose bytes are added in pieces, so that it is never in memory as a whole. `part` gives
    /// the shape and the slice if it is a slice of a larger tensor.
    pub fn begin(
        &mut self,
        name: &str,
        part: Option<(&Shape, &TensorSlice)>,
        dtype: DType,
        shape: &Shape,
    ) -> Result<()> {
        let key = self.key(name, part, dtype, shape)?;
        self.begun = Some(Begun { key, dtype, shape: shape.clone(), size: 0, crc: 0 });
        Ok(())
    }

    /// Adds the next bytes of the tensor that was started.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(begun) = &mut self.begun else { return Err(internal!("no tensor was begun")) };
        begun.crc = crc32c::crc32c_append(begun.crc, bytes);
        begun.size += bytes.len() as u64;
        self.data.append(bytes)?;
        if let Some(watch) = &self.watch {
            watch(bytes.len() as u64);
        }
        Ok(())
    }

    /// Finishes the tensor that was started: all its bytes were added.
    pub fn end(&mut self) -> Result<()> {
        let Some(begun) = self.begun.take() else { return Err(internal!("no tensor was begun")) };
        let Begun { key, dtype, shape, size, crc } = begun;
        let expected = shape.checked_elements()?.checked_mul(dtype.size()).map(|size| size as u64);
        if expected != Some(size) {
            return Err(internal!("{size} bytes do not match dtype {dtype} and shape {shape}"));
        }
        self.enter(key, dtype, shape, (size, crc));
        Ok(())
    }

    /// The key of a tensor, or of a slice of one, which must be new.
    fn key(
        &mut self,
        name: &str,
        part: Option<(&Shape, &TensorSlice)>,
        dtype: DType,
        found: &Shape,
    ) -> Result<Vec<u8>> {
        let key = match part {
            None => name_key(name)?,
            Some((shape, slice)) => {
                if slice.shape_in(shape)? != *found {
                    return Err(invalid!(
                        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: \
                         {slice} of {shape}, tensor: {found}"
                    ));
                }
                match slice.covers(shape) {
                    true => name_key(name)?,
                    false => {
                        self.note_slice(name, shape, slice, dtype)?;
                        slice.key(name.as_bytes())
                    }
                }
            }
        };
        if self.entries.contains_key(&key) {
            return Err(invalid!("Adding duplicate key: {name}"));
        }
        Ok(key)
    }

    /// Adds a slice to the entry of the whole tensor.
    fn note_slice(&mut self, name: &str, shape: &Shape, slice: &TensorSlice, dtype: DType) -> Result<()> {
        let fresh = Entry { dtype, shape: shape.clone(), shard: 0, offset: 0, size: 0, crc: 0, slices: Vec::new() };
        let whole = match self.entries.entry(name.as_bytes().to_vec()) {
            Slot::Vacant(slot) => slot.insert(fresh),
            Slot::Occupied(slot) if slot.get().slices.is_empty() => {
                return Err(invalid!("Adding duplicate key: {name}"));
            }
            Slot::Occupied(slot) => slot.into_mut(),
        };
        if whole.dtype != dtype || whole.shape != *shape {
            return Err(invalid!(
                "Slice {slice} of {name} belongs to a tensor of type {dtype} and shape {shape}, not of type {} and \
                 shape {}",
                whole.dtype,
                whole.shape
            ));
        }
        whole.slices.push(slice.clone());
        Ok(())
    }

    fn write(&mut self, key: Vec<u8>, tensor: &Tensor) -> Result<()> {
        let written = values::write(tensor, &mut self.data, self.watch.as_ref())?;
        self.enter(key, tensor.dtype(), tensor.shape().clone(), written);
        Ok(())
    }

    /// Adds the entry of the data that was written at the end of the file.
    fn enter(&mut self, key: Vec<u8>, dtype: DType, shape: Shape, (size, sum): (u64, u32)) {
        let offset = self.offset;
        self.entries
            .insert(key, Entry { dtype, shape, shard: 0, offset, size, crc: crc::mask(sum), slices: Vec::new() });
        self.offset += size;
    }

    /// Completes the checkpoint: the data files get their names first, then the index, which makes them valid.
    pub fn finish(self) -> Result<()> {
        let BundleWriter { systems, prefix, present, shards, data, entries, .. } = self;
        data.finish()?;
        write_empty(&systems, &prefix, 1, shards)?;
        write_index(&systems, &prefix, &Header::ours(shards), &entries)?;
        present.clear(&systems, &prefix);
        Ok(())
    }
}

fn name_key(name: &str) -> Result<Vec<u8>> {
    if name.is_empty() || name.starts_with('\0') {
        return Err(invalid!("Invalid name of a tensor in a checkpoint: {name:?}"));
    }
    Ok(name.as_bytes().to_vec())
}

/// Writes the index of a checkpoint.
pub(super) fn write_index(
    systems: &FileSystems,
    prefix: &str,
    header: &Header,
    entries: &BTreeMap<Vec<u8>, Entry>,
) -> Result<()> {
    let mut table = TableBuilder::create(systems, &index_path(prefix))?;
    table.add(b"", &wire::encode_header(header))?;
    for (key, entry) in entries {
        table.add(key, &wire::encode_entry(entry))?;
    }
    table.finish().map(drop)
}
