//! Forms in which several iterators save parts of their state.

use crate::{Element, Input, StateReader, StateWriter, full_name};
use status::Result;
use std::sync::Arc;
use tensor::Tensor;

/// Writes tensors under `key[0]`, `key[1]`, …
pub(crate) fn write_list(writer: &mut StateWriter, prefix: &str, key: &str, tensors: &[Tensor]) {
    for (index, tensor) in tensors.iter().enumerate() {
        writer.tensor(prefix, &format!("{key}[{index}]"), tensor.clone());
    }
}

/// Reads `count` tensors that `write_list` wrote.
pub(crate) fn read_list(reader: &StateReader, prefix: &str, key: &str, count: usize) -> Result<Element> {
    (0..count).map(|index| reader.tensor(prefix, &format!("{key}[{index}]"))).collect()
}

/// Writes an input, or `input_impl_empty` without a value if it has ended.
pub(crate) fn write_input(writer: &mut StateWriter, prefix: &str, input: &Input) -> Result<()> {
    write_input_as(writer, prefix, "input_impl_empty", input)
}

/// Restores what `write_input` wrote.
pub(crate) fn read_input(reader: &Arc<StateReader>, prefix: &str, input: &mut Input) -> Result<()> {
    read_input_as(reader, prefix, "input_impl_empty", input)
}

/// As `write_input`, with another key.
pub(crate) fn write_input_as(writer: &mut StateWriter, prefix: &str, key: &str, input: &Input) -> Result<()> {
    if input.has_ended() {
        writer.string(prefix, &full_name(prefix, key), "");
    }
    input.save_present(writer)
}

/// Restores what `write_input_as` wrote.
pub(crate) fn read_input_as(reader: &Arc<StateReader>, prefix: &str, key: &str, input: &mut Input) -> Result<()> {
    if reader.contains(prefix, key) {
        input.end();
    }
    input.restore_present(reader)
}

/// Reads how many there are of something that is saved only if there is any.
pub(crate) fn read_size(reader: &StateReader, prefix: &str, key: &str) -> Result<usize> {
    if reader.contains(prefix, key) { reader.count(prefix, key) } else { Ok(0) }
}
