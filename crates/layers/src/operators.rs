//! `+ - * /` between outputs and variables.

use crate::Variable;
use graph::Output;
use std::ops::{Add, Div, Mul, Sub};

macro_rules! operators {
    ($($trait:ident, $method:ident;)*) => {$(
        impl $trait<&Variable> for &Output {
            type Output = Output;
            fn $method(self, rhs: &Variable) -> Output { self.$method(rhs.value()) }
        }
        impl $trait<&Variable> for Output {
            type Output = Output;
            fn $method(self, rhs: &Variable) -> Output { self.$method(rhs.value()) }
        }
        impl $trait<&Output> for &Variable {
            type Output = Output;
            fn $method(self, rhs: &Output) -> Output { self.value().$method(rhs) }
        }
        impl $trait<Output> for &Variable {
            type Output = Output;
            fn $method(self, rhs: Output) -> Output { self.value().$method(rhs) }
        }
        impl $trait<&Variable> for &Variable {
            type Output = Output;
            fn $method(self, rhs: &Variable) -> Output { self.value().$method(rhs.value()) }
        }
        impl $trait<f64> for &Variable {
            type Output = Output;
            fn $method(self, rhs: f64) -> Output { self.value().$method(rhs) }
        }
        impl $trait<&Variable> for f64 {
            type Output = Output;
            fn $method(self, rhs: &Variable) -> Output { self.$method(rhs.value()) }
        }
    )*};
}

operators! {
    Add, add;
    Sub, sub;
    Mul, mul;
    Div, div;
}
