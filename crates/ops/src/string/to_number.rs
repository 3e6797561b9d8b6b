//! Text to numbers: StringToNumber.

use super::text::is_space;
use graph::Output;
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use tensor::{DType, Element, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "StringToNumber(string_tensor: string) -> output: out_type; out_type: {float, double, int32, int64, uint32, \
          uint64} = float",
    shape: unchanged,
    grad: Grad::Stop,
    kernel: to_number_kernel,
    facts: PLAIN,
}];

/// Each string as a number of this type.
pub fn string_to_number(input: &Output, dtype: DType) -> Output {
    input.scope().op("StringToNumber").input(input).attr("out_type", dtype).output()
}

fn to_number_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.dtype("out_type")? {
        DType::F32 => Ok(numbers(|text| real(text).map(|number| number.0))),
        DType::F64 => Ok(numbers(|text| real(text).map(|number| number.1))),
        DType::I32 => Ok(numbers(|text| whole(text, true)?.parse::<i32>().ok())),
        DType::I64 => Ok(numbers(|text| whole(text, true)?.parse::<i64>().ok())),
        DType::U32 => Ok(numbers(|text| whole(text, false)?.parse::<u32>().ok())),
        DType::U64 => Ok(numbers(|text| whole(text, false)?.parse::<u64>().ok())),
        _ => Err(setup.no_kernel()),
    }
}

fn numbers<T: Element>(parse: impl Fn(&str) -> Option<T> + Send + Sync + 'static) -> Kernel {
    unary(move |_, input| {
        let number = |string: &tensor::Bytes| {
            let trimmed = trimmed(string);
            std::str::from_utf8(trimmed).ok().and_then(&parse).ok_or_else(|| {
                let text = String::from_utf8_lossy(string);
                invalid!("StringToNumberOp could not correctly convert string: {text}")
            })
        };
        let numbers = input.strings()?.iter().map(number).collect::<Result<Vec<T>>>()?;
        Tensor::from_slice(input.shape(), &numbers)
    })
}

pub(crate) fn trimmed(string: &[u8]) -> &[u8] {
    let start = string.iter().position(|&byte| !is_space(byte)).unwrap_or(string.len());
    let end = string.iter().rposition(|&byte| !is_space(byte)).map_or(start, |last| last + 1);
    &string[start..end]
}

/// Digits behind a plus, or a minus where that is allowed.
pub(crate) fn whole(text: &str, signed: bool) -> Option<&str> {
    let digits = text.strip_prefix(|c| c == '+' || c == '-' && signed).unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

/// A real number as float and as double: decimal, hexadecimal, infinite or not a number.
pub(crate) fn real(text: &str) -> Option<(f32, f64)> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if let Some(hex) = digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        let whole = hex
            .bytes()
            .try_fold(0_f64, |number, byte| Some(number * 16.0 + f64::from((byte as char).to_digit(16)?)))?;
        return (!hex.is_empty()).then_some((sign as f32 * whole as f32, sign * whole));
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.' || "iInN".contains(c)) {
        return None;
    }
    Some((sign as f32 * digits.parse::<f32>().ok()?, sign * digits.parse::<f64>().ok()?))
}
