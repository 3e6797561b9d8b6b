//! Slices of tensors: a range along each axis. Checkpoints hold the parts of partitioned variables as slices.

use crate::ordered;
use status::{Result, internal, invalid};
use std::fmt;
use tensor::Shape;

/// A slice: for each axis a range, or none for the whole axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct TensorSlice(Vec<Option<Extent>>);

/// A range along one axis. It is not empty, and its end does not overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The first index.
    pub start: usize,
    /// The length.
    pub length: usize,
}

impl TensorSlice {
    /// The slice that covers a whole tensor of this rank.
    pub fn full(rank: usize) -> TensorSlice {
        TensorSlice(vec![None; rank])
    }

    /// The slice with these ranges.
    pub fn new(extents: Vec<Option<Extent>>) -> TensorSlice {
        TensorSlice(extents)
    }

    /// The slice with these starts and lengths; a length of -1 means the whole axis.
    pub(crate) fn from_numbers(numbers: impl Iterator<Item = (i64, i64)>) -> Result<TensorSlice> {
        let extent = |(start, length): (i64, i64)| match (start, length) {
            (0, -1) => Ok(None),
            (start, length) if start < 0 || length <= 0 => Err(invalid!(
                "Expected non-negative start and positive length but got start = {start}, length = {length}"
            )),
            (start, length) if start.checked_add(length).is_none() => {
                Err(invalid!("Extent end exceeds the maximum possible size: start = {start}, length = {length}"))
            }
            (start, length) => Ok(Some(Extent { start: start as usize, length: length as usize })),
        };
        Ok(TensorSlice(numbers.map(extent).collect::<Result<_>>()?))
    }

    /// Parses a slice such as `0,2:-`, two rows with all their columns.
    pub fn parse(text: &str) -> Result<TensorSlice> {
        let mut extents = Vec::new();
        for part in text.split(':').filter(|part| !part.is_empty()) {
            extents.push(parse_extent(part, text)?);
        }
        Ok(TensorSlice(extents))
    }

    /// The ranges.
    pub fn extents(&self) -> &[Option<Extent>] {
        &self.0
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// True if all axes are unrestricted.
    pub fn is_full(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// True if it covers a whole tensor of this shape, with or without ranges.
    pub fn covers(&self, shape: &Shape) -> bool {
        self.is_full() || self.shape_in(shape).is_ok_and(|part| part == *shape)
    }

    /// The shape of this slice of a tensor.
    pub fn shape_in(&self, shape: &Shape) -> Result<Shape> {
        if shape.rank() != self.rank() {
            return Err(internal!("Mismatching ranks: shape = {shape}, slice = {self}"));
        }
        let mut part = shape.clone();
        for (axis, extent) in self.0.iter().enumerate() {
            let Some(Extent { start, length }) = *extent else { continue };
            if start.checked_add(length).is_none_or(|end| end > shape.dims()[axis]) {
                return Err(internal!("Extent in dimension {axis} out of bounds: shape = {shape}, slice = {self}"));
            }
            part.dims_mut()[axis] = length;
        }
        Ok(part)
    }

    /// The intersection of two slices; none if it is empty.
    pub fn intersect(&self, other: &TensorSlice) -> Option<TensorSlice> {
        let both = |pair: (&Option<Extent>, &Option<Extent>)| match pair {
            (None, extent) | (extent, None) => Some(*extent),
            (Some(a), Some(b)) => {
                let (start, end) = (a.start.max(b.start), (a.start + a.length).min(b.start + b.length));
                (start < end).then(|| Some(Extent { start, length: end - start }))
            }
        };
        let same_rank = self.rank() == other.rank();
        same_rank.then(|| self.0.iter().zip(&other.0).map(both).collect::<Option<_>>())?.map(TensorSlice)
    }

    /// The key of a slice of a tensor in a checkpoint.
    pub fn key(&self, name: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        ordered::put_unsigned(&mut key, 0);
        ordered::put_string(&mut key, name);
        ordered::put_unsigned(&mut key, self.rank() as u64);
        for extent in &self.0 {
            let (start, length) = extent.map_or((0, -1), |extent| (extent.start as i64, extent.length as i64));
            ordered::put_signed(&mut key, start);
            ordered::put_signed(&mut key, length);
        }
        key
    }

    /// The tensor name and the slice of a key.
    pub fn from_key(mut key: &[u8]) -> Result<(Vec<u8>, TensorSlice)> {
        let bad = || internal!("Failed to parse the key of a tensor slice");
        if ordered::take_unsigned(&mut key) != Some(0) {
            return Err(bad());
        }
        let name = ordered::take_string(&mut key).ok_or_else(bad)?;
        let rank = ordered::take_unsigned(&mut key).filter(|&rank| rank <= key.len() as u64).ok_or_else(bad)?;
        let mut numbers = Vec::new();
        for _ in 0..rank {
            let start = ordered::take_signed(&mut key).ok_or_else(bad)?;
            numbers.push((start, ordered::take_signed(&mut key).ok_or_else(bad)?));
        }
        Ok((name, TensorSlice::from_numbers(numbers.into_iter())?))
    }
}

fn parse_extent(part: &str, text: &str) -> Result<Option<Extent>> {
    if part == "-" {
        return Ok(None);
    }
    let numbers: Vec<Option<i64>> = part.split(',').filter(|n| !n.is_empty()).map(|n| n.trim().parse().ok()).collect();
    let [Some(start), Some(length)] = numbers[..] else {
        return Err(invalid!("Expected a pair of numbers or '-' but got '{part}': string = {text}"));
    };
    if start < 0 || length <= 0 || start.checked_add(length).is_none() {
        return Err(invalid!(
            "Expected non-negative start and positive length but got start = {start}, length = {length}: string = {text}"
        ));
    }
    Ok(Some(Extent { start: start as usize, length: length as usize }))
}

/// Parses a shape and a slice of it: `4 10 0,2:-` means the first two rows of a 4 by 10 matrix. Returns the whole
/// shape, the slice, and the shape of the slice.
pub fn parse_shape_and_slice(text: &str) -> Result<(Shape, TensorSlice, Shape)> {
    let Some((dims, slice)) = text.rsplit_once(' ') else {
        return Err(invalid!("Need least two elements in shape_and_slice specification: {text}"));
    };
    let slice = TensorSlice::parse(slice)?;
    let wrong = |_| invalid!("Non numerical dimension in shape_and_slice: {text}");
    let dims = dims.split(' ').map(|dim| dim.parse::<i64>().map_err(wrong)).collect::<Result<Vec<_>>>()?;
    let shape = Shape::checked(&dims)?;
    let part = slice.shape_in(&shape)?;
    Ok((shape, slice, part))
}

/// The stored slices that together cover a requested slice; none if a part is missing.
pub(crate) fn cover<'a>(
    shape: &Shape,
    stored: &'a [TensorSlice],
    wanted: &TensorSlice,
) -> Result<Option<Vec<&'a TensorSlice>>> {
    if let Some(same) = stored.iter().find(|slice| *slice == wanted) {
        return Ok(Some(vec![same]));
    }
    let size = wanted.shape_in(shape)?.elements();
    let mut found: Vec<&TensorSlice> = Vec::new();
    let mut covered = 0usize;
    for slice in stored {
        let Some(common) = slice.intersect(wanted) else { continue };
        if let Some(other) = found.iter().find(|other| other.intersect(slice).is_some()) {
            return Err(internal!("Overlapping slices: existing slice = {other}, new slice = {slice}"));
        }
        covered = covered.saturating_add(common.shape_in(shape)?.elements());
        found.push(slice);
    }
    Ok((covered == size).then_some(found))
}

