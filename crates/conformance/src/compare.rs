//! Comparison of results with expected tensors.

use crate::expected::{Elements, Expected};
use crate::values::{spell, wide};
use tensor::{Complex64, DType, Tensor};

/// The number of wrong elements listed in a report.
const MAX_LISTED: usize = 4;

/// The default relative tolerance of a type. Integers, strings and truth values must be equal.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::C64 => 1e-5,
        DType::F16 => 2e-3,
        DType::BF16 => 1e-2,
        DType::F64 | DType::C128 => 1e-12,
        _ => 0.0,
    }
}

/// The difference between `found` and the expected tensor, if there is one.
///
/// Two numbers are equal if they differ by at most the tolerance times the sum of the expected number and the largest
/// one of the tensor, or one if that is less. NaN equals NaN.
pub fn compare(found: &Tensor, expected: &Expected, asked: Option<f64>) -> Result<(), String> {
    if found.dtype() != expected.dtype {
        return Err(format!("type {} instead of {}", found.dtype(), expected.dtype));
    }
    if matches!(expected.elements, Elements::Opaque) {
        return Ok(());
    }
    if *found.shape() != expected.shape {
        return Err(format!("shape {} instead of {}", found.shape(), expected.shape));
    }
    let tolerance = asked.unwrap_or_else(|| tolerance(expected.dtype));
    match &expected.elements {
        Elements::All(all) if found.dtype() == DType::STRING => strings(found, all),
        Elements::All(all) => {
            let places: Vec<usize> = (0..all.elements()).collect();
            elements(found, &places, all, tolerance)
        }
        Elements::Some { samples: (places, samples), sum, mix } => {
            elements(found, places, samples, tolerance)?;
            sums(found, *sum, *mix, tolerance)
        }
        Elements::Any | Elements::Opaque => Ok(()),
        Elements::None => Err("a tensor instead of none".into()),
    }
}

fn strings(found: &Tensor, expected: &Tensor) -> Result<(), String> {
    let same = |t: &Tensor| t.strings().map(<[_]>::to_vec).unwrap_or_default();
    let (found_strings, expected_strings) = (same(found), same(expected));
    let wrong = (0..found_strings.len()).filter(|&i| found_strings[i] != expected_strings[i]);
    listed(wrong.map(|i| (i, i)).collect(), found, expected)
}

fn elements(found: &Tensor, places: &[usize], expected: &Tensor, tolerance: f64) -> Result<(), String> {
    let unreadable = |error: status::Error| error.message;
    let (ours, theirs) = (wide(found).map_err(unreadable)?, wide(expected).map_err(unreadable)?);
    let scale = theirs.iter().map(|v| v.norm()).filter(|v| v.is_finite()).fold(0.0, f64::max).min(1.0);
    // Large integers would lose digits as floating-point numbers, so they are compared as text.
    let equal = |place: usize, i: usize| spell(found, place) == spell(expected, i);
    let floating = found.dtype().is_floating() || found.dtype().is_complex();
    let mut wrong = Vec::new();
    for (i, &place) in places.iter().enumerate() {
        let same = match ours.get(place) {
            Some(&value) if floating || tolerance > 0.0 => close(value, theirs[i], tolerance, scale),
            Some(_) => equal(place, i),
            None => false,
        };
        if !same {
            wrong.push((place, i));
        }
    }
    listed(wrong, found, expected)
}

fn close(found: Complex64, expected: Complex64, tolerance: f64, scale: f64) -> bool {
    let bound = tolerance * (expected.norm() + scale);
    let part = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= bound && b.is_finite();
    part(found.re, expected.re) && part(found.im, expected.im)
}

fn sums(found: &Tensor, sum: Complex64, mix: Complex64, tolerance: f64) -> Result<(), String> {
    let values = wide(found).map_err(|error| error.message)?;
    let (mut own_sum, mut own_mix, mut size) = (Complex64::default(), Complex64::default(), 0.0);
    for (i, &value) in values.iter().enumerate().filter(|(_, value)| value.re.is_finite() && value.im.is_finite()) {
        own_sum += value;
        own_mix += value * (i as f64 * 0.618_033_988_749_894_9).fract();
        size += value.norm();
    }
    let bound = tolerance.max(1e-12) * size;
    match ((own_sum - sum).norm() <= bound, (own_mix - mix).norm() <= bound) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("sum {own_sum} instead of {sum}")),
        (true, false) => Err(format!("sum weighted by position {own_mix} instead of {mix}")),
    }
}

/// The message about wrong elements, given by position, found and expected value.
fn listed(wrong: Vec<(usize, usize)>, found: &Tensor, expected: &Tensor) -> Result<(), String> {
    if wrong.is_empty() {
        return Ok(());
    }
    let tell = |&(ours, theirs): &(usize, usize)| {
        let found = if ours < found.elements() { spell(found, ours) } else { "nothing".into() };
        format!("[{ours}] is {found}, expected {}", spell(expected, theirs))
    };
    let some: Vec<String> = wrong.iter().take(MAX_LISTED).map(tell).collect();
    let more = if wrong.len() > MAX_LISTED { format!(" and {} more", wrong.len() - MAX_LISTED) } else { String::new() };
    Err(format!("{}{more}", some.join("; ")))
}
