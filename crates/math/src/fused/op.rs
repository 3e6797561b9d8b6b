//! The operations a chain is made of, on one tile.

use crate::cpu::vectorize;
use crate::elementwise::{Map, Zip};
use crate::function::{Number, Ordered, Real};

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Abs,
    Square,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Exp,
    Expm1,
    Log,
    Log1p,
    Tanh,
    Sigmoid,
    Relu,
    Relu6,
    Elu,
    Selu,
    Softplus,
    Softsign,
    Sign,
    Floor,
    Ceil,
    Round,
    Erf,
    Erfc,
}

/// An operation on two values. Comparisons return one or zero; a derivative takes the incoming gradient on the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    DivNoNan,
    MulNoNan,
    Max,
    Min,
    SquaredDifference,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    /// From the input or the result of Relu.
    ReluGrad,
    /// From the result of Tanh.
    TanhGrad,
    /// From the result of Sigmoid.
    SigmoidGrad,
    /// From the result of Sqrt.
    SqrtGrad,
    /// From the result of Rsqrt.
    RsqrtGrad,
}

/// Values of one tile: as many as the tile has, or one for all.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tile<'a> {
    Many(&'a [f32]),
    One(f32),
}

impl Unary {
    /// Nanoseconds for an element, roughly.
    pub(super) fn cost(self) -> f32 {
        match self {
            Unary::Neg | Unary::Abs | Unary::Square | Unary::Relu | Unary::Relu6 | Unary::Sign => 0.05,
            Unary::Floor | Unary::Ceil | Unary::Round => 0.05,
            Unary::Sqrt | Unary::Rsqrt | Unary::Reciprocal | Unary::Softsign => 0.2,
            _ => 0.6,
        }
    }

    pub(super) fn apply(self, src: Tile, dst: &mut [f32]) {
        match self {
            Unary::Neg => map(src, dst, |x| -x),
            Unary::Abs => map(src, dst, f32::abs),
            Unary::Square => map(src, dst, |x| x * x),
            Unary::Sqrt => map(src, dst, f32::sqrt),
            Unary::Rsqrt => map(src, dst, Real::rsqrt),
            Unary::Reciprocal => map(src, dst, |x| 1.0 / x),
            Unary::Exp => map(src, dst, Real::exp),
            Unary::Expm1 => map(src, dst, Real::expm1),
            Unary::Log => map(src, dst, Real::log),
            Unary::Log1p => map(src, dst, Real::log1p),
            Unary::Tanh => map(src, dst, Real::tanh),
            Unary::Sigmoid => map(src, dst, Real::sigmoid),
            Unary::Relu => map(src, dst, |x| x.larger(0.0)),
            Unary::Relu6 => map(src, dst, |x| x.larger(0.0).smaller(6.0)),
            Unary::Elu => map(src, dst, Real::elu),
            Unary::Selu => map(src, dst, Real::selu),
            Unary::Softplus => map(src, dst, Real::softplus),
            Unary::Softsign => map(src, dst, Real::softsign),
            Unary::Sign => map(src, dst, Ordered::sign),
            Unary::Floor => map(src, dst, f32::floor),
            Unary::Ceil => map(src, dst, f32::ceil),
            Unary::Round => map(src, dst, Real::round),
            Unary::Erf => map(src, dst, Real::erf),
            Unary::Erfc => map(src, dst, Real::erfc),
        }
    }
}

impl Binary {
    /// Nanoseconds for an element, roughly.
    pub(super) fn cost(self) -> f32 {
        if matches!(self, Binary::Div | Binary::DivNoNan | Binary::SqrtGrad) { 0.2 } else { 0.08 }
    }

    pub(super) fn apply(self, a: Tile, b: Tile, dst: &mut [f32]) {
        match self {
            Binary::Add => zip(a, b, dst, |x, y| x + y),
            Binary::Sub => zip(a, b, dst, |x, y| x - y),
            Binary::Mul => zip(a, b, dst, |x, y| x * y),
            Binary::Div => zip(a, b, dst, |x, y| x / y),
            Binary::DivNoNan => zip(a, b, dst, Number::div_no_nan),
            Binary::MulNoNan => zip(a, b, dst, Number::mul_no_nan),
            Binary::Max => zip(a, b, dst, Ordered::larger),
            Binary::Min => zip(a, b, dst, Ordered::smaller),
            Binary::SquaredDifference => zip(a, b, dst, Number::squared_difference),
            Binary::Greater => zip(a, b, dst, |x, y| flag(x > y)),
            Binary::GreaterEqual => zip(a, b, dst, |x, y| flag(x >= y)),
            Binary::Less => zip(a, b, dst, |x, y| flag(x < y)),
            Binary::LessEqual => zip(a, b, dst, |x, y| flag(x <= y)),
            Binary::Equal => zip(a, b, dst, |x, y| flag(x == y)),
            Binary::NotEqual => zip(a, b, dst, |x, y| flag(x != y)),
            Binary::ReluGrad => zip(a, b, dst, |x, dy| if x > 0.0 { dy } else { 0.0 }),
            Binary::TanhGrad => zip(a, b, dst, |y, dy| dy * (1.0 - y * y)),
            Binary::SigmoidGrad => zip(a, b, dst, |y, dy| dy * y * (1.0 - y)),
            Binary::SqrtGrad => zip(a, b, dst, |y, dy| 0.5 * dy / y),
            Binary::RsqrtGrad => zip(a, b, dst, |y, dy| -0.5 * dy * (y * y * y)),
        }
    }
}

#[inline(always)]
fn flag(holds: bool) -> f32 {
    if holds { 1.0 } else { 0.0 }
}

fn map(src: Tile, dst: &mut [f32], f: impl Fn(f32) -> f32 + Copy) {
    match src {
        Tile::Many(src) => vectorize(Map { src: &src[..dst.len()], dst, f }),
        Tile::One(x) => dst.fill(f(x)),
    }
}

fn zip(a: Tile, b: Tile, dst: &mut [f32], f: impl Fn(f32, f32) -> f32 + Copy) {
    match (a, b) {
        (Tile::Many(a), Tile::Many(b)) => vectorize(Zip { a: &a[..dst.len()], b: &b[..dst.len()], dst, f }),
        (Tile::Many(src), Tile::One(y)) => vectorize(Map { src: &src[..dst.len()], dst, f: |x| f(x, y) }),
        (Tile::One(x), Tile::Many(src)) => vectorize(Map { src: &src[..dst.len()], dst, f: |y| f(x, y) }),
        (Tile::One(x), Tile::One(y)) => dst.fill(f(x, y)),
    }
}

/// Writes `a` where `cond` is not zero, `b` elsewhere.
pub(super) fn select(cond: Tile, a: Tile, b: Tile, dst: &mut [f32]) {
    let value = |tile: Tile, i: usize| match tile {
        Tile::Many(values) => values[i],
        Tile::One(x) => x,
    };
    if let (Tile::Many(cond), Tile::Many(a), Tile::Many(b)) = (cond, a, b) {
        for (((dst, &cond), &x), &y) in dst.iter_mut().zip(cond).zip(a).zip(b) {
            *dst = if cond != 0.0 { x } else { y };
        }
        return;
    }
    for (i, dst) in dst.iter_mut().enumerate() {
        *dst = if value(cond, i) != 0.0 { value(a, i) } else { value(b, i) };
    }
}
