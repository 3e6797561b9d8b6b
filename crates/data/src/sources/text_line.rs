//! TextLineDataset: the lines of files.

use super::files::{FileName, Files, Format, Records, buffer_size, compression, file_names, string_element};
use crate::Element;
use crate::attrs::{DATASET, dataset_kernel};
use io::{Compression, FileSystems, InputStream};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use ops::checkpoint::systems;
use status::Result;

pub(crate) const OPS: &[Op] = &[Op {
    def: "TextLineDataset(filenames: string, compression_type: string, buffer_size: int64) -> handle: variant; \
          metadata: string = \"\"; stateful",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let names = file_names(inputs, 0, "filenames")?;
        let compression = compression(inputs, 1);
        let buffer_size = buffer_size(inputs, 2, " (0 == default)")?;
        Ok(Files::new("TextLine", names, Lines { compression: compression?, buffer_size }, systems.clone()))
    })
}

struct Lines {
    compression: Compression,
    buffer_size: usize,
}

impl Format for Lines {
    type Reader = InputStream;
    const POSITION: &'static str = "current_pos";

    fn open(&self, systems: &FileSystems, file: &FileName<'_>, position: Option<u64>) -> Result<InputStream> {
        InputStream::open_at(systems, file.name, self.compression, self.buffer_size, position.unwrap_or(0))
    }
}

impl Records for InputStream {
    fn next(&mut self) -> Result<Option<Element>> {
        Ok(self.read_line()?.map(string_element))
    }

    fn position(&self) -> u64 {
        self.offset()
    }
}
