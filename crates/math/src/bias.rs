//! One number per channel added to every element of that channel.

use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::elementwise::cost::SIMPLE;
use crate::function::Number;
use crate::parallel::split_rows_mut;

/// Few channels are repeated to at least this length, so that the vector loop over them is long enough to amortise
/// its start.
const WIDE: usize = 256;

/// `dst = src + bias`; a channel is `inner` elements long, and channels come in turn.
///
/// # Panics
/// If the lengths are not equal, or no multiple of all channels.
pub fn add<T: Number>(pool: &Pool, inner: usize, src: &[T], bias: &[T], dst: &mut [T]) {
    assert_eq!(src.len(), dst.len(), "bias: lengths");
    each_chunk(pool, inner, bias, dst, |start, pattern, dst| {
        vectorize(Add { src: &src[start..][..dst.len()], pattern, dst });
    });
}

/// `values += bias`, as `add`.
///
/// # Panics
/// As `add`.
pub fn add_in_place<T: Number>(pool: &Pool, inner: usize, bias: &[T], values: &mut [T]) {
    each_chunk(pool, inner, bias, values, |_, pattern, dst| vectorize(AddInPlace { pattern, dst }));
}

/// What is added to a chunk.
enum Pattern<'a, T> {
    /// These, in turn.
    Cycle(&'a [T]),
    /// Runs of this length get the same value each, starting at this channel.
    Runs(usize, &'a [T]),
}

fn each_chunk<T: Number>(
    pool: &Pool,
    inner: usize,
    bias: &[T],
    dst: &mut [T],
    body: impl Fn(usize, Pattern<'_, T>, &mut [T]) + Sync,
) {
    if dst.is_empty() {
        return;
    }
    let channels = bias.len();
    assert!(dst.len().is_multiple_of(channels * inner), "bias: {} elements, {channels} channels", dst.len());
    if inner == 1 {
        let cycle = bias.repeat(WIDE.div_ceil(channels));
        let width = cycle.len();
        split_rows_mut(pool, SIMPLE * width as f32, dst, width, |row, dst| {
            body(row * width, Pattern::Cycle(&cycle), dst);
        });
    } else {
        let twice = bias.repeat(2);
        split_rows_mut(pool, SIMPLE * inner as f32, dst, inner, |row, dst| {
            for (i, dst) in dst.chunks_mut(inner * channels).enumerate() {
                let row = row + i * channels;
                body(row * inner, Pattern::Runs(inner, &twice[row % channels..]), dst);
            }
        });
    }
}

struct Add<'a, T> {
    src: &'a [T],
    pattern: Pattern<'a, T>,
    dst: &'a mut [T],
}

impl<T: Number> Loop for Add<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.pattern {
            Pattern::Cycle(cycle) => {
                for (dst, src) in self.dst.chunks_mut(cycle.len()).zip(self.src.chunks(cycle.len())) {
                    for ((dst, &x), &bias) in dst.iter_mut().zip(src).zip(cycle) {
                        *dst = x.add(bias);
                    }
                }
            }
            Pattern::Runs(inner, biases) => {
                for ((dst, src), &bias) in self.dst.chunks_mut(inner).zip(self.src.chunks(inner)).zip(biases) {
                    for (dst, &x) in dst.iter_mut().zip(src) {
                        *dst = x.add(bias);
                    }
                }
            }
        }
    }
}

struct AddInPlace<'a, T> {
    pattern: Pattern<'a, T>,
    dst: &'a mut [T],
}

impl<T: Number> Loop for AddInPlace<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        match self.pattern {
            Pattern::Cycle(cycle) => {
                for dst in self.dst.chunks_mut(cycle.len()) {
                    for (x, &bias) in dst.iter_mut().zip(cycle) {
                        *x = x.add(bias);
                    }
                }
            }
            Pattern::Runs(inner, biases) => {
                for (dst, &bias) in self.dst.chunks_mut(inner).zip(biases) {
                    for x in dst {
                        *x = x.add(bias);
                    }
                }
            }
        }
    }
}
