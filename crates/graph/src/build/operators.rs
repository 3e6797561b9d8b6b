//! Arithmetic operators on outputs and plain numbers.

use crate::Output;
use crate::builtin_ops::{ADD_V2, CONST, FLOOR_DIV, FLOOR_MOD, MUL, NEG, REAL_DIV, SUB};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use tensor::{DType, Tensor, bf16, f16};

impl Output {
    /// A constant of this output's type in its scope: the form a plain number takes in an expression.
    pub fn like(&self, value: f64) -> Output {
        let tensor = match self.dtype() {
            DType::F64 => Tensor::scalar(value),
            DType::F16 => Tensor::scalar(f16::from_f64(value)),
            DType::BF16 => Tensor::scalar(bf16::from_f64(value)),
            DType::I8 => Tensor::scalar(value as i8),
            DType::I16 => Tensor::scalar(value as i16),
            DType::I32 => Tensor::scalar(value as i32),
            DType::I64 => Tensor::scalar(value as i64),
            DType::U8 => Tensor::scalar(value as u8),
            DType::U16 => Tensor::scalar(value as u16),
            DType::U32 => Tensor::scalar(value as u32),
            DType::U64 => Tensor::scalar(value as u64),
            DType::C64 => Tensor::scalar(tensor::Complex32::new(value as f32, 0.0)),
            DType::C128 => Tensor::scalar(tensor::Complex64::new(value, 0.0)),
            _ => Tensor::scalar(value as f32),
        };
        let dtype = tensor.dtype();
        self.scope().op(CONST).attr("value", tensor).attr("dtype", dtype).output()
    }

    fn binary(&self, op: &str, rhs: &Output) -> Output {
        self.scope().op(op).named(op.trim_end_matches("V2")).input(self).input(rhs).output()
    }
}

macro_rules! operators {
    ($($trait:ident, $method:ident, $op:expr;)*) => {$(
        impl $trait<&Output> for &Output {
            type Output = Output;
            fn $method(self, rhs: &Output) -> Output { self.binary($op(self), rhs) }
        }
        impl $trait<Output> for &Output {
            type Output = Output;
            fn $method(self, rhs: Output) -> Output { self.binary($op(self), &rhs) }
        }
        impl $trait<&Output> for Output {
            type Output = Output;
            fn $method(self, rhs: &Output) -> Output { self.binary($op(&self), rhs) }
        }
        impl $trait<Output> for Output {
            type Output = Output;
            fn $method(self, rhs: Output) -> Output { self.binary($op(&self), &rhs) }
        }
        impl $trait<f64> for &Output {
            type Output = Output;
            fn $method(self, rhs: f64) -> Output { self.binary($op(self), &self.like(rhs)) }
        }
        impl $trait<f64> for Output {
            type Output = Output;
            fn $method(self, rhs: f64) -> Output { self.binary($op(&self), &self.like(rhs)) }
        }
        impl $trait<&Output> for f64 {
            type Output = Output;
            fn $method(self, rhs: &Output) -> Output { rhs.like(self).binary($op(rhs), rhs) }
        }
        impl $trait<Output> for f64 {
            type Output = Output;
            fn $method(self, rhs: Output) -> Output { rhs.like(self).binary($op(&rhs), &rhs) }
        }
    )*};
}

operators! {
    Add, add, |_: &Output| ADD_V2;
    Sub, sub, |_: &Output| SUB;
    Mul, mul, |_: &Output| MUL;
    Div, div, |lhs: &Output| if lhs.dtype().is_integer() { FLOOR_DIV } else { REAL_DIV };
    Rem, rem, |_: &Output| FLOOR_MOD;
}

impl Neg for &Output {
    type Output = Output;
    fn neg(self) -> Output {
        self.scope().op(NEG).input(self).output()
    }
}

impl Neg for Output {
    type Output = Output;
    fn neg(self) -> Output {
        -&self
    }
}
