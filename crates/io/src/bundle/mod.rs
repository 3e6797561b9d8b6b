//! Checkpoints: an index that says which tensors there are, and files that hold them.

use crate::file::{data_loss, failed};
use crate::{Table, crc, wire};
use bytes::Bytes;
use status::{Result, invalid, not_found};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tensor::{DType, Shape, Tensor};

/// A checkpoint that is being read.
pub struct Bundle {
    prefix: PathBuf,
    shards: u32,
    entries: BTreeMap<String, Entry>,
}

/// Where a tensor of a checkpoint is.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its element type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// Which file.
    pub shard: u32,
    /// Where it begins there.
    pub offset: u64,
    /// How many bytes.
    pub size: u64,
    /// Its masked checksum.
    pub crc: u32,
    /// How many slices it is stored in; none if it is whole.
    pub slices: usize,
}

impl Bundle {
    /// The checkpoint whose files begin with `prefix`; the name of its index will do as well.
    pub fn open(prefix: impl AsRef<Path>) -> Result<Bundle> {
        let text = prefix.as_ref().to_string_lossy().into_owned();
        let prefix = text.strip_suffix(".index").unwrap_or(&text).to_string();
        let table = Table::open(format!("{prefix}.index"))?;
        let mut entries = BTreeMap::new();
        let mut shards = None;
        for (key, value) in table.entries()? {
            // The empty key holds the header.
            match key.is_empty() {
                true => shards = Some(wire::bundle_header(value)?),
                false => drop(entries.insert(String::from_utf8_lossy(&key).into_owned(), wire::bundle_entry(value)?)),
            }
        }
        let shards = shards.ok_or_else(|| data_loss(format!("{prefix}.index has no header")))?;
        Ok(Bundle { prefix: prefix.into(), shards, entries })
    }

    /// How many files hold the tensors.
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// All tensors by name, in order.
    pub fn entries(&self) -> &BTreeMap<String, Entry> {
        &self.entries
    }

    /// Reads a tensor.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let entry = self.entries.get(name).ok_or_else(|| not_found!("Key {name} not found in checkpoint"))?;
        if entry.slices > 0 {
            return Err(invalid!("Tensor {name} is stored in {} slices", entry.slices));
        }
        let data = self.data(entry)?;
        match entry.dtype {
            DType::STRING => strings(entry, &data),
            dtype if !dtype.is_plain() => Err(invalid!("Tensor {name} of type {dtype} cannot be read")),
            dtype => {
                if crc32c::crc32c(&data) != crc::unmask(entry.crc) {
                    return Err(mismatch(name));
                }
                let mut tensor = Tensor::scratch_of(dtype, entry.shape.clone())?;
                let bytes = tensor.bytes_mut()?;
                if bytes.len() != data.len() {
                    return Err(data_loss(format!(
                        "Tensor {name} has {} bytes instead of {}",
                        data.len(),
                        bytes.len()
                    )));
                }
                bytes.copy_from_slice(&data);
                Ok(tensor)
            }
        }
    }

    fn data(&self, entry: &Entry) -> Result<Bytes> {
        let path = format!("{}.data-{:05}-of-{:05}", self.prefix.display(), entry.shard, self.shards);
        let path = Path::new(&path);
        let mut file = File::open(path).map_err(|error| failed(path, &error))?;
        let length = file.metadata().map_err(|error| failed(path, &error))?.len();
        if entry.offset.checked_add(entry.size).is_none_or(|end| end > length) {
            return Err(data_loss(format!("{} ends before the tensor it should hold", path.display())));
        }
        let mut data = vec![0u8; entry.size as usize];
        file.seek(SeekFrom::Start(entry.offset)).map_err(|error| failed(path, &error))?;
        file.read_exact(&mut data).map_err(|error| failed(path, &error))?;
        Ok(data.into())
    }
}

/// Strings lie one after the other, after their lengths and a checksum of those.
fn strings(entry: &Entry, data: &Bytes) -> Result<Tensor> {
    let bad = || data_loss("string tensor is damaged");
    let count = entry.shape.checked_elements()?;
    let mut rest = data.clone();
    let mut lengths = Vec::new();
    for _ in 0..count {
        lengths.push(prost::decode_length_delimiter(&mut rest).map_err(|_| bad())?);
    }
    if rest.len() < 4 {
        return Err(bad());
    }
    rest = rest.slice(4..);
    let mut values = Vec::new();
    for length in lengths {
        if length > rest.len() {
            return Err(bad());
        }
        values.push(rest.split_to(length));
    }
    Tensor::from_strings(entry.shape.clone(), values)
}

fn mismatch(name: &str) -> status::Error {
    data_loss(format!("TensorBundle checksum mismatch for {name}"))
}
