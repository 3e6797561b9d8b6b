//! Messages known by name only become bytes and text here.

use bytes::Bytes;
use prost::Message;
use prost_reflect::text_format::FormatOptions;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use status::{Result, internal, invalid};
use std::sync::OnceLock;

/// The definition of a message. All definitions are decoded once: they never change.
fn definition(message: &str) -> Result<MessageDescriptor> {
    static ALL: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    let all = ALL.get_or_init(|| DescriptorPool::decode(proto::DESCRIPTORS).ok());
    let found = all.as_ref().and_then(|all| all.get_message_by_name(message));
    found.ok_or_else(|| internal!("No message is called {message}"))
}

pub(crate) fn parse(message: &str, text: &str) -> Result<Bytes> {
    let parsed = DynamicMessage::parse_text_format(definition(message)?, text);
    let parsed = parsed.map_err(|error| invalid!("Text is no {message}: {error}"))?;
    Ok(parsed.encode_to_vec().into())
}

pub(crate) fn print(message: &str, bytes: &[u8]) -> Result<String> {
    let decoded = DynamicMessage::decode(definition(message)?, bytes);
    let decoded = decoded.map_err(|error| invalid!("Bytes are no {message}: {error}"))?;
    let mut text = decoded.to_text_format_with_options(&FormatOptions::new().pretty(true));
    text.push('\n');
    Ok(text)
}
