//! Numbers for large inputs: the same sequence here and in `update.py`.

use crate::text::{inside, items};
use status::{Result, invalid};

/// A rule that computes element `i` of `count`.
#[derive(Clone, Debug, PartialEq)]
pub enum Generator {
    /// `ramp(lo,hi)`: evenly spaced from `lo` to `hi`, both included.
    Ramp(f64, f64),
    /// `range(start,step)`.
    Range(f64, f64),
    /// `uniform(seed)` or `uniform(seed,lo,hi)`: splitmix64 numbers in `[lo, hi)`.
    Uniform(u64, f64, f64),
    /// `fill(value)`.
    Fill(f64),
    /// `cycle(a,b,c)`: these values, repeated.
    Cycle(Vec<f64>),
}

impl Generator {
    /// Parses a generator; none if the text is not one.
    pub fn parse(text: &str) -> Result<Option<Generator>> {
        let Some((name, _)) = text.split_once('(') else { return Ok(None) };
        let Some(inner) = inside(text, &format!("{name}("), ')') else { return Ok(None) };
        let bad = || invalid!("{text} is not a generator");
        let args: Vec<f64> =
            items(inner).into_iter().map(|arg| arg.parse().map_err(|_| bad())).collect::<Result<_>>()?;
        Ok(Some(match (name, args.as_slice()) {
            ("ramp", &[lo, hi]) => Generator::Ramp(lo, hi),
            ("range", &[start, step]) => Generator::Range(start, step),
            ("uniform", &[seed]) => Generator::Uniform(seed as u64, 0.0, 1.0),
            ("uniform", &[seed, lo, hi]) => Generator::Uniform(seed as u64, lo, hi),
            ("fill", &[value]) => Generator::Fill(value),
            ("cycle", values) if !values.is_empty() => Generator::Cycle(values.to_vec()),
            _ => return Err(bad()),
        }))
    }

    /// Element `index` of `count`.
    pub fn value(&self, index: usize, count: usize) -> f64 {
        let i = index as f64;
        match self {
            Generator::Ramp(lo, hi) => lo + (hi - lo) * (i / count.saturating_sub(1).max(1) as f64),
            Generator::Range(start, step) => start + step * i,
            Generator::Uniform(seed, lo, hi) => lo + (hi - lo) * splitmix(*seed, index as u64),
            Generator::Fill(value) => *value,
            Generator::Cycle(values) => values[index % values.len()],
        }
    }
}

/// Number `index` of the splitmix64 sequence of `seed`, scaled to `[0, 1)`.
fn splitmix(seed: u64, index: u64) -> f64 {
    let mut z = seed.wrapping_add((index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 * 2f64.powi(-53)
}
