//! A table with open addressing, stored as TensorFlow stores it in checkpoints: a free bucket holds the empty key, and
//! a bucket whose key was removed holds the deleted key.

use super::map::rows_of;
use crate::array::units::Unit;
use graph::hash64;
use status::{Result, internal, invalid};
use tensor::{Bytes, DType, Shape, Tensor};

/// Keys in buckets. Their number is a power of two, unless it was imported otherwise.
pub(crate) struct Dense {
    key_shape: Shape,
    value_shape: Shape,
    max_load_factor: f32,
    empty: Tensor,
    deleted: Tensor,
    keys: Tensor,
    values: Tensor,
    entries: usize,
}

/// An element of a key. Hashes are TensorFlow's, so that buckets are where it would put them.
trait Part: Clone + PartialEq {
    fn of(tensor: &Tensor) -> Result<&[Self]>;
    fn of_mut(tensor: &mut Tensor) -> Result<&mut [Self]>;
    fn hash(&self) -> u64;
}

impl Part for i32 {
    fn of(tensor: &Tensor) -> Result<&[i32]> {
        tensor.values()
    }
    fn of_mut(tensor: &mut Tensor) -> Result<&mut [i32]> {
        tensor.values_mut()
    }
    fn hash(&self) -> u64 {
        *self as u64
    }
}

impl Part for i64 {
    fn of(tensor: &Tensor) -> Result<&[i64]> {
        tensor.values()
    }
    fn of_mut(tensor: &mut Tensor) -> Result<&mut [i64]> {
        tensor.values_mut()
    }
    fn hash(&self) -> u64 {
        *self as u64
    }
}

impl Part for Bytes {
    fn of(tensor: &Tensor) -> Result<&[Bytes]> {
        tensor.strings()
    }
    fn of_mut(tensor: &mut Tensor) -> Result<&mut [Bytes]> {
        Ok(tensor.strings_mut()?)
    }
    fn hash(&self) -> u64 {
        hash64(self)
    }
}

fn hash_key<K: Part>(key: &[K]) -> u64 {
    match key {
        [one] => one.hash(),
        parts => parts.iter().fold(0, |hash: u64, part| {
            let mixed = part.hash().wrapping_add(0x9e37_79b9_7f4a_7800);
            hash ^ mixed.wrapping_add(hash << 10).wrapping_add(hash >> 4)
        }),
    }
}

macro_rules! for_keys {
    ($dtype:expr, $K:ident => $body:expr) => {
        match $dtype {
            DType::I32 => {
                type $K = i32;
                $body
            }
            DType::STRING => {
                type $K = Bytes;
                $body
            }
            _ => {
                type $K = i64;
                $body
            }
        }
    };
}

impl Dense {
    /// An empty table with this many buckets; it grows when more than `max_load_factor` of them are used.
    pub fn new(
        (empty, deleted): (Tensor, Tensor),
        value_dtype: DType,
        value_shape: Shape,
        max_load_factor: f32,
        buckets: i64,
    ) -> Result<Dense> {
        if !(max_load_factor > 0.0 && max_load_factor < 1.0) {
            return Err(invalid!("max_load_factor must be between 0 and 1, got: {max_load_factor}"));
        }
        if value_shape.rank() > 1 {
            return Err(invalid!("Empty value must be a scalar or a vector, got shape {value_shape}"));
        }
        let key_shape = empty.shape().clone();
        if key_shape.rank() > 1 {
            return Err(invalid!("Empty key must be a scalar or a vector, got shape {key_shape}"));
        }
        if deleted.shape() != &key_shape {
            return Err(invalid!(
                "Empty and deleted keys must have same shape, got shapes: {key_shape} and {}",
                deleted.shape()
            ));
        }
        if for_keys!(empty.dtype(), K => <K as Part>::of(&empty)? == <K as Part>::of(&deleted)?) {
            return Err(invalid!("Empty and deleted keys cannot be equal"));
        }
        let (keys, values) = (empty.clone(), Tensor::zeros_of(value_dtype, [0, value_shape.elements()])?);
        let mut table = Dense { key_shape, value_shape, max_load_factor, empty, deleted, keys, values, entries: 0 };
        table.allocate(buckets)?;
        Ok(table)
    }

