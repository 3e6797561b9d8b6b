//! Tensors as text: `float[2,2] 1 2 3 4`, `string[1] "a"`, `int32[64] range(0,1)`.

use crate::generate::Generator;
use crate::text::{inside, items, unquote};
use status::{Result, invalid};
use tensor::{Bytes, Complex32, Complex64, DType, Element, Shape, Tensor, bf16, f16};

/// The type and shape of `float[2,2]`; a type alone means one element.
pub fn head(text: &str) -> Result<(DType, Shape)> {
    let bad = || invalid!("{text} is not a type and a shape");
    let (name, dims) = match text.split_once('[') {
        Some((name, rest)) => (name, rest.strip_suffix(']').ok_or_else(bad)?),
        None => (text, ""),
    };
    let dtype = DType::from_name(name).ok_or_else(bad)?;
    let shape = items(dims).into_iter().map(|dim| dim.parse().map_err(|_| bad())).collect::<Result<Shape>>()?;
    Ok((dtype, shape))
}

/// A tensor from its words. The number of values must match the shape.
pub fn tensor(words: &[&str]) -> Result<Tensor> {
    let (first, values) = words.split_first().ok_or_else(|| invalid!("a tensor begins with its type"))?;
    let (dtype, shape) = head(first)?;
    if dtype == DType::STRING {
        let strings = values.iter().map(|text| unquote(text).map(Bytes::from)).collect::<Result<Vec<_>>>()?;
        return Tensor::from_strings(shape, strings);
    }
    match values {
        [one] => match Generator::parse(one)? {
            Some(generator) => generated(dtype, shape, &generator),
            None => listed(dtype, shape, values),
        },
        _ => listed(dtype, shape, values),
    }
}

/// How an element is written, and how it is computed from a generator's numbers.
trait Written: Element {
    /// The number of generator numbers per element.
    const PARTS: usize = 1;
    fn read(text: &str) -> Option<Self>;
    fn make(parts: &[f64]) -> Self;
}

macro_rules! written {
    ($($rust:ty: |$text:ident| $read:expr, |$parts:ident| $make:expr;)*) => {$(
        impl Written for $rust {
            fn read($text: &str) -> Option<Self> { $read }
            fn make($parts: &[f64]) -> Self { $make }
        }
    )*};
}

// half and bfloat16 are converted from float, so that both languages round twice.
written! {
    f32: |text| text.parse().ok(), |parts| parts[0] as f32;
    f64: |text| text.parse().ok(), |parts| parts[0];
    f16: |text| text.parse::<f32>().ok().map(f16::from_f32), |parts| f16::from_f32(parts[0] as f32);
    bf16: |text| text.parse::<f32>().ok().map(bf16::from_f32), |parts| bf16::from_f32(parts[0] as f32);
    i8: |text| text.parse().ok(), |parts| parts[0].floor() as i8;
    i16: |text| text.parse().ok(), |parts| parts[0].floor() as i16;
    i32: |text| text.parse().ok(), |parts| parts[0].floor() as i32;
    i64: |text| text.parse().ok(), |parts| parts[0].floor() as i64;
    u8: |text| text.parse().ok(), |parts| parts[0].floor() as u8;
    u16: |text| text.parse().ok(), |parts| parts[0].floor() as u16;
    u32: |text| text.parse().ok(), |parts| parts[0].floor() as u32;
    u64: |text| text.parse().ok(), |parts| parts[0].floor() as u64;
    bool: |text| text.parse().ok(), |parts| parts[0] >= 0.5;
}

impl Written for Complex32 {
    const PARTS: usize = 2;
    fn read(text: &str) -> Option<Self> {
        complex(text).map(|value| Complex32::new(value.re as f32, value.im as f32))
    }
    fn make(parts: &[f64]) -> Self {
        Complex32::new(parts[0] as f32, parts[1] as f32)
    }
}

impl Written for Complex64 {
    const PARTS: usize = 2;
    fn read(text: &str) -> Option<Self> {
        complex(text)
    }
    fn make(parts: &[f64]) -> Self {
        Complex64::new(parts[0], parts[1])
    }
}

/// `1+2j`, `2j`, `1`, `nan+infj`.
pub fn complex(text: &str) -> Option<Complex64> {
    let Some(body) = text.strip_suffix('j') else { return text.parse().ok().map(|re| Complex64::new(re, 0.0)) };
    let bytes = body.as_bytes();
    let sign = (1..bytes.len()).rev().find(|&i| matches!(bytes[i], b'+' | b'-') && bytes[i - 1] != b'e');
    match sign {
        Some(at) => Some(Complex64::new(body[..at].parse().ok()?, body[at..].parse().ok()?)),
        None => Some(Complex64::new(0.0, body.parse().ok()?)),
    }
}

