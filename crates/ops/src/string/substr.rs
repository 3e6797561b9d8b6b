//! Substrings: Substr.

use super::text::begins_character;
use graph::{Output, ShapeQuery};
use math::elementwise::Broadcast;
use op::shapes::{broadcast_shapes, integers};
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{Bytes, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Substr(input: string, pos: T, len: T) -> output: string; T: {int32, int64}; \
          unit: {\"BYTE\", \"UTF8_CHAR\"} = \"BYTE\"",
    shape: substr_shape,
    grad: Grad::Stop,
    kernel: substr_kernel,
    facts: PLAIN,
}];

/// `len` bytes of each string from `pos` on; a negative position counts from the end.
pub fn substr(input: &Output, pos: &Output, len: &Output) -> Output {
    input.scope().op("Substr").input(input).input(pos).input(len).output()
}

fn substr_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let pos = query.inputs[1].merge(&query.inputs[2])?;
    Ok(vec![broadcast_shapes(&query.inputs[0], &pos)?])
}

/// The substring; none if the position is out of range.
type Cut = fn(&Bytes, i64, i64) -> Option<Bytes>;

fn substr_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let characters = setup.string("unit")? == "UTF8_CHAR";
    let cut: Cut = if characters { cut_characters } else { cut_bytes };
    Ok(many(move |_, mut inputs| {
        let (input, pos, len) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        if pos.shape() != len.shape() {
            return Err(invalid!("pos and len should have the same shape, got: {} vs. {}", pos.shape(), len.shape()));
        }
        let Some(common) = Broadcast::new(input.shape(), pos.shape()) else {
            return Err(invalid!("Incompatible shapes: {} vs. {}", input.shape(), pos.shape()));
        };
        let shape = Shape::new(common.out_dims());
        let (strings, pos, places) =
            (input.strings()?, integers(&pos)?, Places::new(&shape, input.shape(), pos.shape()));
        let len = integers(&len)?;
        let part = |at: usize| {
            let (string, place) = places.of(at);
            cut(&strings[string], pos[place], len[place])
                .ok_or_else(|| outside(&strings[string], pos[place], at, characters))
        };
        let parts = (0..shape.checked_elements()?).map(part).collect::<Result<Vec<_>>>()?;
        Ok(outputs![Tensor::from_strings(shape, parts)?])
    }))
}

fn outside(string: &[u8], pos: i64, at: usize, characters: bool) -> status::Error {
    match characters {
        true => invalid!("pos {pos} out of range for string at index {at}"),
        false => invalid!("pos {pos} out of range for string b'{}' at index {at}", String::from_utf8_lossy(string)),
    }
}

/// The positions of the elements of two broadcast operands, for each element of the result.
struct Places {
    dims: Vec<usize>,
    steps: [Vec<usize>; 2],
}

impl Places {
    fn new(shape: &Shape, lhs: &Shape, rhs: &Shape) -> Places {
        let steps = |operand: &Shape| {
            let (missing, strides) = (shape.rank() - operand.rank(), operand.strides());
            let step = |axis: usize| match axis.checked_sub(missing) {
                Some(own) if operand[own] != 1 => strides[own],
                _ => 0,
            };
            (0..shape.rank()).map(step).collect()
        };
        Places { dims: shape.to_vec(), steps: [steps(lhs), steps(rhs)] }
    }

    fn of(&self, mut element: usize) -> (usize, usize) {
        let (mut lhs, mut rhs) = (0, 0);
        for (axis, &dim) in self.dims.iter().enumerate().rev() {
            lhs += element % dim * self.steps[0][axis];
            rhs += element % dim * self.steps[1][axis];
            element /= dim;
        }
        (lhs, rhs)
    }
}

fn cut_bytes(string: &Bytes, pos: i64, len: i64) -> Option<Bytes> {
    let start = if pos < 0 { pos.checked_add(string.len() as i64)? } else { pos };
    let start = usize::try_from(start).ok().filter(|&start| start <= string.len())?;
    Some(string.slice(start..start + byte_count(len).min(string.len() - start)))
}

/// A negative length means to the end.
fn byte_count(len: i64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

fn cut_characters(string: &Bytes, pos: i64, len: i64) -> Option<Bytes> {
    let mut starts: Vec<usize> = (0..string.len()).filter(|&at| begins_character(string[at])).collect();
    if starts.first() != Some(&0) && !string.is_empty() {
        starts.insert(0, 0);
    }
    let count = starts.len();
    starts.push(string.len());
    let first = if pos < 0 { pos.checked_add(count as i64)? } else { pos };
    let first = usize::try_from(first).ok().filter(|&first| first <= count)?;
    let last = first.saturating_add(usize::try_from(len).unwrap_or(0)).min(count);
    Some(string.slice(starts[first]..starts[last]))
}
