//! Writing of checkpoints of the first format.

use super::reader::Meta;
use super::wire;
use crate::fs::FileSystems;
use crate::{TableBuilder, TensorSlice};
use status::{Result, internal};
use std::collections::BTreeMap;
use tensor::{Shape, Tensor};

/// Writes a checkpoint of the first format. All tensors are written to one file when it is finished.
pub struct TensorSliceWriter {
    systems: FileSystems,
    path: String,
    meta: Vec<Meta>,
    /// By key, in the order of the table. The elements are shared with the caller.
    parts: BTreeMap<Vec<u8>, (String, TensorSlice, Tensor)>,
}

impl TensorSliceWriter {
    /// Starts a checkpoint that will be named `path`.
    pub fn new(systems: &FileSystems, path: &str) -> TensorSliceWriter {
        let (systems, path) = (systems.clone(), path.to_string());
        TensorSliceWriter { systems, path, meta: Vec::new(), parts: BTreeMap::new() }
    }

    /// Adds a tensor.
    pub fn add(&mut self, name: &str, tensor: &Tensor) -> Result<()> {
        self.add_slice(name, &tensor.shape().clone(), &TensorSlice::full(tensor.shape().rank()), tensor)
    }

    /// Adds a slice of a tensor with the given shape.
    pub fn add_slice(&mut self, name: &str, shape: &Shape, slice: &TensorSlice, tensor: &Tensor) -> Result<()> {
        if shape.rank() != slice.rank() || slice.shape_in(shape)? != *tensor.shape() {
            return Err(internal!("Incompatible tensor shape and slice: shape = {shape}, slice = {slice}"));
        }
        wire::check_kind(tensor)?;
        let at = match self.meta.iter().position(|meta| meta.name == name) {
            Some(at) => at,
            None => {
                let (name, dtype, shape) = (name.to_string(), tensor.dtype(), shape.clone());
                self.meta.push(Meta { name, dtype, shape, slices: Vec::new() });
                self.meta.len() - 1
            }
        };
        let meta = &mut self.meta[at];
        if meta.shape != *shape {
            return Err(internal!(
                "Mismatching shapes: existing tensor = {}, trying to add name {name}, shape = {shape}",
                meta.shape
            ));
        }
        if meta.dtype != tensor.dtype() {
            return Err(internal!(
                "Mismatching types: existing type = {}, trying to add name {name}, type = {}",
                meta.dtype,
                tensor.dtype()
            ));
        }
        meta.slices.push(slice.clone());
        let part = (name.to_string(), slice.clone(), tensor.clone());
        self.parts.insert(slice.key(name.as_bytes()), part);
        Ok(())
    }

    /// Writes the file.
    pub fn finish(self) -> Result<()> {
        let mut table = TableBuilder::create(&self.systems, &self.path)?;
        table.add(b"", &wire::encode_meta(&self.meta))?;
        for (key, (name, slice, tensor)) in self.parts {
            table.add(&key, &wire::encode_data(&name, &slice, &tensor)?)?;
        }
        table.finish().map(drop)
    }
}
