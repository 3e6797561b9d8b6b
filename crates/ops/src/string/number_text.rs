//! Formats numbers like C's `printf`, which TensorFlow uses.

/// As `%.<precision>e`.
pub(crate) fn scientific(value: f64, precision: usize) -> String {
    match special(value) {
        Some(text) => text,
        None => with_exponent(&format!("{value:.precision$e}")),
    }
}

/// As `%.<precision>f`.
pub(crate) fn fixed(value: f64, precision: usize) -> String {
    special(value).unwrap_or_else(|| format!("{value:.precision$}"))
}

/// As `%.<precision>g`: the shorter of the two, without zeros at the end.
pub(crate) fn general(value: f64, precision: usize) -> String {
    if let Some(text) = special(value) {
        return text;
    }
    let precision = precision.max(1);
    let digits = format!("{value:.*e}", precision - 1);
    let exponent: i64 = digits.rsplit('e').next().and_then(|exponent| exponent.parse().ok()).unwrap_or(0);
    if exponent < -4 || exponent >= precision as i64 {
        let (mantissa, exponent) = digits.rsplit_once('e').unwrap_or((&digits, "0"));
        return with_exponent(&format!("{}e{exponent}", trimmed(mantissa)));
    }
    let decimals = (precision as i64 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}")).to_string()
}

/// The shortest of 6 and 9 digits that reads back as the same float.
pub(crate) fn float(value: f32) -> String {
    let short = general(value.into(), 6);
    if short.parse() == Ok(value) || value.is_nan() { short } else { general(value.into(), 9) }
}

/// The shortest of 15 and 17 digits that reads back as the same double.
pub(crate) fn double(value: f64) -> String {
    let short = general(value, 15);
    if short.parse() == Ok(value) || value.is_nan() { short } else { general(value, 17) }
}

fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some(if value.is_sign_negative() { "-nan" } else { "nan" }.to_string());
    }
    value.is_infinite().then(|| if value > 0.0 { "inf" } else { "-inf" }.to_string())
}

/// Rust's `1e5` as C's `1e+05`.
fn with_exponent(text: &str) -> String {
    let Some((mantissa, exponent)) = text.rsplit_once('e') else { return text.to_string() };
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Without zeros behind the point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
