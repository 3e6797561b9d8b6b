//! Reading of checkpoints.

use super::pieces::{Sequential, TensorPieces, check_sum};
use super::{Entry, Header, Watch, corrupt, data_path, index_path, values, wire};
use crate::fs::{FileSystems, RandomAccessFile, data_loss};
use crate::{Table, TensorSlice, slice};
use parking_lot::Mutex;
use status::{Result, invalid, not_found, unimplemented_op};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tensor::{DType, Shape, Tensor};

/// A checkpoint that is open for reading, by several threads at once.
pub struct Bundle {
    systems: FileSystems,
    prefix: String,
    header: Header,
    entries: BTreeMap<String, Entry>,
    /// The slices of tensors that are stored in slices.
    slices: BTreeMap<Vec<u8>, Entry>,
    files: Mutex<HashMap<u32, Arc<dyn RandomAccessFile>>>,
    watch: Option<Watch>,
}

/// The number of bytes per read of a large tensor, so that the checksum is computed while they are in the cache.
const PIECE: usize = 8 << 20;

impl Bundle {
    /// Opens the checkpoint with this prefix, which may also be the name of its index.
    pub fn open(systems: &FileSystems, prefix: &str) -> Result<Bundle> {
        let prefix = prefix.strip_suffix(".index").unwrap_or(prefix);
        let path = index_path(prefix);
        let wrong = |detail| move |error| corrupt(&index_path(prefix), detail, &error);
        let table = Table::open(systems, &path).and_then(|table| table.entries());
        let mut table = table.map_err(wrong("unable to read the index"))?.into_iter();
        let no_header = || corrupt(&path, "failed to seek to header entry", &data_loss("the index is empty"));
        // The header has the empty key, so it is the first entry.
        let (key, header) = table.next().ok_or_else(no_header)?;
        let header = if key.is_empty() { wire::decode_header(header) } else { Err(no_header()) };
        let mut bundle = Bundle {
            systems: systems.clone(),
            prefix: prefix.to_string(),
            header: header.map_err(wrong("unable to parse header"))?,
            entries: BTreeMap::new(),
            slices: BTreeMap::new(),
            files: Mutex::default(),
            watch: None,
        };
        for (key, value) in table {
            let name = String::from_utf8_lossy(&key).into_owned();
            let entry = wire::decode_entry(&name, value).map_err(wrong("unable to parse an entry"))?;
            // Keys of slices begin with a zero byte.
            match key[0] {
                0 => drop(bundle.slices.insert(key.to_vec(), entry)),
                _ => drop(bundle.entries.insert(name, entry)),
            }
        }
        Ok(bundle)
    }

    /// The same reader, which reports the number of bytes of tensors that it reads.
    pub fn watched(self, watch: Watch) -> Bundle {
        Bundle { watch: Some(watch), ..self }
    }

    fn tell(&self, bytes: usize) {
        if let Some(watch) = &self.watch {
            watch(bytes as u64);
        }
    }

    /// The prefix of the names of its files.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The number of files with tensors.
    pub fn shards(&self) -> u32 {
        self.header.shards
    }

    /// All tensors by name, in order.
    pub fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    pub(super) fn header(&self) -> Header {
        self.header
    }

    /// All entries by key, with those of slices.
    pub(super) fn keyed(self) -> impl Iterator<Item = (Vec<u8>, Entry)> {
        let whole = self.entries.into_iter().map(|(name, entry)| (name.into_bytes(), entry));
        self.slices.into_iter().chain(whole)
    }

    /// The entry of a tensor.
    pub fn entry(&self, name: &str) -> Result<&Entry> {
        self.entries.get(name).ok_or_else(|| not_found!("Key {name} not found in checkpoint"))
    }

