//! Functions against a table that TensorFlow wrote (`data/functions.py`).

use half::{bf16, f16};

use crate::function::*;

/// Whether two results agree within `ulps` units in the last place, or both are below `tiny`, where TensorFlow
/// flushes to zero.
fn agree<T: Real>(found: T, expected: T, ulps: f64, epsilon: f64, tiny: f64) -> bool {
    let (found, expected) = (found.to_f64(), expected.to_f64());
    found.is_nan() && expected.is_nan()
        || found == expected
        || found.abs() < tiny && expected.abs() < tiny
        || (found - expected).abs() <= ulps * epsilon * expected.abs()
}

struct Entry<'a> {
    function: &'a str,
    rows: Vec<Vec<u64>>,
}

fn table(dtype: &str) -> Vec<Entry<'static>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut wanted = false;
    for line in include_str!("data/functions.txt").lines() {
        match line.split_once(' ') {
            Some((name, function)) if name.starts_with('f') && name.len() == 3 && !function.contains(' ') => {
                wanted = name == dtype;
                if wanted {
                    entries.push(Entry { function, rows: Vec::new() });
                }
            }
            _ if wanted => {
                let row = line.split(' ').map(|bits| u64::from_str_radix(bits, 16).unwrap()).collect();
                entries.last_mut().unwrap().rows.push(row);
            }
            _ => {}
        }
    }
    entries
}

fn unary<T: Real>(name: &str) -> Option<fn(T) -> T> {
    Some(match name {
        "exp" => T::exp,
        "expm1" => T::expm1,
        "log" => T::log,
        "log1p" => T::log1p,
        "sin" => T::sin,
        "cos" => T::cos,
        "tan" => T::tan,
        "asin" => T::asin,
        "acos" => T::acos,
        "atan" => T::atan,
        "sinh" => T::sinh,
        "cosh" => T::cosh,
        "tanh" => T::tanh,
        "asinh" => T::asinh,
        "acosh" => T::acosh,
        "atanh" => T::atanh,
        "sqrt" => T::sqrt,
        "rsqrt" => T::rsqrt,
        "reciprocal" => T::reciprocal,
        "sigmoid" => T::sigmoid,
        "softplus" => T::softplus,
        "softsign" => T::softsign,
        "elu" => T::elu,
        "selu" => T::selu,
        "erf" => T::erf,
        "erfc" => T::erfc,
        "lgamma" => T::lgamma,
        "digamma" => T::digamma,
        "erfinv" => T::erfinv,
        "ndtri" => T::ndtri,
        "dawsn" => T::dawsn,
        "expint" => T::expint,
        "fresnel_cos" => T::fresnel_cos,
        "fresnel_sin" => T::fresnel_sin,
        "spence" => T::spence,
        "bessel_j0" => T::bessel_j0,
        "bessel_j1" => T::bessel_j1,
        "bessel_y0" => T::bessel_y0,
        "bessel_y1" => T::bessel_y1,
        "bessel_i0" => T::bessel_i0,
        "bessel_i0e" => T::bessel_i0e,
        "bessel_i1" => T::bessel_i1,
        "bessel_i1e" => T::bessel_i1e,
        "bessel_k0" => T::bessel_k0,
        "bessel_k0e" => T::bessel_k0e,
        "bessel_k1" => T::bessel_k1,
        "bessel_k1e" => T::bessel_k1e,
        "floor" => T::floor,
        "ceil" => T::ceil,
        "round" => T::round,
        "sign" => T::sign,
        "absolute" => T::absolute,
        "square" => T::square,
        _ => return None,
    })
}

fn binary<T: Real>(name: &str) -> Option<fn(T, T) -> T> {
    Some(match name {
        "pow" => T::pow,
        "atan2" => T::atan2,
        "next_after" => T::next_after,
        "xlogy" => T::xlogy,
        "xlog1py" => T::xlog1py,
        "xdivy" => T::xdivy,
        "div_no_nan" => T::div_no_nan,
        "floor_div" => T::floor_div,
        "floor_mod" => T::floor_mod,
        "truncate_mod" => T::truncate_mod,
        "squared_difference" => T::squared_difference,
        "igamma" => T::igamma,
        "igammac" => T::igammac,
        "igamma_grad_a" => T::igamma_grad_a,
        "zeta" => T::zeta,
        "polygamma" => T::polygamma,
        "larger" => T::larger,
        "smaller" => T::smaller,
        _ => return None,
    })
}

/// Units in the last place that TensorFlow itself is off, and below which results count as zero.
fn tolerance(function: &str, tiny: f64) -> (f64, f64) {
    match function {
        "elu" | "selu" => (16.0, 1e-16),
        "erfc" | "lgamma" => (64.0, tiny),
        "erfinv" => (1000.0, 1e-8),
        "digamma" | "polygamma" | "zeta" | "betainc" | "igamma" | "igammac" | "dawsn" => (200.0, 1e-12),
        "spence" | "expint" => (1000.0, 1e-6),
        "igamma_grad_a" => (20_000.0, 1e-6),
        name if name.starts_with("bessel") || name.starts_with("fresnel") => (1000.0, tiny),
        _ => (4.0, tiny),
    }
}

