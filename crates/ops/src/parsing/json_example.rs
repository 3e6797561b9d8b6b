//! Converts examples from JSON.

use graph::Output;
use io::example::example_from_json;
use op::shapes::unchanged;
use op::{Kernel, Op, Setup, unary};
use status::{Result, invalid};
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = parsers! {
    "DecodeJSONExample(json_examples: string) -> binary_examples: string", unchanged, kernel;
};

/// Each JSON text as an Example message.
pub fn decode_json_example(texts: &Output) -> Output {
    texts.scope().op("DecodeJSONExample").input(texts).output()
}

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, texts| {
        let message = |text: &Bytes| match example_from_json(text) {
            Ok(message) => Ok(message.into()),
            Err(error) => Err(invalid!("Error while parsing JSON: {}", error.message)),
        };
        let messages = texts.strings()?.iter().map(message).collect::<Result<Vec<Bytes>>>()?;
        Tensor::from_strings(texts.shape(), messages)
    }))
}