    /// The shape of a key.
    pub fn key_shape(&self) -> &Shape {
        &self.key_shape
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries
    }

    fn buckets(&self) -> usize {
        self.keys.shape().first().copied().unwrap_or(0)
    }

    fn allocate(&mut self, buckets: i64) -> Result<()> {
        let count = usize::try_from(buckets).unwrap_or(0);
        if count < 4 || !count.is_power_of_two() {
            return Err(invalid!("Number of buckets must be at least 4 and a power of 2, got: {buckets}"));
        }
        let width = self.key_shape.elements();
        let mut keys = Tensor::zeros_of(self.empty.dtype(), [count, width])?;
        for_keys!(keys.dtype(), K => {
            let empty = <K as Part>::of(&self.empty)?;
            <K as Part>::of_mut(&mut keys)?.chunks_mut(width.max(1)).for_each(|key| key.clone_from_slice(empty));
        });
        self.values = Tensor::zeros_of(self.values.dtype(), [count, self.value_shape.elements()])?;
        self.keys = keys;
        self.entries = 0;
        Ok(())
    }

    /// How many keys a tensor holds.
    fn count(&self, keys: &Tensor) -> Result<usize> {
        let count = keys.shape().first().copied().unwrap_or(1);
        match keys.elements() == count * self.key_shape.elements() {
            true => Ok(count),
            false => Err(invalid!("Expected key shape {} got {}", rows_of(count, &self.key_shape), keys.shape())),
        }
    }

    /// The values of keys; the default where there is none.
    pub fn find(&self, keys: &Tensor, default: &Tensor, mut out: Tensor) -> Result<Tensor> {
        self.count(keys)?;
        let places = for_keys!(keys.dtype(), K => self.places::<K>(keys, "lookup")?);
        for_units!(out.dtype(), E => {
            let width = self.value_shape.elements();
            let (values, default) = (<E as Unit>::of(&self.values)?, <E as Unit>::of(default)?);
            for (dst, place) in <E as Unit>::of_mut(&mut out)?.chunks_mut(width.max(1)).zip(places) {
                let src = match place {
                    Some(place) => values.get(place * width..(place + 1) * width),
                    None => default.get(..width),
                };
                dst.clone_from_slice(src.ok_or_else(|| internal!("a row of a table is missing"))?);
            }
        });
        Ok(out)
    }

    fn places<K: Part>(&self, keys: &Tensor, what: &str) -> Result<Vec<Option<usize>>> {
        let width = self.key_shape.elements().max(1);
        let place = |key| {
            self.check_key::<K>(key)?;
            Ok(match self.probe::<K>(key, false, what)? {
                (place, true) => Some(place),
                _ => None,
            })
        };
        K::of(keys)?.chunks(width).map(place).collect()
    }

    fn check_key<K: Part>(&self, key: &[K]) -> Result<()> {
        if key == K::of(&self.empty)? {
            return Err(invalid!("Using the empty_key as a table key is not allowed"));
        }
        if key == K::of(&self.deleted)? {
            return Err(invalid!("Using the deleted_key as a table key is not allowed"));
        }
        Ok(())
    }

    /// The bucket of a key, or the one where looking for it ends; `reuse` ends at deleted keys too.
    fn probe<K: Part>(&self, key: &[K], reuse: bool, what: &str) -> Result<(usize, bool)> {
        let (width, buckets) = (self.key_shape.elements(), self.buckets());
        let (keys, empty, deleted) = (K::of(&self.keys)?, K::of(&self.empty)?, K::of(&self.deleted)?);
        let mask = buckets.wrapping_sub(1);
        let mut place = hash_key(key) as usize & mask;
        for probes in 1..=buckets {
            let found = keys.get(place * width..(place + 1) * width).unwrap_or(empty);
            if found == key {
                return Ok((place, true));
            }
            if found == empty || reuse && found == deleted {
                return Ok((place, false));
            }
            place = (place + probes) & mask;
        }
        Err(internal!("Internal error in MutableDenseHashTable {what}"))
    }

