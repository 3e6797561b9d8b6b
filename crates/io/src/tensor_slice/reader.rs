//! Reading of checkpoints of the first format.

use super::wire;
use crate::bundle::copy_part;
use crate::fs::{FileSystems, data_loss};
use crate::{Table, TensorSlice, slice};
use status::{Error, Result, internal, invalid, not_found};
use std::collections::BTreeMap;
use tensor::{DType, Shape, Tensor};

/// A checkpoint of the first format that is open for reading: one file, or several that match a pattern.
pub struct TensorSliceReader {
    tables: Vec<Table>,
    tensors: BTreeMap<String, SlicedTensor>,
    pattern: String,
}

/// The entry of a tensor in a checkpoint of the first format.
#[derive(Clone, Debug)]
pub struct SlicedTensor {
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// The slices that are stored.
    pub slices: Vec<TensorSlice>,
    /// The file of each slice.
    files: Vec<usize>,
}

/// The header of a file: name, type, shape and slices of each tensor.
pub(super) struct Meta {
    pub name: String,
    pub dtype: DType,
    pub shape: Shape,
    pub slices: Vec<TensorSlice>,
}

impl TensorSliceReader {
    /// Opens the files whose names match a pattern.
    pub fn open(systems: &FileSystems, pattern: &str) -> Result<TensorSliceReader> {
        const FAILED: &str = "Unsuccessful TensorSliceReader constructor: Failed to";
        let files =
            systems.glob(pattern).map_err(|error| invalid!("{FAILED} get matching files on {pattern}: {error}"))?;
        if files.is_empty() {
            return Err(not_found!("{FAILED} find any matching files for {pattern}"));
        }
        let pattern = pattern.to_string();
        let mut reader = TensorSliceReader { tables: Vec::new(), tensors: BTreeMap::new(), pattern };
        for file in files {
            reader.load(systems, &file)?;
        }
        Ok(reader)
    }

    fn load(&mut self, systems: &FileSystems, file: &str) -> Result<()> {
        let table = Table::open(systems, file).map_err(|error| unreadable(file, error))?;
        let meta = table.get(b"").map_err(|error| unreadable(file, error))?;
        let Some(meta) = meta.and_then(|bytes| wire::decode_meta(bytes).transpose()) else {
            return Err(internal!(
                "Failed to find the saved tensor slices at the beginning of the checkpoint file: {file}"
            ));
        };
        for tensor in meta? {
            self.register(tensor)?;
        }
        self.tables.push(table);
        Ok(())
    }

    fn register(&mut self, meta: Meta) -> Result<()> {
        let Meta { name, dtype, shape, slices } = meta;
        let file = self.tables.len();
        let fresh = SlicedTensor { dtype, shape: shape.clone(), slices: Vec::new(), files: Vec::new() };
        let known = self.tensors.entry(name.clone()).or_insert(fresh);
        if known.shape != shape {
            return Err(internal!(
                "Incompatible tensor shapes detected for tensor {name}: existing = {}, new = {shape}",
                known.shape
            ));
        }
        if known.dtype != dtype {
            return Err(internal!(
                "Incompatible tensor types detected for tensor {name}: existing = {}, new = {dtype}",
                known.dtype
            ));
        }
        for slice in slices {
            slice.shape_in(&shape)?;
            known.slices.push(slice);
            known.files.push(file);
        }
        Ok(())
    }

    /// All tensors by name, in order.
    pub fn tensors(&self) -> &BTreeMap<String, SlicedTensor> {
        &self.tensors
    }

    /// The entry of a tensor.
    pub fn tensor(&self, name: &str) -> Result<&SlicedTensor> {
        let missing = || not_found!("Tensor name \"{name}\" not found in checkpoint files {}", self.pattern);
        self.tensors.get(name).ok_or_else(missing)
    }

    /// Reads a tensor.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let rank = self.tensor(name)?.shape.rank();
        self.read_slice(name, &TensorSlice::full(rank))
    }

    /// Reads a slice of a tensor.
    pub fn read_slice(&self, name: &str, wanted: &TensorSlice) -> Result<Tensor> {
        let tensor = self.tensor(name)?;
        let shape = wanted.shape_in(&tensor.shape)?;
        let incomplete = || invalid!("Error copying slice data");
        let parts = slice::cover(&tensor.shape, &tensor.slices, wanted)?.ok_or_else(incomplete)?;
        // All parts are read before the result is allocated: a file cannot request more memory than it has data.
        let values = parts.iter().map(|part| self.part(name, tensor, part)).collect::<Result<Vec<_>>>()?;
        if let ([part], [value]) = (&parts[..], &values[..])
            && *part == wanted
        {
            return Ok(value.clone());
        }
        let mut result = Tensor::zeros_of(tensor.dtype, shape)?;
        for (part, value) in parts.iter().zip(&values) {
            copy_part(&tensor.shape, part, wanted, value, &mut result)?;
        }
        Ok(result)
    }

    fn part(&self, name: &str, tensor: &SlicedTensor, part: &TensorSlice) -> Result<Tensor> {
        let at = tensor.slices.iter().position(|slice| slice == part).expect("it is one of them");
        let stored = self.tables[tensor.files[at]].get(&part.key(name.as_bytes()))?;
        let stored = stored.ok_or_else(|| invalid!("Error copying slice data"))?;
        wire::decode_data(stored, tensor.dtype, part.shape_in(&tensor.shape)?)
    }
}

fn unreadable(file: &str, error: Error) -> Error {
    data_loss(format!(
        "Unable to open table file {file}: {error}: perhaps your file is in a different file format and you need to use \
         a different restore operator?"
    ))
}
