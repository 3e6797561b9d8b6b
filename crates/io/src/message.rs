//! Messages whose definition is only known at run time: reading and writing of single fields.

use crate::cursor::Cursor;
use crate::fs::{FileSystems, data_loss};
pub use crate::wire::Definition;
use bytes::Bytes;
use prost::encoding::encode_varint;
use status::{Result, invalid};

/// A field of a message.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name, qualified by that of its message.
    pub full_name: String,
    /// Its number.
    pub number: u32,
    /// The type of its values.
    pub kind: Kind,
    /// True if it can have several values.
    pub is_repeated: bool,
    /// True if its values are packed.
    pub is_packed: bool,
    /// The value of a field that is absent.
    pub default: Scalar,
}

/// The type of a field, as in a FieldDescriptorProto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are those of protocol buffers
pub enum Kind {
    Double,
    Float,
    Int64,
    Uint64,
    Int32,
    Fixed64,
    Fixed32,
    Bool,
    String,
    Group,
    Message,
    Bytes,
    Uint32,
    Enum,
    Sfixed32,
    Sfixed64,
    Sint32,
    Sint64,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A value of a signed or an enum type.
    Int(i64),
    /// A value of an unsigned type.
    Uint(u64),
    /// A value of a floating type.
    Number(f64),
    /// A truth value.
    Bool(bool),
    /// A string, or an encoded message.
    Bytes(Bytes),
}

/// The definition of a message. `source` names its origin: `local://` for TensorFlow's own messages, `bytes://`
/// followed by a FileDescriptorSet message, or the name of a file with one.
pub fn definition(systems: &FileSystems, source: &[u8], message: &str) -> Result<Definition> {
    match source {
        b"" | b"local://" => Definition::own(message),
        _ => match source.strip_prefix(b"bytes://") {
            Some(set) => {
                let source = String::from_utf8_lossy(source);
                Definition::of(set, message, || {
                    invalid!(
                        "Source does not represent serialized file descriptor set proto. This may be due to a missing \
                         dependency on the file containing REGISTER_DESCRIPTOR_POOL(\"{source}\", ...);"
                    )
                })
            }
            None => {
                let name = String::from_utf8_lossy(source);
                let wrong = || invalid!("descriptor_source contains invalid FileDescriptorSet: {name}");
                Definition::of(&systems.read(&name)?, message, wrong)
            }
        },
    }
}

/// Calls `found(index, value)` for each value of the requested fields, in the order of the message.
pub fn read_fields(message: &Bytes, fields: &[Field], mut found: impl FnMut(usize, Scalar)) -> Result<()> {
    let mut cursor = Cursor(message);
    let damaged = || data_loss("Unable to parse binary protobuf");
    while !cursor.is_empty() {
        let tag = cursor.varint().filter(|tag| tag >> 3 != 0).ok_or_else(damaged)?;
        let (number, wire) = (tag >> 3, tag & 7);
        let index = fields.iter().position(|field| u64::from(field.number) == number);
        match index.map(|index| (index, fields[index].kind)) {
            Some((index, kind)) if wire == kind.wire() => {
                found(index, kind.read(&mut cursor, number, message).ok_or_else(damaged)?);
            }
            Some((index, kind)) if wire == DELIMITED => {
                let mut packed = Cursor(cursor.delimited().ok_or_else(damaged)?);
                while !packed.is_empty() {
                    found(index, kind.read(&mut packed, number, message).ok_or_else(damaged)?);
                }
            }
            _ if wire == START_GROUP => drop(cursor.group(number).ok_or_else(damaged)?),
            _ => cursor.skip(wire).ok_or_else(damaged)?,
        }
    }
    Ok(())
}

/// Appends a field with these values to a message.
pub fn write_field(field: &Field, values: &[Scalar], message: &mut Vec<u8>) {
    let tag = |wire: u64| u64::from(field.number) << 3 | wire;
    if field.is_packed {
        let mut packed = Vec::new();
        values.iter().for_each(|value| field.kind.write(value, &mut packed));
        encode_varint(tag(DELIMITED), message);
        encode_varint(packed.len() as u64, message);
        message.extend(packed);
        return;
    }
    for value in values {
        encode_varint(tag(field.kind.wire()), message);
        field.kind.write(value, message);
        if field.kind == Kind::Group {
            encode_varint(tag(END_GROUP), message);
        }
    }
}

