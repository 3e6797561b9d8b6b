//! TFRecordDataset and TFRecordDatasetV2: the records of TensorFlow's record files.

use super::files::{FileName, Files, Format, Records, file_names, string_element};
use crate::Element;
use crate::attrs::{DATASET, dataset_kernel, scalar, string_scalar};
use io::{Compression, FileSystems, RecordReader};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use ops::checkpoint::systems;
use status::{Result, invalid};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "TFRecordDataset(filenames: string, compression_type: string, buffer_size: int64) -> handle: variant; \
              metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "TFRecordDatasetV2(filenames: string, compression_type: string, buffer_size: int64, byte_offsets: int64) \
              -> handle: variant; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, has_offsets) = (systems(setup)?, setup.input_types().len() > 3);
    dataset_kernel(setup, move |_, inputs| {
        let names = file_names(inputs, 0, "filenames")?;
        // Unknown names mean no compression, as in TensorFlow.
        let compression = Compression::from_name(&string_scalar(inputs, 1, "compression_type")?).unwrap_or_default();
        let buffer_size = match scalar(inputs, 2, "buffer_size")? {
            -1i64 => 0, // not chosen
            size => usize::try_from(size).map_err(|_| invalid!("`buffer_size` must be >= 0 (0 == no buffering)"))?,
        };
        let offsets = if has_offsets { byte_offsets(inputs, names.len())? } else { Vec::new() };
        let kind = if has_offsets { "TFRecordV2" } else { "TFRecord" };
        Ok(Files::new(kind, names, TfRecords { compression, buffer_size, offsets }, systems.clone()))
    })
}

/// Where reading begins in each file; empty for the beginning.
fn byte_offsets(inputs: &Inputs, files: usize) -> Result<Vec<u64>> {
    let offsets = inputs.look(3)?;
    if offsets.shape().rank() > 1 {
        return Err(invalid!("`byte_offsets` must be a scalar or a vector."));
    }
    let same_rank = offsets.shape().rank() == inputs.look(0)?.shape().rank();
    let offsets: Vec<u64> = offsets.values::<i64>()?.iter().map(|&offset| offset as u64).collect();
    if !same_rank || !offsets.is_empty() && offsets.len() < files {
        return Err(invalid!("`byte_offsets` must be of same size as `filenames`"));
    }
    Ok(offsets)
}

struct TfRecords {
    compression: Compression,
    buffer_size: usize,
    offsets: Vec<u64>,
}

impl Format for TfRecords {
    type Reader = RecordReader;
    const POSITION: &'static str = "offset";
    const ENDS_AFTER_ERROR: bool = true;

    fn open(&self, systems: &FileSystems, file: &FileName<'_>, position: Option<u64>) -> Result<RecordReader> {
        let position = position.or_else(|| self.offsets.get(file.index).copied()).unwrap_or(0);
        RecordReader::open_with(systems, file.name, self.compression, self.buffer_size, position)
    }
}

impl Records for RecordReader {
    fn next(&mut self) -> Result<Option<Element>> {
        Ok(self.read()?.map(string_element))
    }

    fn position(&self) -> u64 {
        self.offset()
    }
}
