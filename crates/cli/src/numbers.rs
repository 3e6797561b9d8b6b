//! Numbers in flags. clap names the flag and the value; these functions say what is expected instead.

use std::num::IntErrorKind;
use std::str::FromStr;

/// A whole number that is not negative.
pub fn whole<T: FromStr<Err = std::num::ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => "the number is too large".to_string(),
        _ => "expected a whole number, 0 or larger".to_string(),
    })
}

/// A number that may have a fraction.
pub fn decimal(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| "expected a number, such as 0.005".to_string())
}

/// A time in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| (0.1..=86_400.0).contains(value));
    value.ok_or_else(|| "expected a number of seconds from 0.1 to 86400".to_string())
}

#[cfg(test)]
mod tests;