    /// Inserts values under keys.
    pub fn insert(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        let wanted = self.entries + self.count(keys)?;
        if wanted as f32 > self.buckets() as f32 * self.max_load_factor {
            let mut buckets = self.buckets().max(1);
            while wanted as f32 > buckets as f32 * self.max_load_factor {
                buckets *= 2;
            }
            let (old_keys, old_values) = (self.keys.clone(), self.values.clone());
            self.allocate(buckets as i64)?;
            for_keys!(keys.dtype(), K => self.insert_all::<K>(&old_keys, &old_values, true)?);
        }
        for_keys!(keys.dtype(), K => self.insert_all::<K>(keys, values, false))
    }

    fn insert_all<K: Part>(&mut self, keys: &Tensor, values: &Tensor, skip: bool) -> Result<()> {
        let (width, value_width) = (self.key_shape.elements(), self.value_shape.elements());
        let mut rows = Vec::new();
        for (i, key) in K::of(keys)?.chunks(width.max(1)).enumerate() {
            match self.check_key::<K>(key) {
                Err(_) if skip => continue,
                checked => checked?,
            }
            let (place, found) = self.probe::<K>(key, true, "insert")?;
            if !found {
                self.entries += 1;
                K::of_mut(&mut self.keys)?[place * width..(place + 1) * width].clone_from_slice(key);
            }
            rows.push((i, place));
        }
        for_units!(values.dtype(), E => {
            let (src, dst) = (<E as Unit>::of(values)?, <E as Unit>::of_mut(&mut self.values)?);
            for (i, place) in rows {
                let row = src.get(i * value_width..(i + 1) * value_width);
                let row = row.ok_or_else(|| internal!("a value of a table is missing"))?;
                dst[place * value_width..(place + 1) * value_width].clone_from_slice(row);
            }
        });
        Ok(())
    }

    /// Removes keys.
    pub fn remove(&mut self, keys: &Tensor) -> Result<()> {
        self.count(keys)?;
        let width = self.key_shape.elements();
        for_keys!(keys.dtype(), K => {
            for key in <K as Part>::of(keys)?.chunks(width.max(1)) {
                self.check_key::<K>(key)?;
                if let (place, true) = self.probe::<K>(key, false, "remove")? {
                    let deleted = <K as Part>::of(&self.deleted)?;
                    <K as Part>::of_mut(&mut self.keys)?[place * width..(place + 1) * width].clone_from_slice(deleted);
                    self.entries -= 1;
                }
            }
            Ok(())
        })
    }

    /// All buckets.
    pub fn export(&self) -> (Tensor, Tensor) {
        (self.keys.clone(), self.values.clone())
    }

    /// Replaces all buckets.
    pub fn import(&mut self, keys: Tensor, values: Tensor) -> Result<()> {
        let (width, value_width) = (self.key_shape.elements(), self.value_shape.elements());
        let count = keys.shape().first().copied().unwrap_or(0);
        if keys.elements() != count * width || values.elements() != count * value_width {
            return Err(invalid!(
                "Keys of shape {} and values of shape {} do not match the buckets of this table",
                keys.shape(),
                values.shape()
            ));
        }
        self.entries = for_keys!(keys.dtype(), K => {
            let keys = <K as Part>::of(&keys)?.chunks(width.max(1));
            keys.filter(|key| self.check_key::<K>(key).is_ok()).count()
        });
        self.keys = keys.reshaped([count, width])?;
        self.values = values.reshaped([count, value_width])?;
        Ok(())
    }
}
