//! What a reduction does with its elements.

use half::{bf16, f16};
use num_complex::Complex;

use crate::elementwise::Element;
use crate::function::{Number, Ordered, Real, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// How elements become one. Elements may be taken in any order and grouping.
pub trait Fold<T>: Copy + Send + Sync {
    /// What is known after some elements.
    type State: Element;
    /// What is known before the first.
    const START: Self::State;

    /// Takes one more element.
    fn take(state: Self::State, x: T) -> Self::State;
    /// Joins what two groups know.
    fn merge(a: Self::State, b: Self::State) -> Self::State;
    /// The result after `count` elements.
    fn finish(state: Self::State, count: usize) -> T;
}

/// A number whose sums are kept in a type that may hold more digits.
pub trait Accumulate: Number {
    /// Holds sums and products.
    type Sum: Number;
    /// Holds the sum on the way to a mean, without overflow.
    type Wide: Number;

    /// The same number.
    fn to_sum(self) -> Self::Sum;
    /// Rounded, or wrapped around.
    fn from_sum(sum: Self::Sum) -> Self;
    /// The same number.
    fn to_wide(self) -> Self::Wide;
    /// The sum divided by a count; nothing divided by nothing is not-a-number, or zero for integers.
    fn mean(sum: Self::Wide, count: usize) -> Self;
    /// The square root; of integers, cut to a whole number.
    fn root(sum: Self::Sum) -> Self;
    /// The square of the distance from zero.
    fn norm(self) -> Self::Sum;
}

macro_rules! integer {
    ($($t:ty, $wide:ty;)*) => {$(
        impl Accumulate for $t {
            type Sum = $t;
            type Wide = $wide;

            #[inline(always)]
            fn to_sum(self) -> $t {
                self
            }

            #[inline(always)]
            fn from_sum(sum: $t) -> $t {
                sum
            }

            #[inline(always)]
            fn to_wide(self) -> $wide {
                <$wide>::from(self)
            }

            fn mean(sum: $wide, count: usize) -> $t {
                if count == 0 { 0 } else { (sum / count as $wide) as $t }
            }

            fn root(sum: $t) -> $t {
                (sum as f64).sqrt() as $t
            }

            #[inline(always)]
            fn norm(self) -> $t {
                self.square()
            }
        }
    )*};
}

integer!(i8, i64; i16, i64; i32, i64; i64, i64; u8, u64; u16, u64; u32, u64; u64, u64;);

macro_rules! float {
    ($($t:ty),*) => {$(
        impl Accumulate for $t {
            type Sum = $t;
            type Wide = $t;

            #[inline(always)]
            fn to_sum(self) -> $t {
                self
            }

            #[inline(always)]
            fn from_sum(sum: $t) -> $t {
                sum
            }

            #[inline(always)]
            fn to_wide(self) -> $t {
                self
            }

            fn mean(sum: $t, count: usize) -> $t {
                sum / count as $t
            }

            fn root(sum: $t) -> $t {
                Real::sqrt(sum)
            }

            #[inline(always)]
            fn norm(self) -> $t {
                self * self
            }
        }

        impl Accumulate for Complex<$t> {
            type Sum = Complex<$t>;
            type Wide = Complex<$t>;

            #[inline(always)]
            fn to_sum(self) -> Complex<$t> {
                self
            }

            #[inline(always)]
            fn from_sum(sum: Complex<$t>) -> Complex<$t> {
                sum
            }

            #[inline(always)]
            fn to_wide(self) -> Complex<$t> {
                self
            }

            fn mean(sum: Complex<$t>, count: usize) -> Complex<$t> {
                sum / count as $t
            }

            fn root(sum: Complex<$t>) -> Complex<$t> {
                sum.sqrt()
            }

            #[inline(always)]
            fn norm(self) -> Complex<$t> {
                self * self.conj()
            }
        }
    )*};
}

float!(f32, f64);

macro_rules! small_float {
    ($t:ty, $widen:ident, $narrow:ident) => {
        impl Accumulate for $t {
            type Sum = f32;
            type Wide = f32;

            #[inline(always)]
            fn to_sum(self) -> f32 {
                $widen(self)
            }

            #[inline(always)]
            fn from_sum(sum: f32) -> $t {
                $narrow(sum)
            }

            #[inline(always)]
            fn to_wide(self) -> f32 {
                $widen(self)
            }

            fn mean(sum: f32, count: usize) -> $t {
                $narrow(sum / count as f32)
            }

            fn root(sum: f32) -> $t {
                $narrow(sum.sqrt())
            }

            #[inline(always)]
            fn norm(self) -> f32 {
                $widen(self) * $widen(self)
            }
        }
    };
}

small_float!(f16, f16_to_f32, f32_to_f16);
small_float!(bf16, bf16_to_f32, f32_to_bf16);

macro_rules! fold {
    ($(#[$doc:meta])* $name:ident<$t:ident: $bound:ident>, $state:ty, $start:expr, $take:expr, $merge:expr, $finish:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<$t: $bound> Fold<$t> for $name {
            type State = $state;
            const START: $state = $start;

            #[inline(always)]
            fn take(state: $state, x: $t) -> $state {
                $take(state, x)
            }

            #[inline(always)]
            fn merge(a: $state, b: $state) -> $state {
                $merge(a, b)
            }

            #[inline(always)]
            fn finish(state: $state, count: usize) -> $t {
                $finish(state, count)
            }
        }
    };
}

fold!(
    /// The sum.
    Sum<T: Accumulate>, T::Sum, T::Sum::ZERO,
    |sum: T::Sum, x: T| sum.add(x.to_sum()), T::Sum::add, |sum, _| T::from_sum(sum)
);
fold!(
    /// The arithmetic mean.
    Mean<T: Accumulate>, T::Wide, T::Wide::ZERO,
    |sum: T::Wide, x: T| sum.add(x.to_wide()), T::Wide::add, T::mean
);
fold!(
    /// The product.
    Prod<T: Accumulate>, T::Sum, T::Sum::ONE,
    |product: T::Sum, x: T| product.mul(x.to_sum()), T::Sum::mul, |product, _| T::from_sum(product)
);
fold!(
    /// The square root of the sum of squares.
    EuclideanNorm<T: Accumulate>, T::Sum, T::Sum::ZERO,
    |sum: T::Sum, x: T| sum.add(x.norm()), T::Sum::add, |sum, _| T::root(sum)
);
fold!(
    /// The largest element; not-a-number if there is one.
    Max<T: Ordered>, T, T::LOWEST, T::larger, T::larger, |largest, _| largest
);
fold!(
    /// The smallest element; not-a-number if there is one.
    Min<T: Ordered>, T, T::HIGHEST, T::smaller, T::smaller, |smallest, _| smallest
);

/// Whether all elements are true.
#[derive(Clone, Copy, Debug)]
pub struct All;

impl Fold<bool> for All {
    type State = bool;
    const START: bool = true;

    #[inline(always)]
    fn take(state: bool, x: bool) -> bool {
        state & x
    }

    #[inline(always)]
    fn merge(a: bool, b: bool) -> bool {
        a & b
    }

    #[inline(always)]
    fn finish(state: bool, _: usize) -> bool {
        state
    }
}

/// Whether any element is true.
#[derive(Clone, Copy, Debug)]
pub struct Any;

impl Fold<bool> for Any {
    type State = bool;
    const START: bool = false;

    #[inline(always)]
    fn take(state: bool, x: bool) -> bool {
        state | x
    }

    #[inline(always)]
    fn merge(a: bool, b: bool) -> bool {
        a | b
    }

    #[inline(always)]
    fn finish(state: bool, _: usize) -> bool {
        state
    }
}
