//! Readers of files whose names are taken from a queue.

mod format;
pub(crate) mod record_input;
mod state;
pub(crate) mod whole_file;

pub use self::whole_file::{matching_files, read_file, write_file};

use self::format::Format;
use self::state::{Reader, Request};
use crate::checkpoint::systems;
use crate::data_structures::named::{Unnamed, find, maker};
use crate::data_structures::queue::state::Queue;
use crate::data_structures::queue::two_strings;
use crate::data_structures::waiting::answering;
use graph::{Output, Scope};
use op::shapes::{none, scalar, unknown};
use op::{Home, Inputs, Kernel, Op, Outputs, PLAIN, Setup, later, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = rows! {
    "WholeFileReader() -> reader_handle: Ref(string); container: string = \"\"; shared_name: string = \"\"; \
     stateful", two_strings, reader_kernel;
    "WholeFileReaderV2() -> reader_handle: resource; container: string = \"\"; shared_name: string = \"\"; \
     stateful", scalar, reader_kernel;
    "TextLineReader() -> reader_handle: Ref(string); skip_header_lines: int = 0; container: string = \"\"; \
     shared_name: string = \"\"; stateful", two_strings, reader_kernel, PLAIN.removed_in(26, "Use TextLineReaderV2");
    "TextLineReaderV2() -> reader_handle: resource; skip_header_lines: int = 0; container: string = \"\"; \
     shared_name: string = \"\"; stateful", scalar, reader_kernel;
    "FixedLengthRecordReader() -> reader_handle: Ref(string); header_bytes: int = 0; record_bytes: int; \
     footer_bytes: int = 0; hop_bytes: int = 0; container: string = \"\"; shared_name: string = \"\"; stateful",
        two_strings, reader_kernel, PLAIN.removed_in(26, "Use FixedLengthRecordReaderV2");
    "FixedLengthRecordReaderV2() -> reader_handle: resource; header_bytes: int = 0; record_bytes: int; \
     footer_bytes: int = 0; hop_bytes: int = 0; container: string = \"\"; shared_name: string = \"\"; \
     encoding: string = \"\"; stateful", scalar, reader_kernel;
    "TFRecordReader() -> reader_handle: Ref(string); container: string = \"\"; shared_name: string = \"\"; \
     compression_type: string = \"\"; stateful", two_strings, reader_kernel, PLAIN.removed_in(26, "Use TFRecordReaderV2");
    "TFRecordReaderV2() -> reader_handle: resource; container: string = \"\"; shared_name: string = \"\"; \
     compression_type: string = \"\"; stateful", scalar, reader_kernel;
    "IdentityReader() -> reader_handle: Ref(string); container: string = \"\"; shared_name: string = \"\"; stateful",
        two_strings, reader_kernel, PLAIN.removed_in(26, "Use IdentityReaderV2");
    "IdentityReaderV2() -> reader_handle: resource; container: string = \"\"; shared_name: string = \"\"; stateful",
        scalar, reader_kernel;
    "ReaderRead(reader_handle: Ref(string), queue_handle: Ref(string)) -> key: string, value: string",
        scalar, read_kernel;
    "ReaderReadV2(reader_handle: resource, queue_handle: resource) -> key: string, value: string; stateful",
        scalar, read_kernel;
    "ReaderReadUpTo(reader_handle: Ref(string), queue_handle: Ref(string), num_records: int64) -> keys: string, \
     values: string", unknown, read_up_to_kernel;
    "ReaderReadUpToV2(reader_handle: resource, queue_handle: resource, num_records: int64) -> keys: string, \
     values: string; stateful", unknown, read_up_to_kernel;
    "ReaderNumRecordsProduced(reader_handle: Ref(string)) -> records_produced: int64", scalar, records_kernel;
    "ReaderNumRecordsProducedV2(reader_handle: resource) -> records_produced: int64; stateful",
        scalar, records_kernel;
    "ReaderNumWorkUnitsCompleted(reader_handle: Ref(string)) -> units_completed: int64", scalar, finished_kernel;
    "ReaderNumWorkUnitsCompletedV2(reader_handle: resource) -> units_completed: int64; stateful",
        scalar, finished_kernel;
    "ReaderReset(reader_handle: Ref(string))", none, reset_kernel;
    "ReaderResetV2(reader_handle: resource); stateful", none, reset_kernel;
    "ReaderSerializeState(reader_handle: Ref(string)) -> state: string", scalar, serialize_kernel;
    "ReaderSerializeStateV2(reader_handle: resource) -> state: string; stateful", scalar, serialize_kernel;
    "ReaderRestoreState(reader_handle: Ref(string), state: string)", none, restore_kernel;
    "ReaderRestoreStateV2(reader_handle: resource, state: string); stateful", none, restore_kernel;
};

/// A reader of the lines of text files.
pub fn text_line_reader(scope: &Scope, skip_header_lines: i64) -> Output {
    scope.op("TextLineReaderV2").attr("skip_header_lines", skip_header_lines).output()
}

/// A reader of the records of TensorFlow's record files.
pub fn tf_record_reader(scope: &Scope) -> Output {
    scope.op("TFRecordReaderV2").output()
}

/// A reader of whole files.
pub fn whole_file_reader(scope: &Scope) -> Output {
    scope.op("WholeFileReaderV2").output()
}

/// The next record and its key. File names are taken from the queue as they are needed.
pub fn reader_read(reader: &Output, queue: &Output) -> (Output, Output) {
    let node = reader.scope().op("ReaderReadV2").input(reader).input(queue).node();
    (node.output(0), node.output(1))
}

fn reader_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let name = format!("{} '{}'", setup.def().op.trim_end_matches("V2"), setup.name());
    let (format, systems) = (Arc::new(Format::of(setup)?), systems(setup)?);
    let make = move |_: &str| Ok(Reader::new(name.clone(), format.clone(), systems.clone()));
    maker(setup, Unnamed::Private, make, |_| Ok(()))
}

