//! One pass over a variable and its slots: every element changes by a rule of its own values and the gradient's.

use half::{bf16, f16};
use num_complex::Complex;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};

use crate::Pool;
use crate::cpu::{Loop, vectorize};
use crate::function::{Real, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::parallel::{Shared, split};
use crate::scatter::for_each_row;

/// Nanoseconds for an element of one array: such loops are bound by memory.
const COST: f32 = 0.4;
/// Elements that are computed side by side: a few cache lines of each array.
const TILE: usize = 32;

/// A number that rules compute with.
pub trait Field:
    Copy
    + Send
    + Sync
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// Nothing.
    const ZERO: Self;
    /// The unit.
    const ONE: Self;

    /// The square root.
    fn root(self) -> Self;
    /// From an integer, rounded.
    fn from_integer(x: i64) -> Self;

    /// The number times itself.
    #[inline(always)]
    fn squared(self) -> Self {
        self * self
    }
}

/// A real number that rules compute with.
pub trait RealField: Field + Real {}

macro_rules! real_field {
    ($($t:ty),*) => {$(
        impl Field for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;

            #[inline(always)]
            fn root(self) -> $t {
                <$t>::sqrt(self)
            }

            #[inline(always)]
            fn from_integer(x: i64) -> $t {
                x as $t
            }
        }

        impl RealField for $t {}

        impl Field for Complex<$t> {
            const ZERO: Complex<$t> = Complex::new(0.0, 0.0);
            const ONE: Complex<$t> = Complex::new(1.0, 0.0);

            fn root(self) -> Complex<$t> {
                self.sqrt()
            }

            fn from_integer(x: i64) -> Complex<$t> {
                Complex::new(x as $t, 0.0)
            }
        }
    )*};
}

real_field!(f32, f64);

/// An element of a variable; 16-bit floats are computed with as `f32`.
pub trait Stored: Copy + Send + Sync + 'static {
    /// What rules see.
    type Compute: Field;
    /// The number to compute with.
    fn load(self) -> Self::Compute;
    /// The element to keep.
    fn store(value: Self::Compute) -> Self;
}

macro_rules! stored {
    ($($t:ty, $compute:ty, $load:expr, $store:expr;)*) => {$(
        impl Stored for $t {
            type Compute = $compute;

            #[inline(always)]
            fn load(self) -> $compute {
                $load(self)
            }

            #[inline(always)]
            fn store(value: $compute) -> $t {
                $store(value)
            }
        }
    )*};
}

stored! {
    f32, f32, |x| x, |x| x;
    f64, f64, |x| x, |x| x;
    f16, f32, f16_to_f32, f32_to_f16;
    bf16, f32, bf16_to_f32, f32_to_bf16;
    Complex<f32>, Complex<f32>, |x| x, |x| x;
    Complex<f64>, Complex<f64>, |x| x, |x| x;
}

/// Changes every element: `rule` gets the elements of the `K` arrays and of the gradient at one place, and gives the
/// new elements. All arrays have the length of the gradient.
pub fn dense<T: Stored, const K: usize>(
    pool: &Pool,
    slots: [&mut [T]; K],
    gradient: &[T],
    rule: impl Fn([T::Compute; K], T::Compute) -> [T::Compute; K] + Copy + Send + Sync,
) {
    for slot in &slots {
        assert_eq!(slot.len(), gradient.len(), "slots of {} for {} gradients", slot.len(), gradient.len());
    }
    let slots = slots.map(Shared::new);
    split(pool, gradient.len(), COST * (K as f32 + 1.0), TILE, |range| {
        // SAFETY: `split` hands out disjoint ranges.
        unsafe { change(&slots, range.clone(), &gradient[range], rule) };
    });
}

/// Changes the rows whose numbers `rows` lists, in its order, each by its row of the gradient; rows have `width`
/// elements.
pub fn sparse<T: Stored, const K: usize>(
    pool: &Pool,
    slots: [&mut [T]; K],
    width: usize,
    rows: &[usize],
    gradient: &[T],
    rule: impl Fn([T::Compute; K], T::Compute) -> [T::Compute; K] + Copy + Send + Sync,
) {
    assert_eq!(gradient.len(), rows.len() * width, "{} gradients for {} rows", gradient.len(), rows.len());
    let limit = slots.iter().map(|slot| slot.len()).min().unwrap_or(0) / width.max(1);
    assert!(rows.iter().all(|&row| row < limit || width == 0), "a row is not below {limit}");
    let slots = slots.map(Shared::new);
    for_each_row(pool, rows, width, |i, row| {
        let range = row * width..(row + 1) * width;
        // SAFETY: `for_each_row` never hands out one row to two threads.
        unsafe { change(&slots, range, &gradient[i * width..(i + 1) * width], rule) };
    });
}

/// # Safety
/// No other thread may access this range of the slots.
unsafe fn change<T: Stored, const K: usize>(
    slots: &[Shared<'_, T>; K],
    range: Range<usize>,
    gradient: &[T],
    rule: impl Fn([T::Compute; K], T::Compute) -> [T::Compute; K],
) {
    // SAFETY: the caller's promise.
    let slots = slots.each_ref().map(|slot| unsafe { slot.range(range.clone()) });
    vectorize(Tiles { slots, gradient, rule });
}

/// The loop over a range: a tile of each array is loaded, changed and stored, so that the compiler need not wonder
/// whether the arrays overlap.
struct Tiles<'a, T, F, const K: usize> {
    slots: [&'a mut [T]; K],
    gradient: &'a [T],
    rule: F,
}

impl<T: Stored, F, const K: usize> Loop for Tiles<'_, T, F, K>
where
    F: Fn([T::Compute; K], T::Compute) -> [T::Compute; K],
{
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let zero = T::Compute::ZERO;
        let mut values = [[zero; TILE]; K];
        let mut gradients = [zero; TILE];
        for (tile, gradient) in self.gradient.chunks(TILE).enumerate() {
            let range = tile * TILE..tile * TILE + gradient.len();
            for (to, from) in gradients.iter_mut().zip(gradient) {
                *to = from.load();
            }
            for (values, slot) in values.iter_mut().zip(&self.slots) {
                for (to, from) in values.iter_mut().zip(&slot[range.clone()]) {
                    *to = from.load();
                }
            }
            for i in 0..TILE {
                let changed = (self.rule)(std::array::from_fn(|k| values[k][i]), gradients[i]);
                for (values, changed) in values.iter_mut().zip(changed) {
                    values[i] = changed;
                }
            }
            for (values, slot) in values.iter().zip(&mut self.slots) {
                for (to, &from) in slot[range.clone()].iter_mut().zip(values) {
                    *to = T::store(from);
                }
            }
        }
    }
}
