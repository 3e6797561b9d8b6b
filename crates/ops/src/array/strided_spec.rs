//! Interprets `begin`, `end`, `strides` and their masks for a shape.

use graph::{AttrValue, OpBuilder};
use op::Setup;
use smallvec::SmallVec;
use status::{Result, invalid};

/// Bits that change the meaning of entry `i` of a slice's `begin`, `end` and `strides`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Masks {
    /// `begin[i]` is ignored: from the start.
    pub begin: i64,
    /// `end[i]` is ignored: to the end.
    pub end: i64,
    /// The entry stands for all remaining whole axes.
    pub ellipsis: i64,
    /// The entry is a new axis of length one.
    pub new_axis: i64,
    /// The entry picks one index, and its axis is removed.
    pub shrink: i64,
}

impl Masks {
    /// The names of the attributes, in the order of the fields.
    const NAMES: [&str; 5] = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];

    /// The masks of a node.
    pub(super) fn of(setup: &Setup<'_>) -> Result<Masks> {
        Masks::read(|name| setup.int(name))
    }

    /// The masks, each from the attribute of its name.
    pub(super) fn read(attr: impl Fn(&str) -> Result<i64>) -> Result<Masks> {
        let [begin, end, ellipsis, new_axis, shrink] = Masks::NAMES;
        Ok(Masks {
            begin: attr(begin)?,
            end: attr(end)?,
            ellipsis: attr(ellipsis)?,
            new_axis: attr(new_axis)?,
            shrink: attr(shrink)?,
        })
    }

    /// Writes them as attributes.
    pub(super) fn write(self, node: OpBuilder) -> OpBuilder {
        let values = [self.begin, self.end, self.ellipsis, self.new_axis, self.shrink];
        Masks::NAMES.into_iter().zip(values).fold(node, |node, (name, mask)| node.attr(name, AttrValue::Int(mask)))
    }
}

/// The slice of one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    /// The first index; only if `len` is known and not zero.
    pub start: i64,
    /// The distance from one index to the next; not zero.
    pub step: i64,
    /// How many; -1 if unknown.
    pub len: i64,
}

/// The origin of an axis of the result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    /// An axis of the input.
    Axis(usize),
    /// Nowhere: it is new.
    New,
}

/// A slice of a shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The slice of each axis of the input.
    pub pieces: SmallVec<[Piece; 4]>,
    /// The axes of the result.
    pub result: SmallVec<[Source; 4]>,
}

impl Plan {
    /// The dimensions of the result, -1 where unknown.
    pub fn dims(&self) -> SmallVec<[i64; 4]> {
        let dim = |source: &Source| match source {
            Source::Axis(axis) => self.pieces[*axis].len,
            Source::New => 1,
        };
        self.result.iter().map(dim).collect()
    }
}

/// The slice of one axis, before the length of the axis is known.
#[derive(Clone, Copy)]
struct Entry {
    /// None if it is masked.
    begin: Option<i64>,
    end: Option<i64>,
    step: i64,
    shrink: bool,
}

/// The slice of a shape with these dimensions (-1 where unknown). `begin` and `end` may be unknown as a whole.
pub(super) fn plan(
    masks: Masks,
    begin: Option<&[i64]>,
    end: Option<&[i64]>,
    strides: &[i64],
    dims: &[i64],
) -> Result<Plan> {
    if masks.ellipsis & masks.ellipsis.wrapping_sub(1) != 0 {
        return Err(invalid!("Multiple ellipses in slice spec not allowed"));
    }
    let (entries, result) = spread(masks, begin, end, strides, dims.len())?;
    let known = begin.is_some() && end.is_some();
    let pieces = entries.iter().zip(dims).enumerate();
    let pieces = pieces.map(|(axis, (entry, &dim))| resolve(*entry, dim, axis, known));
    Ok(Plan { pieces: pieces.collect::<Result<_>>()?, result })
}

type Spread = (SmallVec<[Entry; 4]>, SmallVec<[Source; 4]>);

/// One entry for each axis of the input: the ellipsis, or the missing end, stands for whole axes.
fn spread(masks: Masks, begin: Option<&[i64]>, end: Option<&[i64]>, strides: &[i64], rank: usize) -> Result<Spread> {
    let bit = |mask: i64, i: usize| i < 64 && mask >> i & 1 == 1;
    let count = strides.len();
    let ellipsis = (0..count).find(|&i| bit(masks.ellipsis, i)).unwrap_or(count);
    let behind = (ellipsis + 1..count).filter(|&i| !bit(masks.new_axis, i)).count();
    let (mut entries, mut result): Spread = Default::default();
    let whole = Entry { begin: None, end: None, step: 1, shrink: false };
    for i in 0..=count {
        if i == ellipsis {
            while entries.len() + behind < rank {
                result.push(Source::Axis(entries.len()));
                entries.push(whole);
            }
        } else if i == count {
            break;
        } else if bit(masks.new_axis, i) {
            result.push(Source::New);
        } else {
            if entries.len() == rank {
                return Err(match rank {
                    0 => invalid!("Attempting to slice scalar input."),
                    _ => invalid!("Index out of range using input dim {rank}; input has only {rank} dims"),
                });
            }
            let shrink = bit(masks.shrink, i);
            if !shrink {
                result.push(Source::Axis(entries.len()));
            }
            entries.push(Entry {
                begin: begin.map(|begin| begin[i]).filter(|_| shrink || !bit(masks.begin, i)),
                end: end.map(|end| end[i]).filter(|_| !bit(masks.end, i)),
                step: strides[i],
                shrink,
            });
        }
    }
    Ok((entries, result))
}

/// The slice of an axis with `dim` indices; `known` says whether the numbers of the entry are known.
fn resolve(entry: Entry, dim: i64, axis: usize, known: bool) -> Result<Piece> {
    let Entry { begin, end, step, shrink } = entry;
    if step == 0 {
        return Err(invalid!("strides[{axis}] must be non-zero"));
    }
    if shrink && step < 0 && dim >= 0 {
        return Err(invalid!("only stride 1 allowed on non-range indexing."));
    }
    if shrink {
        return match begin {
            Some(begin) if known && dim >= 0 => picked(begin, dim, axis),
            _ => Ok(Piece { start: 0, step: 1, len: 1 }),
        };
    }
    if dim < 0 || !known && (begin.is_some() || end.is_some()) {
        return Ok(Piece { start: 0, step, len: -1 });
    }
    // Going backwards, the place before the first index is a valid end.
    let (lowest, highest) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    let clamped = |index: i64| if index < 0 { index.saturating_add(dim) } else { index }.clamp(lowest, highest);
    let start = begin.map_or(if step > 0 { 0 } else { dim - 1 }, clamped);
    let stop = end.map_or(if step > 0 { dim } else { -1 }, clamped);
    let way = if step > 0 { stop - start } else { start - stop };
    let len = if way <= 0 { 0 } else { (way as u64).div_ceil(step.unsigned_abs()) as i64 };
    Ok(Piece { start, step: if len > 1 { step } else { 1 }, len })
}

fn picked(begin: i64, dim: i64, axis: usize) -> Result<Piece> {
    let index = if begin < 0 { begin.saturating_add(dim) } else { begin };
    if !(0..dim).contains(&index) {
        return Err(invalid!("slice index {index} of dimension {axis} out of bounds."));
    }
    Ok(Piece { start: index, step: 1, len: 1 })
}