const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const DELIMITED: u64 = 2;
const START_GROUP: u64 = 3;
const END_GROUP: u64 = 4;
const FOUR_BYTES: u64 = 5;

impl Kind {
    /// The wire encoding of values of this kind.
    fn wire(self) -> u64 {
        match self {
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => EIGHT_BYTES,
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => FOUR_BYTES,
            Kind::String | Kind::Bytes | Kind::Message => DELIMITED,
            Kind::Group => START_GROUP,
            _ => VARINT,
        }
    }

    fn read<'a>(self, cursor: &mut Cursor<'a>, number: u64, message: &'a Bytes) -> Option<Scalar> {
        let zigzag = |bits: u64| (bits >> 1) as i64 ^ -((bits & 1) as i64);
        Some(match self.wire() {
            EIGHT_BYTES => {
                let bits = u64::from_le_bytes(cursor.take(8)?.try_into().ok()?);
                match self {
                    Kind::Double => Scalar::Number(f64::from_bits(bits)),
                    Kind::Fixed64 => Scalar::Uint(bits),
                    _ => Scalar::Int(bits as i64),
                }
            }
            FOUR_BYTES => {
                let bits = u32::from_le_bytes(cursor.take(4)?.try_into().ok()?);
                match self {
                    Kind::Float => Scalar::Number(f32::from_bits(bits).into()),
                    Kind::Fixed32 => Scalar::Uint(bits.into()),
                    _ => Scalar::Int((bits as i32).into()),
                }
            }
            DELIMITED => Scalar::Bytes(message.slice_ref(cursor.delimited()?)),
            START_GROUP => Scalar::Bytes(message.slice_ref(cursor.group(number)?)),
            _ => {
                let bits = cursor.varint()?;
                match self {
                    Kind::Bool => Scalar::Bool(bits != 0),
                    Kind::Uint64 => Scalar::Uint(bits),
                    Kind::Uint32 => Scalar::Uint((bits as u32).into()),
                    Kind::Sint32 | Kind::Sint64 => Scalar::Int(zigzag(bits)),
                    Kind::Int64 => Scalar::Int(bits as i64),
                    _ => Scalar::Int((bits as i32).into()),
                }
            }
        })
    }

    fn write(self, value: &Scalar, out: &mut Vec<u8>) {
        match (self, value) {
            (Kind::Double, Scalar::Number(number)) => out.extend(number.to_le_bytes()),
            (Kind::Float, Scalar::Number(number)) => out.extend((*number as f32).to_le_bytes()),
            (Kind::Fixed64, Scalar::Uint(number)) => out.extend(number.to_le_bytes()),
            (Kind::Fixed32, Scalar::Uint(number)) => out.extend((*number as u32).to_le_bytes()),
            (Kind::Sfixed64, Scalar::Int(number)) => out.extend(number.to_le_bytes()),
            (Kind::Sfixed32, Scalar::Int(number)) => out.extend((*number as i32).to_le_bytes()),
            (Kind::Sint64, Scalar::Int(number)) => encode_varint((number << 1 ^ number >> 63) as u64, out),
            (Kind::Sint32, Scalar::Int(number)) => {
                let number = *number as i32;
                encode_varint(((number << 1 ^ number >> 31) as u32).into(), out);
            }
            (Kind::Int64, Scalar::Int(number)) => encode_varint(*number as u64, out),
            (_, Scalar::Int(number)) => encode_varint(i64::from(*number as i32) as u64, out),
            (Kind::Uint32, Scalar::Uint(number)) => encode_varint((*number as u32).into(), out),
            (_, Scalar::Uint(number)) => encode_varint(*number, out),
            (_, Scalar::Bool(value)) => encode_varint((*value).into(), out),
            (Kind::Group, Scalar::Bytes(bytes)) => out.extend_from_slice(bytes),
            (_, Scalar::Bytes(bytes)) => {
                encode_varint(bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
            (_, Scalar::Number(number)) => out.extend(number.to_le_bytes()),
        }
    }
}
