//! Writes checkpoints.

use super::{Entry, Header, data_path, index_path, values, wire};
use crate::fs::{FileSystems, Pending, path};
use crate::{TableBuilder, TensorSlice, crc};
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use tensor::{Shape, Tensor};

/// Writes a checkpoint, tensor by tensor, straight into its file. Nobody sees it before it is finished; dropped before,
/// it leaves nothing behind.
pub struct BundleWriter {
    systems: FileSystems,
    prefix: String,
    data: Pending,
    offset: u64,
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl BundleWriter {
    /// Begins a checkpoint whose files begin with `prefix`; its folder is made if it is missing.
    pub fn create(systems: &FileSystems, prefix: &str) -> Result<BundleWriter> {
        systems.create_dirs(path::dirname(prefix))?;
        let data = Pending::begin(systems, &data_path(prefix, 0, 1))?;
        let (systems, prefix) = (systems.clone(), prefix.to_string());
        Ok(BundleWriter { systems, prefix, data, offset: 0, entries: BTreeMap::new() })
    }

    /// Adds a tensor.
    pub fn add(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        if name.is_empty() || name.starts_with('\0') {
            return Err(invalid!("No tensor of a checkpoint can be called {name:?}"));
        }
        self.write(name.as_bytes().to_vec(), name, tensor)
    }

    /// Adds a part of a tensor of that shape; other parts follow, here or in checkpoints that will be merged with this.
    pub fn add_slice(&mut self, name: &str, shape: &Shape, slice: &TensorSlice, tensor: &Tensor) -> Result<()> {
        let part = slice.shape_in(shape)?;
        if part != *tensor.shape() {
            return Err(invalid!(
                "Slice in shape_and_slice specification does not match the shape of the tensor to  save: {slice} of \
                 {shape}, tensor: {}",
                tensor.shape()
            ));
        }
        if slice.covers(shape) {
            return self.add(name, tensor);
        }
        self.note_slice(name, shape, slice, tensor)?;
        self.write(slice.key(name.as_bytes()), name, tensor)
    }

    /// Notes a slice in the entry of the whole tensor.
    fn note_slice(&mut self, name: &str, shape: &Shape, slice: &TensorSlice, tensor: &Tensor) -> Result<()> {
        let fresh = Entry {
            dtype: tensor.dtype(),
            shape: shape.clone(),
            shard: 0,
            offset: 0,
            size: 0,
            crc: 0,
            slices: Vec::new(),
        };
        let whole = match self.entries.entry(name.as_bytes().to_vec()) {
            Slot::Vacant(slot) => slot.insert(fresh),
            Slot::Occupied(slot) if slot.get().slices.is_empty() => {
                return Err(invalid!("Adding duplicate key: {name}"));
            }
            Slot::Occupied(slot) => slot.into_mut(),
        };
        if whole.dtype != tensor.dtype() || whole.shape != *shape {
            return Err(invalid!(
                "Slice {slice} of {name} belongs to a tensor of type {} and shape {shape}, not of type {} and shape {}",
                tensor.dtype(),
                whole.dtype,
                whole.shape
            ));
        }
        whole.slices.push(slice.clone());
        Ok(())
    }

    fn write(&mut self, key: Vec<u8>, name: &str, tensor: &Tensor) -> Result<()> {
        if self.entries.contains_key(&key) {
            return Err(invalid!("Adding duplicate key: {name}"));
        }
        let (size, sum) = values::write(tensor, &mut self.data)?;
        let (dtype, shape, offset) = (tensor.dtype(), tensor.shape().clone(), self.offset);
        let entry = Entry { dtype, shape, shard: 0, offset, size, crc: crc::mask(sum), slices: Vec::new() };
        self.entries.insert(key, entry);
        self.offset += size;
        Ok(())
    }

    /// Completes the checkpoint: first the tensors get their name, then the index that makes them one.
    pub fn finish(self) -> Result<()> {
        self.data.finish()?;
        write_index(&self.systems, &self.prefix, &Header::ours(1), &self.entries)
    }
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
