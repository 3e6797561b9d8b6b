//! A map from numbers or strings to rows of values.

use crate::array::units::Unit;
use op::shapes::integers;
use rustc_hash::FxHashMap;
use status::{Result, internal};
use tensor::{Bytes, DType, Shape, Tensor};

/// Keys with the rows their values are in. Rows of removed keys are used again.
pub(crate) struct Map {
    keys: Keys,
    values: Tensor,
    free: Vec<usize>,
    used: usize,
}

enum Keys {
    Numbers(FxHashMap<i64, usize>),
    Strings(FxHashMap<Bytes, usize>),
}

impl Map {
    /// An empty map from keys of this type to values of this type and shape.
    pub fn new(key_dtype: DType, value_dtype: DType, value_shape: &Shape) -> Result<Map> {
        let keys = match key_dtype {
            DType::STRING => Keys::Strings(FxHashMap::default()),
            _ => Keys::Numbers(FxHashMap::default()),
        };
        let values = Tensor::zeros_of(value_dtype, rows_of(0, value_shape))?;
        Ok(Map { keys, values, free: Vec::new(), used: 0 })
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        match &self.keys {
            Keys::Numbers(map) => map.len(),
            Keys::Strings(map) => map.len(),
        }
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        match &mut self.keys {
            Keys::Numbers(map) => map.clear(),
            Keys::Strings(map) => map.clear(),
        }
        self.free.clear();
        self.used = 0;
    }

    /// The rows of keys that are there.
    pub fn places(&self, keys: &Tensor) -> Result<Vec<Option<usize>>> {
        Ok(match &self.keys {
            Keys::Numbers(map) => integers(keys)?.iter().map(|key| map.get(key).copied()).collect(),
            Keys::Strings(map) => keys.strings()?.iter().map(|key| map.get(key).copied()).collect(),
        })
    }

    /// The values of keys, one after the other in `out`; where there is none, the default of the same place, or the
    /// one default there is.
    pub fn find(&self, keys: &Tensor, default: &Tensor, mut out: Tensor) -> Result<Tensor> {
        let places = self.places(keys)?;
        let each = default.elements() == out.elements();
        for_units!(out.dtype(), E => {
            let width = self.width();
            let (values, default) = (E::of(&self.values)?, E::of(default)?);
            for (i, (dst, place)) in E::of_mut(&mut out)?.chunks_mut(width.max(1)).zip(places).enumerate() {
                let src = match place {
                    Some(place) => values.get(place * width..(place + 1) * width),
                    None if each => default.get(i * width..(i + 1) * width),
                    None => default.get(..width),
                };
                dst.clone_from_slice(src.ok_or_else(|| internal!("a row of a table is missing"))?);
            }
        });
        Ok(out)
    }

    /// Inserts values under keys, one after the other.
    pub fn insert(&mut self, keys: &Tensor, values: &Tensor) -> Result<()> {
        self.reserve(keys.elements())?;
        let mut places = Vec::with_capacity(keys.elements());
        let (free, used) = (&mut self.free, &mut self.used);
        let mut fresh = || {
            free.pop().unwrap_or_else(|| {
                *used += 1;
                *used - 1
            })
        };
        match &mut self.keys {
            Keys::Numbers(map) => {
                places.extend(integers(keys)?.into_iter().map(|key| *map.entry(key).or_insert_with(&mut fresh)));
            }
            Keys::Strings(map) => {
                places.extend(keys.strings()?.iter().map(|key| *map.entry(key.clone()).or_insert_with(&mut fresh)));
            }
        }
        let width = self.width();
        for_units!(values.dtype(), E => {
            let (src, dst) = (E::of(values)?, E::of_mut(&mut self.values)?);
            for (row, place) in src.chunks(width.max(1)).zip(places) {
                dst[place * width..(place + 1) * width].clone_from_slice(row);
            }
        });
        Ok(())
    }

    /// Removes keys.
    pub fn remove(&mut self, keys: &Tensor) -> Result<()> {
        match &mut self.keys {
            Keys::Numbers(map) => self.free.extend(integers(keys)?.iter().filter_map(|key| map.remove(key))),
            Keys::Strings(map) => self.free.extend(keys.strings()?.iter().filter_map(|key| map.remove(key))),
        }
        Ok(())
    }

    /// All keys and their values, in any order.
    pub fn export(&self, key_dtype: DType) -> Result<(Tensor, Tensor)> {
        let (keys, places) = match &self.keys {
            Keys::Numbers(map) => {
                let (numbers, places): (Vec<i64>, Vec<usize>) = map.iter().map(|(&key, &place)| (key, place)).unzip();
                let narrow = || numbers.iter().map(|&key| key as i32).collect::<Vec<_>>();
                let keys = if key_dtype == DType::I32 { Tensor::vector(&narrow()) } else { Tensor::vector(&numbers) };
                (keys, places)
            }
            Keys::Strings(map) => {
                let (strings, places): (Vec<Bytes>, Vec<usize>) =
                    map.iter().map(|(key, &place)| (key.clone(), place)).unzip();
                (Tensor::from_strings([strings.len()], strings)?, places)
            }
        };
        let width = self.width();
        let mut values = Tensor::zeros_of(self.values.dtype(), rows_of(places.len(), &self.value_shape()))?;
        for_units!(values.dtype(), E => {
            let (src, dst) = (E::of(&self.values)?, E::of_mut(&mut values)?);
            for (row, place) in dst.chunks_mut(width.max(1)).zip(places) {
                row.clone_from_slice(&src[place * width..(place + 1) * width]);
            }
        });
        Ok((keys, values))
    }

    fn value_shape(&self) -> Shape {
        Shape::new(&self.values.shape()[1..])
    }

    fn width(&self) -> usize {
        self.value_shape().elements()
    }

    /// Reserves space for this many more rows. The capacity doubles, so that adding rows one by one takes linear time
    /// in total.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let (room, needed) = (self.values.shape()[0], self.used + more);
        if needed <= room {
            return Ok(());
        }
        let shape = rows_of(needed.max(room * 2).max(16), &self.value_shape());
        let mut values = Tensor::zeros_of(self.values.dtype(), shape)?;
        for_units!(values.dtype(), E => {
            let old = E::of(&self.values)?;
            E::of_mut(&mut values)?[..old.len()].clone_from_slice(old);
        });
        self.values = values;
        Ok(())
    }
}

/// The shape of this many values of a shape.
pub(crate) fn rows_of(count: usize, shape: &Shape) -> Shape {
    std::iter::once(count).chain(shape.iter().copied()).collect()
}
