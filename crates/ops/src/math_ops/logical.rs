//! Truth values: and, or, not.

use super::kernels::{mapping, pairing};
use math::lanes::{Map, Pairs};
use op::shapes::{broadcast, unchanged};
use op::{Grad, Op, PLAIN};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "LogicalAnd(x: bool, y: bool) -> z: bool; commutative",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |_| Ok(pairing(Pairs::vector(|x: bool, y: bool| x & y))),
        facts: PLAIN,
    },
    Op {
        def: "LogicalOr(x: bool, y: bool) -> z: bool; commutative",
        shape: broadcast,
        grad: Grad::Stop,
        kernel: |_| Ok(pairing(Pairs::vector(|x: bool, y: bool| x | y))),
        facts: PLAIN,
    },
    Op {
        def: "LogicalNot(x: bool) -> y: bool",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |_| Ok(mapping(Map::vector(|x: bool| !x))),
        facts: PLAIN,
    },
];

binary_builders! {
    /// Where both hold.
    logical_and = "LogicalAnd";
    /// Where either holds.
    logical_or = "LogicalOr";
}

unary_builders! {
    /// Where `x` does not hold.
    logical_not = "LogicalNot";
}
