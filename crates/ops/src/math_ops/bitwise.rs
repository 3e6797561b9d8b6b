//! Bitwise operations on integers.

use super::kernels::{mapping, mapping_to, pairing};
use math::lanes::{Map, Pairs};
use op::shapes::{broadcast, unchanged};
use op::{Grad, Op, PLAIN};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "BitwiseAnd(x: T, y: T) -> z: T; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}; \
              commutative",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_core!(setup, [i32, i64], T => Ok(pairing(Pairs::vector(|x: T, y: T| x & y)))),
        facts: PLAIN,
    },
    Op {
        def: "BitwiseOr(x: T, y: T) -> z: T; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}; \
              commutative",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_core!(setup, [i32, i64], T => Ok(pairing(Pairs::vector(|x: T, y: T| x | y)))),
        facts: PLAIN,
    },
    Op {
        def: "BitwiseXor(x: T, y: T) -> z: T; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}; \
              commutative",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_core!(setup, [i32, i64], T => Ok(pairing(Pairs::vector(|x: T, y: T| x ^ y)))),
        facts: PLAIN,
    },
    Op {
        def: "LeftShift(x: T, y: T) -> z: T; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_integers!(setup, setup.dtype("T")?, T => Ok(pairing(Pairs::vector(|x: T, y: T| x << distance(y, T::BITS))))),
        facts: PLAIN,
    },
    Op {
        def: "RightShift(x: T, y: T) -> z: T; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |setup| for_integers!(setup, setup.dtype("T")?, T => Ok(pairing(Pairs::vector(|x: T, y: T| x >> distance(y, T::BITS))))),
        facts: PLAIN,
    },
    Op {
        def: "Invert(x: T) -> y: T; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| for_core!(setup, [i32, i64], T => Ok(mapping(Map::vector(|x: T| !x)))),
        facts: PLAIN,
    },
    Op {
        def: "PopulationCount(x: T) -> y: uint8; T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| for_integers!(setup, setup.dtype("T")?, T => Ok(mapping_to(Map::vector(|x: T| x.count_ones() as u8)))),
        facts: PLAIN,
    },
];

binary_builders! {
    /// Bits set in both.
    bitwise_and = "BitwiseAnd";
    /// Bits set in either.
    bitwise_or = "BitwiseOr";
    /// Bits set in one of them only.
    bitwise_xor = "BitwiseXor";
    /// `x` shifted up by `y` bits.
    left_shift = "LeftShift";
    /// `x` shifted right by `y` bits; preserves the sign.
    right_shift = "RightShift";
}

unary_builders! {
    /// Inverts all bits.
    invert = "Invert";
    /// How many bits are set.
    population_count = "PopulationCount";
}

/// A valid shift distance: distances out of range are clipped.
#[inline(always)]
fn distance<T: Copy + PartialOrd + Default + TryInto<u32>>(y: T, bits: u32) -> u32 {
    if y < T::default() { 0 } else { y.try_into().unwrap_or(bits - 1).min(bits - 1) }
}
