//! Logical operations: and, or, not.

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
    /// The logical and of two tensors.
    logical_and = "LogicalAnd";
    /// The logical or of two tensors.
    logical_or = "LogicalOr";
}

unary_builders! {
    /// The logical negation of `x`.
    logical_not = "LogicalNot";
}