macro_rules! by_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        by_type!(@ $dtype, $T => $body;
            f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, bool, Complex32, Complex64)
    };
    (@ $dtype:expr, $T:ident => $body:expr; $($rust:ty),*) => {
        match $dtype {
            $(dtype if <$rust as Element>::stores(dtype) => { type $T = $rust; $body })*
            other => Err(invalid!("values of type {other} cannot be written")),
        }
    };
}

fn listed(dtype: DType, shape: Shape, words: &[&str]) -> Result<Tensor> {
    by_type!(dtype, T => {
        let read = |word: &&str| T::read(word).ok_or_else(|| invalid!("{word} is not a value of type {dtype}"));
        let values = words.iter().map(read).collect::<Result<Vec<T>>>()?;
        Tensor::from_slice(shape, &values)?.retyped(dtype)
    })
}

/// A tensor of numbers, which repeat; complex elements take two each.
#[cfg(test)]
pub fn numbers(dtype: DType, shape: Shape, values: &[f64]) -> Result<Tensor> {
    generated(dtype, shape, &Generator::Cycle(values.to_vec()))
}

fn generated(dtype: DType, shape: Shape, generator: &Generator) -> Result<Tensor> {
    by_type!(dtype, T => {
        let mut tensor = Tensor::zeros::<T>(shape)?;
        let count = tensor.elements() * T::PARTS;
        for (i, value) in tensor.values_mut::<T>()?.iter_mut().enumerate() {
            let part = |k: usize| generator.value(i * T::PARTS + k, count);
            *value = if T::PARTS == 2 { T::make(&[part(0), part(1)]) } else { T::make(&[part(0)]) };
        }
        tensor.retyped(dtype)
    })
}

/// The elements of a plain tensor as complex numbers, which are wide enough for comparisons.
pub fn wide(tensor: &Tensor) -> Result<Vec<Complex64>> {
    fn real<T: Element>(tensor: &Tensor, widen: impl Fn(T) -> f64) -> Result<Vec<Complex64>> {
        Ok(tensor.values::<T>()?.iter().map(|&value| Complex64::new(widen(value), 0.0)).collect())
    }
    match tensor.dtype() {
        DType::C64 => {
            Ok(tensor.values::<Complex32>()?.iter().map(|v| Complex64::new(v.re.into(), v.im.into())).collect())
        }
        DType::C128 => Ok(tensor.values::<Complex64>()?.to_vec()),
        DType::F32 => real::<f32>(tensor, f64::from),
        DType::F64 => real::<f64>(tensor, |v| v),
        DType::F16 => real::<f16>(tensor, f64::from),
        DType::BF16 => real::<bf16>(tensor, f64::from),
        DType::BOOL => real::<bool>(tensor, f64::from),
        dtype if i8::stores(dtype) => real::<i8>(tensor, f64::from),
        dtype if i16::stores(dtype) => real::<i16>(tensor, f64::from),
        dtype if i32::stores(dtype) => real::<i32>(tensor, f64::from),
        dtype if i64::stores(dtype) => real::<i64>(tensor, |v| v as f64),
        dtype if u8::stores(dtype) => real::<u8>(tensor, f64::from),
        dtype if u16::stores(dtype) => real::<u16>(tensor, f64::from),
        dtype if u32::stores(dtype) => real::<u32>(tensor, f64::from),
        dtype if u64::stores(dtype) => real::<u64>(tensor, |v| v as f64),
        other => Err(invalid!("elements of type {other} are no numbers")),
    }
}

/// One element in the notation of cases.
pub fn spell(tensor: &Tensor, index: usize) -> String {
    if let Ok(strings) = tensor.strings() {
        return format!("\"{}\"", strings[index].escape_ascii());
    }
    spell_number(tensor, index).unwrap_or_else(|_| tensor.dtype().to_string())
}

fn spell_number(tensor: &Tensor, index: usize) -> Result<String> {
    by_type!(tensor.dtype(), T => Ok(format!("{:?}", tensor.values::<T>()?[index])))
}

/// The shape in an attribute: `[2,-1]`, `[2,?]` or `?`.
pub fn partial_shape(text: &str) -> Result<tensor::PartialShape> {
    if text == "?" {
        return Ok(tensor::PartialShape::unknown());
    }
    let bad = || invalid!("{text} is not a shape");
    let dims = items(inside(text, "[", ']').ok_or_else(bad)?);
    let dim = |dim: &str| if dim == "?" { Ok(-1) } else { dim.parse().map_err(|_| bad()) };
    Ok(tensor::PartialShape::new(&dims.into_iter().map(dim).collect::<Result<Vec<i64>>>()?))
}
