//! Elements in record files: one record for each component.

use crate::fs::{FileSystems, data_loss};
use crate::{Compression, RecordReader, RecordWriter};
use status::Result;
use tensor::Tensor;
use tensor::wire::{tensor_from_bytes, tensor_to_bytes};

/// Appends elements to a file.
pub struct ElementWriter(RecordWriter);

impl ElementWriter {
    /// Opens a file for appending, or creates it.
    pub fn append(systems: &FileSystems, path: &str, compression: Compression) -> Result<ElementWriter> {
        Ok(ElementWriter(RecordWriter::new(systems.append(path)?, compression)))
    }

    /// Writes an element.
    pub fn write(&mut self, element: &[Tensor]) -> Result<()> {
        element.iter().try_for_each(|component| self.0.write(&tensor_to_bytes(component)?))
    }

    /// Completes the file.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

/// Reads the elements of a file in order.
pub struct ElementReader {
    records: RecordReader,
    path: String,
    components: usize,
}

impl ElementReader {
    /// Opens a file of elements with this number of components.
    pub fn open(
        systems: &FileSystems,
        path: &str,
        compression: Compression,
        components: usize,
    ) -> Result<ElementReader> {
        let records = RecordReader::open_on(systems, path, compression)?;
        Ok(ElementReader { records, path: path.to_string(), components })
    }

    /// The next element; none at the end. A last element that is not complete is as if it was not there, as in
    /// TensorFlow: it is still being written.
    pub fn read(&mut self) -> Result<Option<Vec<Tensor>>> {
        let mut element = Vec::new();
        while element.len() < self.components {
            let offset = self.records.offset();
            let Some(record) = self.records.read()? else { return Ok(None) };
            let tensor = tensor_from_bytes(&record).map_err(|error| {
                let (path, message) = (&self.path, error.message);
                data_loss(format!(
                    "Unable to parse tensor from stored proto in file: {path}, record {offset}: {message}"
                ))
            })?;
            element.push(tensor);
        }
        Ok(Some(element))
    }
}