/// A kernel that reads from the reader and the queue of its first two inputs.
fn reading(
    setup: &Setup<'_>,
    up_to: impl Fn(&mut Inputs) -> Result<Option<usize>> + Send + Sync + 'static,
) -> Result<Kernel> {
    let home = Home::of(setup);
    let prepare = move |inputs: &mut Inputs| {
        let reader = find::<Reader>(&home, &inputs.tensor(0)?)?;
        let up_to = up_to(inputs)?;
        let queue = find::<Queue>(&home, &inputs.tensor(1)?)?;
        Ok((reader, Request::new(queue, up_to)))
    };
    Ok(later(move |ctx, mut inputs, done| match prepare(&mut inputs) {
        Ok((reader, request)) => reader.read(ctx.env, request, answering(done)),
        Err(error) => done(Err(error)),
    }))
}

fn read_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    reading(setup, |_| Ok(None))
}

fn read_up_to_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    reading(setup, |inputs| {
        let count = inputs.tensor(2)?.to_scalar::<i64>()?;
        let count = usize::try_from(count).map_err(|_| invalid!("num_records must be >= 0, but is {count}"))?;
        Ok(Some(count))
    })
}

/// A kernel that asks the reader of its first input something it knows.
fn with_reader(
    setup: &Setup<'_>,
    run: impl Fn(&Reader, &mut Inputs) -> Result<Outputs> + Send + Sync + 'static,
) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        let reader = find::<Reader>(&home, &inputs.tensor(0)?)?;
        run(&reader, &mut inputs)
    })
    .free())
}

fn records_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_reader(setup, |reader, _| Ok(outputs![Tensor::scalar(reader.records())]))
}

fn finished_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_reader(setup, |reader, _| Ok(outputs![Tensor::scalar(reader.finished())]))
}

fn reset_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_reader(setup, |reader, _| {
        reader.reset();
        Ok(outputs![])
    })
}

fn serialize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_reader(setup, |reader, _| Ok(outputs![Tensor::string(reader.serialize()?)]))
}

fn restore_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_reader(setup, |reader, inputs| {
        let state = inputs.tensor(1)?;
        if state.shape().rank() != 0 {
            return Err(invalid!("Reader state must be scalar, but had shape: {}", state.shape()));
        }
        reader.restore(&state.to_string_scalar()?)?;
        Ok(outputs![])
    })
}