    /// Reads a tensor, which may be stored in slices.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let entry = self.entry(name)?;
        match entry.slices.is_empty() {
            true => self.value(name, entry),
            false => self.read_slice(name, &TensorSlice::full(entry.shape.rank())),
        }
    }

    /// Reads a part of a tensor, which may be stored in slices.
    pub fn read_slice(&self, name: &str, wanted: &TensorSlice) -> Result<Tensor> {
        let entry = self.entry(name)?;
        let shape = wanted.shape_in(&entry.shape)?;
        let parts = self.parts(name, entry, wanted)?;
        let mut result = None;
        for (part, place) in &parts {
            if part == wanted || place.shape == entry.shape && shape == entry.shape {
                return self.value(name, place);
            }
            let result = match &mut result {
                Some(result) => result,
                none => none.insert(self.room(name, entry, &parts, &shape)?),
            };
            match self.is_sequential(entry) {
                true => self.copy_plain(name, entry, (part, place), wanted, result)?,
                false => copy_part(&entry.shape, part, wanted, &self.value(name, place)?, result)?,
            }
        }
        result.map_or_else(|| Tensor::zeros_of(entry.dtype, shape), Ok)
    }

    /// A tensor, or a slice of it, to be read in pieces; none if the bytes in the files are not consecutive, or differ
    /// from those in memory.
    pub fn pieces(&self, name: &str, wanted: Option<&TensorSlice>) -> Result<Option<TensorPieces>> {
        let entry = self.entry(name)?;
        let all = TensorSlice::full(entry.shape.rank());
        let wanted = wanted.unwrap_or(&all);
        if !self.is_sequential(entry) {
            return Ok(None);
        }
        let size = entry.dtype.size() as u64;
        let mut runs = Vec::new();
        for (part, place) in self.parts(name, entry, wanted)? {
            let mut of_part = Vec::new();
            slice::for_each_run(&entry.shape, &part, wanted, |from, to, count| {
                if of_part.len() < 2 {
                    of_part.push((to, from as u64 * size..(from + count) as u64 * size));
                }
            })?;
            match of_part.pop() {
                Some((to, wanted)) if of_part.is_empty() => runs.push((to, self.sequential(name, place)?, wanted)),
                _ => return Ok(None),
            }
        }
        // Together they cover the requested slice, and they do not overlap.
        runs.sort_by_key(|(to, ..)| *to);
        Ok(Some(TensorPieces::new(runs.into_iter().map(|(_, entry, wanted)| (entry, wanted)))))
    }

    /// True if the bytes of a tensor in the file equal those in memory.
    fn is_sequential(&self, entry: &Entry) -> bool {
        let dtype = entry.dtype;
        dtype.is_plain() && !dtype.is_ref() && dtype != DType::BOOL && !self.header.big_endian
    }

    fn sequential(&self, name: &str, entry: &Entry) -> Result<Sequential> {
        check_size(name, entry)?;
        Ok(Sequential::new(self.checked_file(name, entry)?, entry, &self.prefix, self.watch.clone()))
    }

    /// The stored slices that cover a requested slice, with their entries.
    fn parts<'a>(
        &'a self,
        name: &str,
        entry: &'a Entry,
        wanted: &TensorSlice,
    ) -> Result<Vec<(TensorSlice, &'a Entry)>> {
        if entry.slices.is_empty() {
            wanted.shape_in(&entry.shape)?;
            return Ok(vec![(TensorSlice::full(entry.shape.rank()), entry)]);
        }
        let parts = slice::cover(&entry.shape, &entry.slices, wanted)?.ok_or_else(|| {
            invalid!("Does not have sufficient slices for partitioned tensor {name} to restore in slice_spec: {wanted}")
        })?;
        parts.into_iter().map(|part| Ok((part.clone(), self.part(name, entry, part)?))).collect()
    }

    /// Copies the common part of a stored and a requested slice, without holding the whole stored slice.
    fn copy_plain(
        &self,
        name: &str,
        entry: &Entry,
        (part, place): (&TensorSlice, &Entry),
        wanted: &TensorSlice,
        result: &mut Tensor,
    ) -> Result<()> {
        let (size, out) = (entry.dtype.size(), result.bytes_mut()?);
        let (mut bytes, mut copied) = (self.sequential(name, place)?, Ok(()));
        slice::for_each_run(&entry.shape, part, wanted, |from, to, count| {
            if copied.is_ok() {
                copied = bytes.copy((from * size) as u64, &mut out[to * size..(to + count) * size]);
            }
        })?;
        copied?;
        bytes.finish()
    }

    /// The entry of a slice; its type and shape must match those of the whole tensor.
    fn part(&self, name: &str, whole: &Entry, slice: &TensorSlice) -> Result<&Entry> {
        let key = slice.key(name.as_bytes());
        let part = self.slices.get(&key).ok_or_else(|| not_found!("Key {name} ({slice}) not found in checkpoint"))?;
        if part.dtype != whole.dtype || part.shape != slice.shape_in(&whole.shape)? {
            return Err(data_loss(format!("Slice {slice} of {name} does not match the type and shape of its tensor")));
        }
        Ok(part)
    }

    /// Memory for a tensor whose parts are read one by one. All parts were found in their files before.
    fn room(&self, name: &str, entry: &Entry, parts: &[(TensorSlice, &Entry)], shape: &Shape) -> Result<Tensor> {
        parts.iter().try_for_each(|(_, place)| self.checked_file(name, place).map(drop))?;
        Tensor::zeros_of(entry.dtype, shape)
    }

    /// Reads the tensor of one entry.
    fn value(&self, name: &str, entry: &Entry) -> Result<Tensor> {
        let (tensor, calculated) = match entry.dtype {
            DType::STRING => values::read_strings(entry, self.data(name, entry)?.into())?,
            DType::VARIANT => values::read_variants(entry, self.data(name, entry)?.into())?,
            dtype if dtype.is_plain() && !dtype.is_ref() => self.plain(name, entry)?,
            dtype => return Err(unimplemented_op!("Restoring data type {dtype} not yet supported")),
        };
        check_sum(entry, &self.prefix, calculated)?;
        Ok(tensor)
    }

    /// Reads numbers directly into the memory of their tensor.
    fn plain(&self, name: &str, entry: &Entry) -> Result<(Tensor, u32)> {
        check_size(name, entry)?;
        let file = self.checked_file(name, entry)?;
        let mut tensor = Tensor::scratch_of(entry.dtype, entry.shape.clone())?;
        let bytes = tensor.bytes_mut()?;
        let (mut calculated, mut offset) = (0, entry.offset);
        for piece in bytes.chunks_mut(PIECE) {
            file.read_exact_at(offset, piece)?;
            calculated = crc32c::crc32c_append(calculated, piece);
            offset += piece.len() as u64;
            self.tell(piece.len());
        }
        if self.header.big_endian {
            let halves = if entry.dtype.is_complex() { 2 } else { 1 };
            bytes.chunks_exact_mut(entry.dtype.size() / halves).for_each(<[u8]>::reverse);
        }
        if entry.dtype == DType::BOOL && bytes.iter().any(|&byte| byte > 1) {
            return Err(data_loss(format!("Tensor {name} holds bytes that are neither true nor false")));
        }
        Ok((tensor, calculated))
    }

    fn data(&self, name: &str, entry: &Entry) -> Result<Vec<u8>> {
        if self.header.big_endian {
            return Err(unimplemented_op!(
                "TensorBundle at {} is of a different endianness than this machine's hardware",
                self.prefix
            ));
        }
        let file = self.checked_file(name, entry)?;
        let mut data = vec![0; entry.size as usize];
        file.read_exact_at(entry.offset, &mut data)?;
        self.tell(data.len());
        Ok(data)
    }

    /// The file of an entry, which is checked to be long enough.
    fn checked_file(&self, name: &str, entry: &Entry) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.file(entry.shard)?;
        let size = file.size()?;
        if entry.offset.checked_add(entry.size).is_none_or(|end| end > size) {
            return Err(data_loss(format!(
                "{} has {size} bytes, but tensor {name} needs {} from {} on",
                data_path(&self.prefix, entry.shard, self.header.shards),
                entry.size,
                entry.offset
            )));
        }
        Ok(file)
    }

    fn file(&self, shard: u32) -> Result<Arc<dyn RandomAccessFile>> {
        if let Some(file) = self.files.lock().get(&shard) {
            return Ok(file.clone());
        }
        let file = self.systems.open(&data_path(&self.prefix, shard, self.header.shards))?;
        self.files.lock().insert(shard, file.clone());
        Ok(file)
    }
}