/// Where TensorFlow's own answer is wrong, or not-a-number for want of a limit.
fn unreliable(dtype: &str, function: &str, arguments: &[f64]) -> bool {
    let (first, last) = (arguments[0], arguments[arguments.len() - 1]);
    let single = dtype == "f32";
    match function {
        "erf" | "expint" | "spence" | "dawsn" => last.abs() > 1e37,
        "erfinv" => last.abs() < 1e-3,
        "bessel_k1" | "bessel_k1e" => single && last < 1e-37,
        "bessel_y0" | "bessel_y1" => last.abs() > 50.0 || last == 0.0,
        "bessel_j0" | "bessel_j1" | "fresnel_cos" | "fresnel_sin" => last.abs() > 50.0,
        "polygamma" => single && last < 0.0,
        "igammac" => single && first < 0.01,
        _ => false,
    }
}

fn check<T: Real>(dtype: &str, from_bits: fn(u64) -> T, epsilon: f64, tiny: f64) {
    let mut wrong = Vec::new();
    for Entry { function, rows } in table(dtype) {
        for i in 0..rows[0].len() {
            let arguments: Vec<T> = rows[..rows.len() - 1].iter().map(|row| from_bits(row[i])).collect();
            let expected = from_bits(rows[rows.len() - 1][i]);
            let found = match arguments[..] {
                [x] => unary::<T>(function).map(|f| f(x)),
                [x, y] => binary::<T>(function).map(|f| f(x, y)),
                [a, b, x] => Some(betainc(a, b, x)),
                _ => None,
            };
            let Some(found) = found else { continue };
            if unreliable(dtype, function, &arguments.iter().map(|x| x.to_f64()).collect::<Vec<f64>>()) {
                continue;
            }
            let (ulps, tiny) = tolerance(function, tiny);
            if !agree(found, expected, ulps, epsilon, tiny) {
                let arguments: Vec<f64> = arguments.into_iter().map(T::to_f64).collect();
                wrong.push(format!("{function}{arguments:?} = {:e}, not {:e}", expected.to_f64(), found.to_f64()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn single_precision_as_tensorflow() {
    check("f32", |bits| f32::from_bits(bits as u32), f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE));
}

#[test]
fn double_precision_as_tensorflow() {
    check("f64", f64::from_bits, f64::EPSILON, f64::MIN_POSITIVE);
}

#[test]
fn half_conversions_are_those_of_half() {
    for bits in 0..=u16::MAX {
        let x = f16::from_bits(bits);
        assert_eq!(f16_to_f32(x).to_bits() | (0x40_0000 * u32::from(x.is_nan())), x.to_f32().to_bits());
        let x = bf16::from_bits(bits);
        assert!(bf16_to_f32(x) == x.to_f32() || x.is_nan());
    }
    for bits in (0..=u32::MAX).step_by(997) {
        let x = f32::from_bits(bits);
        if x.is_nan() {
            assert!(f32_to_f16(x).is_nan() && f32_to_bf16(x).is_nan());
        } else {
            assert_eq!(f32_to_f16(x).to_bits(), f16::from_f32(x).to_bits(), "{x:e}");
            assert_eq!(f32_to_bf16(x).to_bits(), bf16::from_f32(x).to_bits(), "{x:e}");
        }
    }
}

/// The largest error of `f` against `exact`, in units in the last place, over all exponents.
fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for bits in (0..0x7f80_0000u32).step_by(4999).flat_map(|bits| [bits, bits | 0x8000_0000]) {
        let x = f32::from_bits(bits);
        let (found, expected) = (f(x), exact(f64::from(x)));
        let rounded = expected as f32;
        assert_eq!(found.is_nan(), rounded.is_nan(), "{x:e}");
        if rounded.is_finite() && !rounded.is_nan() && rounded.abs() >= f32::MIN_POSITIVE {
            let ulp = f64::from(f32::from_bits(rounded.abs().to_bits() + 1) - rounded.abs());
            let error = (f64::from(found) - expected).abs() / ulp;
            worst = if error > worst.0 || error.is_nan() { (error, x) } else { worst };
        }
    }
    worst
}

#[test]
fn single_precision_is_within_five_units() {
    type Row = (&'static str, fn(f32) -> f32, fn(f64) -> f64);
    let functions: [Row; 12] = [
        ("exp", Real::exp, f64::exp),
        ("expm1", Real::expm1, f64::exp_m1),
        ("log", Real::log, f64::ln),
        ("log1p", Real::log1p, f64::ln_1p),
        ("tanh", Real::tanh, f64::tanh),
        ("sigmoid", Real::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ("softplus", Real::softplus, |x| if x.abs() > 13.942_385 { x.max(x.exp().min(1.0)) } else { x.exp().ln_1p() }),
        ("sin", Real::sin, f64::sin),
        ("cos", Real::cos, f64::cos),
        ("erf", Real::erf, libm::erf),
        ("erfc", Real::erfc, libm::erfc),
        ("elu", Real::elu, |x| if x < 0.0 { x.exp_m1() } else { x }),
    ];
    for (name, f, exact) in functions {
        let (error, x) = worst(f, exact);
        assert!(error < 5.0, "{name}({x:e}) is {error} units off");
    }
}

#[test]
fn integers_divide_as_python() {
    for (x, y, floor, modulo) in [(7, 3, 2, 1), (-7, 3, -3, 2), (7, -3, -3, -2), (-7, -3, 2, -1)] {
        assert_eq!((Ordered::floor_div(x, y), Ordered::floor_mod(x, y)), (floor, modulo));
    }
    assert_eq!(Ordered::floor_div(i32::MIN, -1), i32::MIN);
    assert_eq!(Ordered::floor_mod(i32::MIN, -1), 0);
    assert_eq!((Ordered::truncate_div(-7, 3), Ordered::truncate_mod(-7, 3)), (-2, -1));
    assert_eq!((Ordered::sign(-3i8), Ordered::sign(0u8), Ordered::sign(9i64)), (-1, 0, 1));
}