/// Calls `copy(from, to, count)` for each run of consecutive elements that a stored and a requested slice share, with
/// its offset in each of them, in elements.
pub(crate) fn for_each_run(
    shape: &Shape,
    stored: &TensorSlice,
    wanted: &TensorSlice,
    mut copy: impl FnMut(usize, usize, usize),
) -> Result<()> {
    let Some(common) = stored.intersect(wanted) else { return Ok(()) };
    let (from, to, run) = (stored.shape_in(shape)?, wanted.shape_in(shape)?, common.shape_in(shape)?);
    let begin = |slice: &TensorSlice, axis: usize| slice.0[axis].map_or(0, |extent| extent.start);
    // An axis that is whole in both slices makes the runs of the axis before it longer.
    let mut inner = run.rank();
    while inner > 0 && (inner == run.rank() || whole(&from, &to, &run, inner)) {
        inner -= 1;
    }
    let length: usize = run.dims()[inner..].iter().product();
    let runs: usize = run.dims()[..inner].iter().product();
    let mut index = vec![0; inner];
    for _ in 0..runs {
        let place = |part: &Shape, slice: &TensorSlice| {
            (0..run.rank()).fold(0, |at, axis| {
                let inside = begin(&common, axis) - begin(slice, axis);
                at * part.dims()[axis] + inside + index.get(axis).copied().unwrap_or(0)
            })
        };
        copy(place(&from, stored), place(&to, wanted), length);
        advance(&mut index, run.dims());
    }
    Ok(())
}

fn whole(from: &Shape, to: &Shape, run: &Shape, axis: usize) -> bool {
    from.dims()[axis] == run.dims()[axis] && to.dims()[axis] == run.dims()[axis]
}

/// Advances an index, the last axis first.
fn advance(index: &mut [usize], dims: &[usize]) {
    for axis in (0..index.len()).rev() {
        index[axis] += 1;
        if index[axis] < dims[axis] {
            return;
        }
        index[axis] = 0;
    }
}

impl fmt::Display for TensorSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, extent) in self.0.iter().enumerate() {
            let colon = if axis > 0 { ":" } else { "" };
            match extent {
                None => write!(f, "{colon}-")?,
                Some(Extent { start, length }) => write!(f, "{colon}{start},{length}")?,
            }
        }
        Ok(())
    }
}
