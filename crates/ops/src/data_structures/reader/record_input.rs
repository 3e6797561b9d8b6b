//! RecordInput: the records of many files in random order, epoch after epoch.

use crate::checkpoint::systems;
use graph::ShapeQuery;
use io::{Compression, FileSystems, RecordReader};
use op::{Kernel, Op, Setup, source};
use parking_lot::Mutex;
use status::{Result, invalid, not_found};
use std::sync::Arc;
use tensor::{Bytes, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "RecordInput() -> records: string; file_pattern: string; file_random_seed: int = 301; \
     file_shuffle_shift_ratio: float = 0.0; file_buffer_size: int = 10000; file_parallelism: int = 16; \
     batch_size: int = 32; compression_type: string = \"\"; stateful", batch_shape, kernel;
};

fn batch_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![match query.attr("batch_size")? {
        graph::AttrValue::Int(size) if *size >= 0 => PartialShape::new(&[*size]),
        _ => PartialShape::of_rank(1),
    }])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (parallelism, batch) = (setup.int("file_parallelism")?, setup.int("batch_size")?);
    if parallelism < 0 {
        return Err(invalid!("file_parallelism should >= 0, got {parallelism}"));
    }
    let batch = usize::try_from(batch).map_err(|_| invalid!("batch_size must be non-negative but got {batch}"))?;
    let files = Files {
        systems: systems(setup)?,
        pattern: setup.string("file_pattern")?,
        shift: f64::from(setup.float("file_shuffle_shift_ratio")?),
        room: usize::try_from(setup.int("file_buffer_size")?).unwrap_or(1).max(1),
        compression: Compression::from_name(&setup.string("compression_type")?).unwrap_or_default(),
    };
    let epoch = Mutex::new(Epoch { random: setup.int("file_random_seed")? as u64, ..Epoch::default() });
    Ok(source(move |_| {
        let mut epoch = epoch.lock();
        let records = (0..batch).map(|_| epoch.next(&files)).collect::<Result<Vec<Bytes>>>()?;
        Tensor::from_strings([batch], records)
    })
    .heavy())
}

/// The source of the records.
struct Files {
    systems: Arc<FileSystems>,
    pattern: String,
    /// By which part of the list of files each epoch begins later than the one before.
    shift: f64,
    /// How many records are mixed with each other.
    room: usize,
    compression: Compression,
}

/// The remaining files and records of an epoch. Records of two epochs are never mixed.
#[derive(Default)]
struct Epoch {
    number: usize,
    /// Names of files that have yet to be read, the next one last.
    waiting: Vec<String>,
    reader: Option<RecordReader>,
    mixed: Vec<Bytes>,
    random: u64,
}

impl Epoch {
    fn next(&mut self, files: &Files) -> Result<Bytes> {
        self.mix(files)?;
        if self.mixed.is_empty() {
            self.begin(files)?;
            self.mix(files)?;
        }
        self.mixed.pop().ok_or_else(|| not_found!("Found no records in {}", files.pattern))
    }

    /// Begins the next epoch with all files, in another order.
    fn begin(&mut self, files: &Files) -> Result<()> {
        let mut names = files.systems.glob(&files.pattern)?;
        if names.is_empty() {
            return Err(not_found!("Found no files at {}", files.pattern));
        }
        for last in (1..names.len()).rev() {
            names.swap(last, self.draw(last + 1));
        }
        let shift = (self.number as f64 * files.shift * names.len() as f64).max(0.0) as usize % names.len();
        names.rotate_left(shift);
        (self.waiting, self.number) = (names, self.number + 1);
        Ok(())
    }

    /// Reads until the buffer is full or all files are read.
    fn mix(&mut self, files: &Files) -> Result<()> {
        while self.mixed.len() < files.room {
            let record = match &mut self.reader {
                Some(reader) => reader.read()?,
                None => {
                    let Some(name) = self.waiting.pop() else { return Ok(()) };
                    self.reader = Some(RecordReader::open_on(&files.systems, &name, files.compression)?);
                    continue;
                }
            };
            match record {
                Some(record) => {
                    let place = self.draw(self.mixed.len() + 1);
                    self.mixed.push(record);
                    let last = self.mixed.len() - 1;
                    self.mixed.swap(place, last);
                }
                None => self.reader = None,
            }
        }
        Ok(())
    }

    /// A random number below `limit`: the splitmix64 sequence.
    fn draw(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) % limit as u64) as usize
    }
}
