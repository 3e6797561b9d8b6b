//! Tensors of checkpoints that are read on demand.

use io::slice::parse_shape_and_slice;
use io::{Bundle, TensorSlice};
use op::{Spawn, Stored, TensorStream};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, Shape, Tensor};

/// A tensor of a checkpoint, or a slice of it.
pub(super) struct StoredTensor {
    bundle: Arc<Bundle>,
    name: String,
    slice: Option<TensorSlice>,
    dtype: DType,
    shape: Shape,
    /// The name of the node that restores it, for messages.
    node: String,
}

impl StoredTensor {
    /// Finds a tensor and the files that it is in; an empty slice means all of it.
    pub fn find(bundle: &Arc<Bundle>, name: &str, slice: &str, node: &str) -> Result<StoredTensor> {
        let entry = bundle.entry(name)?;
        let (shape, slice) = match slice {
            "" => (entry.shape.clone(), None),
            text => {
                let (shape, slice, part) = parse_shape_and_slice(text)?;
                if shape != entry.shape {
                    return Err(invalid!(
                        "tensor_name = {name}; shape in shape_and_slice spec {shape} does not match the shape stored \
                         in checkpoint: {}",
                        entry.shape
                    ));
                }
                (part, Some(slice))
            }
        };
        bundle.pieces(name, slice.as_ref())?;
        let (dtype, name, node) = (entry.dtype, name.to_string(), node.to_string());
        Ok(StoredTensor { bundle: bundle.clone(), name, slice, dtype, shape, node })
    }
}

impl Stored for StoredTensor {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn read(&self) -> Result<Tensor> {
        let read = match &self.slice {
            None => self.bundle.read(&self.name),
            Some(slice) => self.bundle.read_slice(&self.name, slice),
        };
        read.map_err(|error| error.at_node(&self.node))
    }

    fn stream(&self, spawn: Spawn) -> Option<TensorStream> {
        let mut pieces = self.bundle.pieces(&self.name, self.slice.as_ref()).ok()??;
        let node = self.node.clone();
        let read = move || pieces.next_piece().map_err(|error| error.at_node(&node));
        Some(TensorStream::from_reads(self.dtype, self.shape.clone(), spawn, read))
    }
}

/// A tensor that has been read already.
pub(super) struct InMemory(pub Tensor);

impl Stored for InMemory {
    fn dtype(&self) -> DType {
        self.0.dtype()
    }

    fn shape(&self) -> &Shape {
        self.0.shape()
    }

    fn read(&self) -> Result<Tensor> {
        Ok(self.0.clone())
    }

    fn stream(&self, _: Spawn) -> Option<TensorStream> {
        None
    }
}
