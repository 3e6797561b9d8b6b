//! Writes checkpoints.

use super::present::{Present, write_empty};
use super::{Entry, Header, Watch, data_path, index_path, values, wire};
use crate::fs::{FileSystems, Pending, path};
use crate::{TableBuilder, TensorSlice, crc};
use status::{Result, internal, invalid};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use tensor::{DType, Shape, Tensor};

/// Writes a checkpoint, tensor by tensor, straight into its file. It becomes visible when it is finished; dropped before,
/// it leaves nothing behind. A checkpoint that has its name stays whole until then.
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
    /// Begins a checkpoint whose files begin with `prefix`; its folder is made if it is missing.
    pub fn create(systems: &FileSystems, prefix: &str) -> Result<BundleWriter> {
        systems.create_dirs(path::dirname(prefix))?;
        let present = Present::of(systems, prefix)?;
        let shards = present.shards_beside(1);
        let data = Pending::begin(systems, &data_path(prefix, 0, shards))?;
        let (systems, prefix, entries) = (systems.clone(), prefix.to_string(), BTreeMap::new());
        Ok(BundleWriter { systems, prefix, present, shards, data, offset: 0, entries, begun: None, watch: None })
    }

    /// The same, which tells how far it is.
    pub fn watched(self, watch: Watch) -> BundleWriter {
        BundleWriter { watch: Some(watch), ..self }
    }

    /// Adds a tensor.
    pub fn add(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        let key = self.key(name, None, tensor.dtype(), tensor.shape())?;
        self.write(key, tensor)
    }

    /// Adds a part of a tensor of that shape; other parts follow, here or in checkpoints that will be merged with this.
    pub fn add_slice(&mut self, name: &str, shape: &Shape, slice: &TensorSlice, tensor: &Tensor) -> Result<()> {
        let key = self.key(name, Some((shape, slice)), tensor.dtype(), tensor.shape())?;
        self.write(key, tensor)
    }

    /// Begins a tensor of plain elements, of which nobody has all: its bytes follow in pieces. `part` says of which
    /// whole it is a slice.
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

    /// Adds the next bytes of the tensor that was begun.
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

    /// Ends the tensor that was begun: all its bytes are there.
    pub fn end(&mut self) -> Result<()> {
        let Some(begun) = self.begun.take() else { return Err(internal!("no tensor was begun")) };
        let Begun { key, dtype, shape, size, crc } = begun;
        let expected = shape.checked_elements()?.checked_mul(dtype.size()).map(|size| size as u64);
        if expected != Some(size) {
            return Err(internal!("{size} bytes came of a tensor of type {dtype} and shape {shape}"));
        }
        self.enter(key, dtype, shape, (size, crc));
        Ok(())
    }

    /// The key of a tensor, or of the slice that it is of another, which nothing has yet.
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

    /// Notes a slice in the entry of the whole tensor.
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

    /// Notes what was written, with its size and checksum, at the end of the file.
    fn enter(&mut self, key: Vec<u8>, dtype: DType, shape: Shape, (size, sum): (u64, u32)) {
        let offset = self.offset;
        self.entries
            .insert(key, Entry { dtype, shape, shard: 0, offset, size, crc: crc::mask(sum), slices: Vec::new() });
        self.offset += size;
    }

    /// Completes the checkpoint: first the tensors get their name, then the index that makes them one.
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
        return Err(invalid!("No tensor of a checkpoint can be called {name:?}"));
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