/// An error if the size of a plain tensor does not match its type and shape.
fn check_size(name: &str, entry: &Entry) -> Result<()> {
    let expected = entry.shape.checked_elements()?.checked_mul(entry.dtype.size()).map(|size| size as u64);
    if expected == Some(entry.size) {
        return Ok(());
    }
    Err(data_loss(format!(
        "Invalid size in bundle entry: key {name}; stored size {}; expected size {}",
        entry.size,
        expected.unwrap_or(u64::MAX)
    )))
}

/// Copies the common part of a stored and a requested slice.
pub(crate) fn copy_part(
    shape: &Shape,
    part: &TensorSlice,
    wanted: &TensorSlice,
    value: &Tensor,
    result: &mut Tensor,
) -> Result<()> {
    if value.dtype() == DType::STRING {
        let (from, to) = (value.strings()?, result.strings_mut()?);
        return slice::for_each_run(shape, part, wanted, |source, target, count| {
            to[target..target + count].clone_from_slice(&from[source..source + count]);
        });
    }
    let size = value.dtype().size();
    let Some(from) = value.buffer() else {
        return Err(invalid!("Dtype {} not supported.", value.dtype()));
    };
    let to = result.bytes_mut()?;
    slice::for_each_run(shape, part, wanted, |source, target, count| {
        let (source, target, count) = (source * size, target * size, count * size);
        to[target..target + count].copy_from_slice(&from.bytes()[source..source + count]);
    })
}
