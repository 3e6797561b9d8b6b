//! Tensors from JSON, from `.npy` files of NumPy, and as text.

use anyhow::{Context, Result, bail};
use flowgrid::prelude::*;
use serde_json::Value;

/// A tensor of the given type from a number, a truth value, a text, or nested lists of them.
pub fn from_json(value: &Value, dtype: DType) -> Result<Tensor> {
    let mut dims = Vec::new();
    let mut inner = value;
    while let Value::Array(items) = inner {
        dims.push(items.len());
        match items.first() {
            Some(first) => inner = first,
            None => break,
        }
    }
    let mut leaves = Vec::new();
    collect(value, &dims, &mut leaves)?;
    if dtype == DType::STRING {
        let texts: Vec<String> =
            leaves.iter().map(|leaf| leaf.as_str().map_or_else(|| leaf.to_string(), str::to_string)).collect();
        return Ok(Tensor::from(texts).reshaped(dims)?);
    }
    if dtype == DType::BOOL {
        let values: Option<Vec<bool>> = leaves.iter().map(|leaf| leaf.as_bool()).collect();
        return Ok(Tensor::from_slice(dims, &values.context("expected true or false")?)?);
    }
    numbers(&leaves, dims, dtype)
}

fn collect<'a>(value: &'a Value, dims: &[usize], leaves: &mut Vec<&'a Value>) -> Result<()> {
    match (value, dims) {
        (Value::Array(items), [length, rest @ ..]) if items.len() == *length => {
            items.iter().try_for_each(|item| collect(item, rest, leaves))
        }
        (Value::Array(_), _) | (_, [_, ..]) => {
            bail!("the lists differ in length or depth, so they do not form a tensor")
        }
        (leaf, []) => {
            leaves.push(leaf);
            Ok(())
        }
    }
}

fn numbers(leaves: &[&Value], dims: Vec<usize>, dtype: DType) -> Result<Tensor> {
    macro_rules! integers {
        ($T:ty) => {{
            let read = |leaf: &&Value| {
                let number = leaf.as_i64().map(i128::from).or_else(|| leaf.as_u64().map(i128::from));
                number.and_then(|number| <$T>::try_from(number).ok())
            };
            let values: Option<Vec<$T>> = leaves.iter().map(read).collect();
            Tensor::from_slice(dims, &values.with_context(|| format!("expected numbers of type {dtype}"))?)?
        }};
    }
    let floats = || -> Result<Vec<f64>> {
        let values: Option<Vec<f64>> = leaves.iter().map(|leaf| leaf.as_f64()).collect();
        values.context("expected numbers")
    };
    Ok(match dtype {
        DType::F32 => Tensor::from_slice(dims, &floats()?.iter().map(|&x| x as f32).collect::<Vec<_>>())?,
        DType::F64 => Tensor::from_slice(dims, &floats()?)?,
        DType::I8 => integers!(i8),
        DType::I16 => integers!(i16),
        DType::I32 => integers!(i32),
        DType::I64 => integers!(i64),
        DType::U8 => integers!(u8),
        DType::U16 => integers!(u16),
        DType::U32 => integers!(u32),
        DType::U64 => integers!(u64),
        _ => bail!("values of type {dtype} cannot be written as JSON; use @file.npy"),
    })
}

/// The array in a `.npy` file, which must be little-endian and in C order.
pub fn read(path: &str) -> Result<Tensor> {
    let bytes = crate::files::read(path)?;
    parse(&bytes).with_context(|| format!("cannot read {path} as a NumPy array"))
}

fn parse(bytes: &[u8]) -> Result<Tensor> {
    let rest = bytes.strip_prefix(b"\x93NUMPY").context("the file does not begin with \\x93NUMPY")?;
    let (version, rest) = rest.split_first_chunk::<2>().context("the file ends early")?;
    let (length, rest) = match version[0] {
        1 => rest.split_first_chunk::<2>().map(|(n, rest)| (u16::from_le_bytes(*n) as usize, rest)),
        _ => rest.split_first_chunk::<4>().map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest)),
    }
    .context("the file ends early")?;
    let (header, data) = rest.split_at_checked(length).context("the file ends early")?;
    let header = std::str::from_utf8(header).context("the header is not UTF-8 text")?;
    let kind = quoted(header, "'descr':").context("the header has no type")?;
    if header.contains("'fortran_order': True") {
        bail!("arrays in Fortran order are not supported");
    }
    let dims = between(header, "'shape': (", ")").context("the header has no shape")?;
    let dims = dims.split(',').map(str::trim).filter(|dim| !dim.is_empty()).map(str::parse::<usize>);
    let shape: Shape = dims.collect::<Result<Vec<_>, _>>().context("the shape is not a list of numbers")?.into();
    let dtype = match kind.trim_start_matches(['<', '|', '=']) {
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "b1" => DType::BOOL,
        "c8" => DType::C64,
        "c16" => DType::C128,
        other => bail!("elements of type {other} are not supported"),
    };
    let wanted = shape.checked_elements()?.checked_mul(dtype.size()).context("the shape is too large")?;
    let data = data
        .get(..wanted)
        .with_context(|| format!("the file has {} bytes of data, but its shape needs {wanted}", data.len()))?;
    let mut tensor = Tensor::zeros_of(dtype, shape)?;
    tensor.bytes_mut()?.copy_from_slice(data);
    Ok(tensor)
}

fn quoted<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    between(&text[text.find(key)? + key.len()..], "'", "'")
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let from = text.find(begin)? + begin.len();
    let to = text[from..].find(end)? + from;
    Some(&text[from..to])
}

/// The elements as nested lists, or the first 1000 of them in a line.
pub fn text(tensor: &Tensor) -> String {
    const LIMIT: usize = 1000;
    let count = tensor.elements();
    let mut leaves: Vec<String> = elements(tensor).into_iter().take(LIMIT).collect();
    if count > LIMIT {
        leaves.push(format!("… {} more", count - LIMIT));
        return leaves.join(" ");
    }
    for &dim in tensor.shape().dims().iter().rev() {
        if dim == 0 {
            return "[]".to_string();
        }
        leaves = leaves.chunks(dim).map(|row| format!("[{}]", row.join(", "))).collect();
    }
    leaves.join("")
}

fn elements(tensor: &Tensor) -> Vec<String> {
    macro_rules! try_types {
        ($($T:ty),*) => {$(
            if let Ok(values) = tensor.values::<$T>() {
                return values.iter().map(|value| value.to_string()).collect();
            }
        )*};
    }
    try_types!(f32, f64, i32, i64, bool, i8, i16, u8, u16, u32, u64);
    match tensor.strings() {
        Ok(texts) => texts.iter().map(|text| format!("{:?}", String::from_utf8_lossy(text))).collect(),
        Err(_) => vec![format!("<{}>", tensor.dtype()); tensor.elements()],
    }
}
