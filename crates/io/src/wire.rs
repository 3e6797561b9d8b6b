//! Conversion of messages that are selected by name to bytes and text.

use crate::fs::data_loss;
use crate::message::{Field, Kind, Scalar};
use bytes::Bytes;
use prost::Message;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{Cardinality, DescriptorPool, DynamicMessage, MessageDescriptor, Value};
use status::{Result, internal, invalid};
use std::sync::OnceLock;

/// The definition of a message. All definitions are decoded once, because they never change.
fn definition(message: &str) -> Result<MessageDescriptor> {
    static ALL: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    let all = ALL.get_or_init(|| DescriptorPool::decode(proto::DESCRIPTORS).ok());
    let found = all.as_ref().and_then(|all| all.get_message_by_name(message));
    found.ok_or_else(|| internal!("Unknown message type {message}"))
}

pub(crate) fn parse(message: &str, text: &str) -> Result<Bytes> {
    let parsed = DynamicMessage::parse_text_format(definition(message)?, text);
    let parsed = parsed.map_err(|error| invalid!("Cannot parse text as {message}: {error}"))?;
    Ok(parsed.encode_to_vec().into())
}

pub(crate) fn print(message: &str, bytes: &[u8]) -> Result<String> {
    let decoded = DynamicMessage::decode(definition(message)?, bytes);
    let decoded = decoded.map_err(|error| invalid!("Cannot parse bytes as {message}: {error}"))?;
    let mut text = decoded.to_text_format_with_options(&FormatOptions::new().pretty(true));
    text.push('\n');
    Ok(text)
}

/// The definition of a message.
#[derive(Clone)]
pub struct Definition(MessageDescriptor);

impl Definition {
    /// One of TensorFlow's own messages.
    pub(crate) fn own(message: &str) -> Result<Definition> {
        definition(message).map(Definition).map_err(|_| not_defined(message))
    }

    /// A message of a FileDescriptorSet message; `wrong` is the error if the bytes are not one.
    pub(crate) fn of(set: &[u8], message: &str, wrong: impl FnOnce() -> status::Error) -> Result<Definition> {
        let pool = DescriptorPool::decode(set).map_err(|_| wrong())?;
        pool.get_message_by_name(message).map(Definition).ok_or_else(|| not_defined(message))
    }

    /// A field by its name, or an extension by its full name.
    pub fn field(&self, name: &str) -> Option<Field> {
        macro_rules! described {
            ($field:expr, $default:path) => {{
                let field = $field;
                let is_repeated = field.cardinality() == Cardinality::Repeated;
                let default = if is_repeated { field.kind().default_value() } else { $default(&field) };
                Field {
                    full_name: field.full_name().to_string(),
                    number: field.number(),
                    kind: if field.is_group() { Kind::Group } else { kind(&field.kind()) },
                    is_repeated,
                    is_packed: field.is_packed(),
                    default: scalar(default),
                }
            }};
        }
        if let Some(field) = self.0.get_field_by_name(name) {
            return Some(described!(field, Value::default_value_for_field));
        }
        let extension = self.0.get_extension_by_full_name(name)?;
        Some(described!(extension, Value::default_value_for_extension))
    }

    /// Converts a message from text to bytes.
    pub fn from_text(&self, text: &[u8]) -> Result<Bytes> {
        let text = std::str::from_utf8(text).ok();
        let message = text.and_then(|text| DynamicMessage::parse_text_format(self.0.clone(), text).ok());
        let message = message.ok_or_else(|| data_loss("Unable to parse text protobuf"))?;
        Ok(message.encode_to_vec().into())
    }

    /// Decodes a message and encodes it again.
    pub fn sanitized(&self, message: Bytes) -> Result<Bytes> {
        let message = DynamicMessage::decode(self.0.clone(), message);
        Ok(message.map_err(|_| data_loss("Unable to parse binary protobuf"))?.encode_to_vec().into())
    }
}

fn not_defined(message: &str) -> status::Error {
    invalid!("No descriptor found for message type {message}")
}

fn kind(kind: &prost_reflect::Kind) -> Kind {
    use prost_reflect::Kind as Theirs;
    match kind {
        Theirs::Double => Kind::Double,
        Theirs::Float => Kind::Float,
        Theirs::Int32 => Kind::Int32,
        Theirs::Int64 => Kind::Int64,
        Theirs::Uint32 => Kind::Uint32,
        Theirs::Uint64 => Kind::Uint64,
        Theirs::Sint32 => Kind::Sint32,
        Theirs::Sint64 => Kind::Sint64,
        Theirs::Fixed32 => Kind::Fixed32,
        Theirs::Fixed64 => Kind::Fixed64,
        Theirs::Sfixed32 => Kind::Sfixed32,
        Theirs::Sfixed64 => Kind::Sfixed64,
        Theirs::Bool => Kind::Bool,
        Theirs::String => Kind::String,
        Theirs::Bytes => Kind::Bytes,
        Theirs::Message(_) => Kind::Message,
        Theirs::Enum(_) => Kind::Enum,
    }
}

/// A default value; for messages, which have none, an empty one.
fn scalar(value: Value) -> Scalar {
    match value {
        Value::Bool(value) => Scalar::Bool(value),
        Value::I32(value) | Value::EnumNumber(value) => Scalar::Int(value.into()),
        Value::I64(value) => Scalar::Int(value),
        Value::U32(value) => Scalar::Uint(value.into()),
        Value::U64(value) => Scalar::Uint(value),
        Value::F32(value) => Scalar::Number(value.into()),
        Value::F64(value) => Scalar::Number(value),
        Value::String(value) => Scalar::Bytes(value.into()),
        Value::Bytes(value) => Scalar::Bytes(value),
        _ => Scalar::Bytes(Bytes::new()),
    }
}
