//! Numbers to text: AsString.

use super::number_text::{fixed, general, scientific};
use crate::data_structures::arithmetic::described;
use graph::Output;
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use tensor::{Bytes, Complex32, Complex64, DType, Element, Tensor, bf16, f16};

pub(crate) const OPS: &[Op] = &[Op {
    def: "AsString(input: T) -> output: string; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, \
          uint16, half, uint32, uint64, complex64, complex128, bool, variant, string}; precision: int = -1; \
          scientific: bool = false; shortest: bool = false; width: int = -1; fill: string = \"\"",
    shape: unchanged,
    grad: Grad::Stop,
    kernel: as_string_kernel,
    facts: PLAIN,
}];

/// Each element as text.
pub fn as_string(input: &Output) -> Output {
    input.scope().op("AsString").input(input).output()
}

/// The format of a number: the text between `%` and the type in C.
#[derive(Clone, Copy)]
struct Format {
    flag: Option<u8>,
    width: usize,
    precision: Option<usize>,
    notation: Notation,
}

#[derive(Clone, Copy)]
enum Notation {
    Fixed,
    Scientific,
    Shortest,
}

/// Upper bound for digits and field widths, so that a graph cannot request unbounded output.
const MOST: i64 = 1 << 15;

impl Format {
    fn read(setup: &Setup<'_>, dtype: DType) -> Result<Format> {
        let (precision, width, fill) = (setup.int("precision")?, setup.int("width")?, setup.bytes("fill")?);
        let (scientific, shortest) = (setup.bool("scientific")?, setup.bool("shortest")?);
        let exact = !(dtype.is_floating() || dtype.is_complex() || dtype == DType::STRING);
        if exact && (scientific || shortest) {
            return Err(invalid!("scientific and shortest format not supported for datatype {dtype}"));
        }
        if exact && precision >= 0 {
            return Err(invalid!("precision not supported for datatype {dtype}"));
        }
        if fill.len() > 1 {
            return Err(invalid!("Fill string must be one or fewer characters"));
        }
        if scientific && shortest {
            return Err(invalid!("Cannot select both scientific and shortest notation"));
        }
        let flag = fill.first().copied();
        if flag.is_some_and(|flag| !b" +-0#".contains(&flag)) {
            return Err(invalid!("Fill argument not supported: \"{}\"", String::from_utf8_lossy(&fill)));
        }
        if precision > MOST || width > MOST {
            return Err(invalid!("precision {precision} or width {width} is larger than {MOST}"));
        }
        Ok(Format {
            flag,
            width: usize::try_from(width).unwrap_or(0),
            precision: usize::try_from(precision).ok(),
            notation: match (scientific, shortest) {
                (true, _) => Notation::Scientific,
                (_, true) => Notation::Shortest,
                _ => Notation::Fixed,
            },
        })
    }

    fn real(&self, value: f64) -> String {
        let digits = self.precision.unwrap_or(6);
        let text = match self.notation {
            Notation::Fixed => fixed(value, digits),
            Notation::Scientific => scientific(value, digits),
            Notation::Shortest => general(value, digits),
        };
        self.signed(text, value.is_finite())
    }

    /// Adds the sign and the padding of the flags; only numbers are padded with zeros.
    fn signed(&self, text: String, zeros: bool) -> String {
        let text = match (self.flag, text.starts_with('-')) {
            (Some(b'+'), false) => format!("+{text}"),
            (Some(b' '), false) => format!(" {text}"),
            _ => text,
        };
        self.padded(text, zeros)
    }

    fn padded(&self, text: String, zeros: bool) -> String {
        let missing = self.width.saturating_sub(text.len());
        match self.flag {
            Some(b'-') => text + &" ".repeat(missing),
            Some(b'0') if zeros => {
                let sign = usize::from(text.starts_with('-'));
                format!("{}{}{}", &text[..sign], "0".repeat(missing), &text[sign..])
            }
            _ => " ".repeat(missing) + &text,
        }
    }

    /// Strings are cut at the precision and padded.
    fn string(&self, string: &Bytes) -> Bytes {
        let end = string.iter().position(|&byte| byte == 0).unwrap_or(string.len());
        let text = string.slice(..end.min(self.precision.unwrap_or(usize::MAX)));
        let spaces = vec![b' '; self.width.saturating_sub(text.len())];
        match self.flag {
            Some(b'-') => [&text[..], &spaces].concat().into(),
            _ => [&spaces[..], &text].concat().into(),
        }
    }
}

fn as_string_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    let format = Format::read(setup, dtype)?;
    Ok(match dtype {
        DType::STRING if format.width == 0 => unary(|_, input| Ok(input)).free(),
        DType::STRING => unary(move |_, input| super::text::each(input, |string| format.string(string))),
        DType::VARIANT => unary(|_, input| {
            let texts =
                input.variants()?.iter().map(|variant| Ok(described(variant)?.into())).collect::<Result<_>>()?;
            Tensor::from_strings(input.shape(), texts)
        }),
        DType::BOOL => texts(|value: bool| value.to_string()),
        DType::F32 => texts(move |value: f32| format.real(value.into())),
        DType::F64 => texts(move |value: f64| format.real(value)),
        DType::F16 => texts(move |value: f16| format.real(value.to_f64())),
        DType::BF16 => texts(move |value: bf16| format.real(value.to_f64())),
        DType::C64 => texts(move |z: Complex32| format!("({},{})", format.real(z.re.into()), format.real(z.im.into()))),
        DType::C128 => texts(move |z: Complex64| format!("({},{})", format.real(z.re), format.real(z.im))),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
            // C ignores signs of numbers that cannot have one.
            let format = Format { flag: format.flag.filter(|flag| !b"+ ".contains(flag)), ..format };
            for_types!(setup, dtype, [u8, u16, u32, u64], T => Ok(texts(move |value: T| {
                format.signed(value.to_string(), true)
            })))?
        }
        _ => for_types!(setup, dtype, [i8, i16, i32, i64], T => Ok(texts(move |value: T| {
            format.signed(value.to_string(), true)
        })))?,
    })
}

fn texts<T: Element>(text: impl Fn(T) -> String + Send + Sync + 'static) -> Kernel {
    unary(move |_, input| {
        let texts = input.values::<T>()?.iter().map(|&value| text(value).into()).collect();
        Tensor::from_strings(input.shape(), texts)
    })
}
