//! Tensors as text in TensorFlow's two styles: a single line for messages, and indented rows for printing.

use super::number_text::{double, float};
use status::Result;
use tensor::{DType, Element, Tensor, bf16, f16};

/// The first `most` elements on one line, as assertions show them; all if it is negative.
pub(crate) fn summary(tensor: &Tensor, most: i64) -> Result<String> {
    let count = tensor.elements();
    let limit = limit_of(count, most);
    if tensor.dtype() == DType::BOOL && limit == 0 {
        return Ok(String::new());
    }
    let Some(items) = texts(tensor, limit, false)? else { return Ok(irregular(tensor, limit, false)) };
    let mut out = String::new();
    match tensor.shape().dims() {
        [] => out.push_str(&items.join(" ")),
        dims => Line { items: &items, next: 0, out: &mut out }.axis(dims, true),
    }
    if count > limit {
        out.push_str("...");
    }
    Ok(out)
}

/// Rows with indents, of each axis the first and last `ends`, as formatted strings show them; all if it is negative.
pub(crate) fn rows(tensor: &Tensor, ends: i64) -> Result<String> {
    let count = tensor.elements();
    let limit = limit_of(count, ends);
    if tensor.dtype() == DType::BOOL && limit == 0 {
        return Ok(String::new());
    }
    let Some(items) = texts(tensor, count, true)? else { return Ok(irregular(tensor, limit, true)) };
    let mut out = String::new();
    Rows { items: &items, dims: tensor.shape(), ends: limit, out: &mut out }.axis(0, 0);
    Ok(out)
}

fn limit_of(count: usize, most: i64) -> usize {
    usize::try_from(most).map_or(count, |most| most.min(count))
}

/// The first elements as texts; none if the type has no usual text.
fn texts(tensor: &Tensor, limit: usize, quoted: bool) -> Result<Option<Vec<String>>> {
    fn each<T: Element>(tensor: &Tensor, limit: usize, text: impl Fn(T) -> String) -> Result<Option<Vec<String>>> {
        Ok(Some(tensor.values::<T>()?.iter().take(limit).map(|&value| text(value)).collect()))
    }
    match tensor.dtype() {
        DType::F32 => each(tensor, limit, float),
        DType::F64 => each(tensor, limit, double),
        DType::F16 => each(tensor, limit, |value: f16| float(value.to_f32())),
        DType::BF16 => each(tensor, limit, |value: bf16| float(value.to_f32())),
        DType::I8 | DType::QI8 | DType::I4 => each(tensor, limit, |value: i8| value.to_string()),
        DType::I16 | DType::QI16 => each(tensor, limit, |value: i16| value.to_string()),
        DType::I32 => each(tensor, limit, |value: i32| value.to_string()),
        DType::I64 => each(tensor, limit, |value: i64| value.to_string()),
        DType::U8 | DType::QU8 | DType::U4 => each(tensor, limit, |value: u8| value.to_string()),
        DType::U16 | DType::QU16 => each(tensor, limit, |value: u16| value.to_string()),
        DType::U32 => each(tensor, limit, |value: u32| value.to_string()),
        DType::U64 => each(tensor, limit, |value: u64| value.to_string()),
        DType::BOOL => each(tensor, limit, |value: bool| u8::from(value).to_string()),
        DType::STRING => {
            let text = |bytes: &tensor::Bytes| match quoted {
                true => format!("\"{}\"", escaped(bytes)),
                false => escaped(bytes),
            };
            Ok(Some(tensor.strings()?.iter().take(limit).map(text).collect()))
        }
        _ => Ok(None),
    }
}

/// Types without a usual text: handles and variants describe themselves, the others are question marks.
fn irregular(tensor: &Tensor, limit: usize, bracketed: bool) -> String {
    let items: Vec<String> = if let Ok(handles) = tensor.handles() {
        let text = |handle: &tensor::ResourceHandle| {
            format!("<ResourceHandle(name={}, device={}, container={})>", handle.name, handle.device, handle.container)
        };
        handles.iter().take(limit).map(text).collect()
    } else if let Ok(variants) = tensor.variants() {
        variants.iter().take(limit).map(|variant| format!("<{variant:?}>")).collect()
    } else {
        vec!["?".to_string(); limit]
    };
    let more = if limit < tensor.elements() { "..." } else { "" };
    let text = items.join(" ") + more;
    if bracketed && tensor.shape().rank() > 0 { format!("[{text}]") } else { text }
}

/// Bytes as C writes them in a literal; those above ASCII stand for themselves.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            b'"' => out.extend(b"\\\""),
            b'\'' => out.extend(b"\\'"),
            b'\\' => out.extend(b"\\\\"),
            0..0x20 | 0x7f => out.extend(format!("\\{byte:03o}").bytes()),
            _ => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A tensor on one line, until its items are used up.
struct Line<'a> {
    items: &'a [String],
    next: usize,
    out: &'a mut String,
}

impl Line<'_> {
    fn axis(&mut self, dims: &[usize], outermost: bool) {
        match dims {
            [] => {}
            [last] => self.last_axis(*last, outermost),
            [first, rest @ ..] => {
                for _ in 0..*first {
                    if self.next == self.items.len() {
                        return;
                    }
                    self.out.push('[');
                    self.axis(rest, false);
                    self.out.push(']');
                }
            }
        }
    }

    fn last_axis(&mut self, count: usize, outermost: bool) {
        for index in 0..count {
            let Some(item) = self.items.get(self.next) else {
                if !outermost {
                    self.out.push_str("...");
                }
                return;
            };
            if index > 0 {
                self.out.push(' ');
            }
            self.out.push_str(item);
            self.next += 1;
        }
    }
}

/// A tensor in rows.
struct Rows<'a> {
    items: &'a [String],
    dims: &'a [usize],
    ends: usize,
    out: &'a mut String,
}

impl Rows<'_> {
    fn axis(&mut self, axis: usize, first: usize) {
        let Some(&count) = self.dims.get(axis) else { return self.out.push_str(&self.items[first]) };
        let inner: usize = self.dims[axis + 1..].iter().product();
        self.out.push('[');
        for index in 0..count.min(self.ends) {
            if index > 0 {
                self.gap(axis);
            }
            self.axis(axis + 1, first + index * inner);
        }
        if count > self.ends.saturating_mul(2) {
            self.gap(axis);
            self.out.push_str("...");
        }
        for index in self.ends.max(count.saturating_sub(self.ends))..count {
            self.gap(axis);
            self.axis(axis + 1, first + index * inner);
        }
        self.out.push(']');
    }

    /// The text between two items of an axis.
    fn gap(&mut self, axis: usize) {
        let rank = self.dims.len();
        if axis + 1 == rank {
            return self.out.push(' ');
        }
        self.out.extend(std::iter::repeat_n('\n', rank - axis - 1));
        self.out.extend(std::iter::repeat_n(' ', axis + 1));
    }
}
