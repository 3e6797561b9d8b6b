//! Characters and their encodings: UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode.

use super::encoding::{Encoding, Found};
use graph::{Output, ShapeQuery};
use op::shapes::{integers, unchanged};
use op::{Grad, Kernel, Op, Outputs, PLAIN, Setup, binary, many, outputs, unary};
use status::{Result, invalid};
use tensor::{Bytes, DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UnicodeDecode(input: string) -> row_splits: Tsplits, char_values: int32; input_encoding: string; \
              errors: {\"strict\", \"replace\", \"ignore\"} = \"replace\"; replacement_char: int = 65533; \
              replace_control_characters: bool = false; Tsplits: {int32, int64} = int64",
        shape: |query| decode_shape(query, 2),
        grad: Grad::Stop,
        kernel: |setup| decode_kernel(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "UnicodeDecodeWithOffsets(input: string) -> row_splits: Tsplits, char_values: int32, \
              char_to_byte_starts: int64; input_encoding: string; \
              errors: {\"strict\", \"replace\", \"ignore\"} = \"replace\"; replacement_char: int = 65533; \
              replace_control_characters: bool = false; Tsplits: {int32, int64} = int64",
        shape: |query| decode_shape(query, 3),
        grad: Grad::Stop,
        kernel: |setup| decode_kernel(setup, true),
        facts: PLAIN,
    },
    Op {
        def: "UnicodeEncode(input_values: int32, input_splits: Tsplits) -> output: string; \
              errors: {\"ignore\", \"replace\", \"strict\"} = \"replace\"; \
              output_encoding: {\"UTF-8\", \"UTF-16-BE\", \"UTF-32-BE\"}; replacement_char: int = 65533; \
              Tsplits: {int32, int64} = int64",
        shape: encode_shape,
        grad: Grad::Stop,
        kernel: encode_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UnicodeTranscode(input: string) -> output: string; input_encoding: string; \
              output_encoding: {\"UTF-8\", \"UTF-16-BE\", \"UTF-32-BE\"}; \
              errors: {\"strict\", \"replace\", \"ignore\"} = \"replace\"; replacement_char: int = 65533; \
              replace_control_characters: bool = false",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: transcode_kernel,
        facts: PLAIN,
    },
];

/// Each string in another encoding.
pub fn unicode_transcode(input: &Output, input_encoding: &str, output_encoding: &str) -> Output {
    let node = input.scope().op("UnicodeTranscode").input(input).attr("input_encoding", input_encoding);
    node.attr("output_encoding", output_encoding).output()
}

/// How invalid bytes are treated.
#[derive(Clone, Copy)]
struct Policy {
    strict: bool,
    ignore: bool,
    replacement: char,
    controls: bool,
}

impl Policy {
    fn read(setup: &Setup<'_>) -> Result<Policy> {
        let (errors, replacement) = (setup.string("errors")?, setup.int("replacement_char")?);
        let replacement = u32::try_from(replacement).ok().filter(|&code| code <= 0x10_ffff);
        let replacement = replacement.ok_or_else(|| invalid!("replacement_char out of unicode codepoint range"))?;
        Ok(Policy {
            strict: errors == "strict",
            ignore: errors == "ignore",
            replacement: char::from_u32(replacement).unwrap_or(char::REPLACEMENT_CHARACTER),
            controls: setup.bool("replace_control_characters").unwrap_or(false),
        })
    }

    /// The replacement of a character; none if it is left out.
    fn apply(&self, found: Found) -> Result<Option<char>> {
        let good = match found {
            Found::Character(c) if !(self.controls && c <= '\u{1f}') => return Ok(Some(c)),
            Found::Character(_) => true,
            Found::Malformed => false,
        };
        match self.strict && !good {
            true => Err(malformed()),
            false => Ok((!self.ignore).then_some(self.replacement)),
        }
    }
}

fn malformed() -> status::Error {
    invalid!("Invalid formatting on input string")
}

fn encoding_of(setup: &Setup<'_>, attr: &str) -> Result<Encoding> {
    let name = setup.string(attr)?;
    Encoding::named(&name).ok_or_else(|| invalid!("Could not create converter for input encoding: {name}"))
}

fn decode_shape(query: &ShapeQuery<'_>, outputs: usize) -> Result<Vec<PartialShape>> {
    let strings = query.inputs[0].known().and_then(|shape| shape.checked_elements().ok());
    let mut shapes = vec![PartialShape::of_rank(1); outputs];
    shapes[0] = PartialShape::new(&[strings.map_or(-1, |count| count as i64 + 1)]);
    Ok(shapes)
}

fn encode_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let splits = query.inputs[1].dim(0);
    Ok(vec![PartialShape::new(&[splits.map_or(-1, |count| count as i64 - 1)])])
}

fn decode_kernel(setup: &Setup<'_>, with_offsets: bool) -> Result<Kernel> {
    let (policy, encoding) = (Policy::read(setup)?, encoding_of(setup, "input_encoding")?);
    let wide = setup.dtype("Tsplits")? == DType::I64;
    Ok(many(move |_, mut inputs| {
        let input = inputs.tensor(0)?;
        let (mut splits, mut codes, mut starts) = (vec![0_i64], Vec::new(), Vec::new());
        for string in input.strings()? {
            let mut start = 0;
            for (found, length) in encoding.decode(string) {
                if let Some(c) = policy.apply(found)? {
                    codes.push(c as i32);
                    starts.push(start);
                }
                start += length as i64;
            }
            splits.push(codes.len() as i64);
        }
        let splits = match wide {
            true => Tensor::vector::<i64>(&splits),
            false => Tensor::vector::<i32>(&splits.iter().map(|&split| split as i32).collect::<Vec<_>>()),
        };
        let mut outputs: Outputs = outputs![splits, Tensor::vector::<i32>(&codes)];
        if with_offsets {
            outputs.push(Tensor::vector::<i64>(&starts).into());
        }
        Ok(outputs)
    }))
}

fn encode_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (policy, encoding) = (Policy::read(setup)?, encoding_of(setup, "output_encoding")?);
    Ok(binary(move |_, values, splits| {
        let (values, splits) = (integers(&values)?, integers(&splits)?);
        check_splits(&splits, values.len())?;
        let encode = |pair: &[i64]| {
            let mut out = Vec::new();
            for &value in &values[pair[0] as usize..pair[1] as usize] {
                match u32::try_from(value).ok().and_then(char::from_u32) {
                    Some(c) => encoding.encode(c, &mut out),
                    None if policy.strict => {
                        return Err(invalid!("Code point is out of range for Unicode, or is a surrogate."));
                    }
                    None if !policy.ignore => encoding.encode(policy.replacement, &mut out),
                    None => {}
                }
            }
            Ok(Bytes::from(out))
        };
        let strings = splits.windows(2).map(encode).collect::<Result<Vec<_>>>()?;
        Tensor::from_strings([strings.len()], strings)
    }))
}

fn check_splits(splits: &[i64], count: usize) -> Result<()> {
    let (Some(&first), Some(&last)) = (splits.first(), splits.last()) else {
        return Err(invalid!("Input_splits should contain elements, but given input_values has 0 elements"));
    };
    if first != 0 {
        return Err(invalid!("First value in input_splits must be zero."));
    }
    if last != count as i64 {
        return Err(invalid!("Last value in input_splits must be equal to length of input_tensor."));
    }
    if !splits.is_sorted() {
        return Err(invalid!("Values in input_splits must be equal or in ascending order."));
    }
    Ok(())
}

fn transcode_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let policy = Policy::read(setup)?;
    let (from, to) = (encoding_of(setup, "input_encoding")?, encoding_of(setup, "output_encoding")?);
    Ok(unary(move |_, input| {
        let transcode = |string: &Bytes| {
            let mut out = Vec::with_capacity(string.len());
            for (found, _) in from.decode(string) {
                if let Some(c) = policy.apply(found)? {
                    to.encode(c, &mut out);
                }
            }
            Ok(out.into())
        };
        let strings = input.strings()?.iter().map(transcode).collect::<Result<Vec<_>>>()?;
        Tensor::from_strings(input.shape(), strings)
    }))
}
