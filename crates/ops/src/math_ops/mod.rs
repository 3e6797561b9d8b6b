//! Mathematical ops: element by element, reductions, matrix products.

#[macro_use]
mod analytic;
#[macro_use]
mod builders;
#[macro_use]
pub(crate) mod core_types;

pub(crate) mod add_n;
pub(crate) mod arg;
pub(crate) mod arithmetic;
mod axes;
pub(crate) mod batch_matmul;
pub(crate) mod bessel;
pub(crate) mod bitwise;
pub(crate) mod broadcast_grad;
pub(crate) mod cast;
pub(crate) mod clip;
pub(crate) mod compare;
pub(crate) mod complex;
pub(crate) mod composition;
pub(crate) mod division;
pub(crate) mod exponential;
mod float8;
mod fused_matmul;
pub(crate) mod gamma;
mod kernels;
pub(crate) mod logical;
pub(crate) mod matmul;
pub(crate) mod power;
pub(crate) mod reduce;
mod reduce_grad;
pub(crate) mod rounding;
pub(crate) mod scan;
pub(crate) mod select;
pub(crate) mod special;
mod strings;
pub(crate) mod trigonometry;
pub(crate) mod unary;

pub use self::add_n::add_n;
pub use self::arg::{argmax, argmin};
pub use self::arithmetic::{add, maximum, minimum, mul, mul_no_nan, squared_difference, sub};
pub use self::batch_matmul::{adjoint_matmul, batch_matmul};
pub use self::bessel::{
    bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, bessel_j0, bessel_j1, bessel_k0, bessel_k0e, bessel_k1, bessel_k1e,
    bessel_y0, bessel_y1,
};
pub use self::bitwise::{bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, population_count, right_shift};
pub use self::cast::cast;
pub use self::clip::clip_by_value;
pub use self::compare::{approximate_equal, equal, greater, greater_equal, less, less_equal, not_equal};
pub use self::complex::{angle, complex, complex_abs, conj, imag, real};
pub use self::division::{div, div_no_nan, floor_div, floor_mod, real_div, truncate_div, truncate_mod, xdivy};
pub use self::exponential::{
    acosh, asinh, atanh, cosh, exp, expm1, log, log1p, sigmoid, sigmoid_grad, sinh, tanh, tanh_grad, xlog1py, xlogy,
};
pub use self::gamma::{betainc, igamma, igamma_grad_a, igammac, polygamma, zeta};
pub use self::logical::{logical_and, logical_not, logical_or};
pub use self::matmul::{matmul, matmul_with};
pub use self::power::pow;
pub use self::reduce::{
    Axes, euclidean_norm, reduce_all, reduce_any, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum,
};
pub use self::rounding::{ceil, floor, is_finite, is_inf, is_nan, next_after, rint, round};
pub use self::scan::{Scan, cumprod, cumsum, cumulative_logsumexp};
pub use self::select::{select, select_v2};
pub use self::special::{dawsn, digamma, erf, erfc, erfinv, expint, fresnel_cos, fresnel_sin, lgamma, ndtri, spence};
pub use self::trigonometry::{acos, asin, atan, atan2, cos, sin, tan};
pub use self::unary::{abs, reciprocal, reciprocal_grad, rsqrt, rsqrt_grad, sign, sqrt, sqrt_grad, square};

pub(crate) use kernels::run_map;
use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[
    add_n::OPS,
    arg::OPS,
    arithmetic::OPS,
    batch_matmul::OPS,
    bessel::OPS,
    bitwise::OPS,
    cast::OPS,
    clip::OPS,
    compare::OPS,
    complex::OPS,
    composition::OPS,
    division::OPS,
    exponential::OPS,
    fused_matmul::OPS,
    gamma::OPS,
    logical::OPS,
    matmul::OPS,
    power::OPS,
    reduce::OPS,
    rounding::OPS,
    scan::OPS,
    select::OPS,
    special::OPS,
    trigonometry::OPS,
    unary::OPS,
];
