//! Example messages from JSON, in protobuf's JSON form.

use prost::encoding::{WireType, encode_key, encode_varint};
use serde_json::Value;
use status::{Result, invalid};

/// An Example message from its JSON form.
pub fn example_from_json(text: &[u8]) -> Result<Vec<u8>> {
    let value = serde_json::from_slice(text).map_err(|error| invalid!("{error}"))?;
    let mut message = Vec::new();
    for (name, value) in present(&value, "Example")? {
        match name.as_str() {
            "features" => delimited(&mut message, 1, &features(value)?),
            _ => return Err(unknown(name, "tensorflow.Example")),
        }
    }
    Ok(message)
}

fn features(value: &Value) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    for (name, value) in present(value, "features")? {
        if name != "feature" {
            return Err(unknown(name, "tensorflow.Features"));
        }
        for (key, value) in present(value, "feature")? {
            let mut entry = Vec::new();
            delimited(&mut entry, 1, key.as_bytes());
            delimited(&mut entry, 2, &feature(value)?);
            delimited(&mut message, 1, &entry);
        }
    }
    Ok(message)
}

fn feature(value: &Value) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    for (name, value) in present(value, "feature")? {
        let (number, list): (u32, fn(&[Value]) -> Result<Vec<u8>>) = match name.as_str() {
            "bytesList" | "bytes_list" => (1, strings),
            "floatList" | "float_list" => (2, floats),
            "int64List" | "int64_list" => (3, integers),
            _ => return Err(unknown(name, "tensorflow.Feature")),
        };
        delimited(&mut message, number, &values(value, list)?);
    }
    Ok(message)
}

fn values(value: &Value, list: fn(&[Value]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    for (name, value) in present(value, "list")? {
        match value {
            Value::Array(values) if name == "value" => message.extend(list(values)?),
            _ => return Err(unknown(name, "list")),
        }
    }
    Ok(message)
}

/// The members of an object that are not null.
fn present<'a>(value: &'a Value, what: &str) -> Result<impl Iterator<Item = (&'a String, &'a Value)>> {
    let members = match value {
        Value::Object(members) => Some(members),
        Value::Null => None,
        _ => return Err(invalid!("expected an object for {what}, got {value}")),
    };
    Ok(members.into_iter().flatten().filter(|(_, value)| !value.is_null()))
}

fn unknown(name: &str, place: &str) -> status::Error {
    invalid!("no such field: '{name}' in {place}")
}

pub(super) fn delimited(message: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    encode_key(number, WireType::LengthDelimited, message);
    encode_varint(bytes.len() as u64, message);
    message.extend_from_slice(bytes);
}

fn strings(values: &[Value]) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    for value in values {
        let decoded = value.as_str().and_then(from_base64);
        let decoded = decoded.ok_or_else(|| invalid!("invalid value {value} for bytes: not base64"))?;
        delimited(&mut message, 1, &decoded);
    }
    Ok(message)
}

fn floats(values: &[Value]) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    for value in values {
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.as_str() {
                "NaN" => Some(f64::NAN),
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                text => text.parse().ok(),
            },
            _ => None,
        };
        let number = number.ok_or_else(|| invalid!("invalid value {value} for type float"))?;
        encode_key(1, WireType::ThirtyTwoBit, &mut message);
        message.extend_from_slice(&(number as f32).to_le_bytes());
    }
    Ok(message)
}

fn integers(values: &[Value]) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    for value in values {
        let number = match value {
            Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| invalid!("invalid value {value} for type int64"))?;
        encode_key(1, WireType::Varint, &mut message);
        encode_varint(number as u64, &mut message);
    }
    Ok(message)
}

/// A double with an integral value, as an integer.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 2f64.powi(63)).then_some(number as i64)
}

/// The bytes of a base64 text of either alphabet, with or without padding.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let (mut out, mut bits, mut held) = (Vec::with_capacity(text.len() / 4 * 3 + 2), 0u32, 0);
    for &byte in text {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    (held < 6).then_some(out)
}

/// Bytes as base64 of the standard alphabet, with padding.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - part.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= part.len() { digit as char } else { '=' });
        }
    }
    text
}
