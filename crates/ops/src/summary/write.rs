//! Writes summaries directly to event files.

use super::real::Real;
use super::writer_state::{SummaryWriter, now};
use super::{audio, histogram, image, scalar, text};
use crate::data_structures::named::find;
use graph::{Node, Output};
use io::event::{Event, EventWhat, is_event, is_graph, is_summary, summary_event, tensor_summary};
use op::shapes::none;
use op::{Home, Inputs, Kernel, Op, Setup, many, outputs};
use status::{Code, Error, Result, invalid, unimplemented_op};
use tensor::{Bytes, DType, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "WriteSummary(writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string); T: type; stateful",
        none, tensor_kernel;
    "WriteRawProtoSummary(writer: resource, step: int64, tensor: string); stateful", none, messages_kernel;
    "ImportEvent(writer: resource, event: string); stateful", none, event_kernel;
    "WriteScalarSummary(writer: resource, step: int64, tag: string, value: T); T: realnumbertype; stateful",
        none, scalar_kernel;
    "WriteHistogramSummary(writer: resource, step: int64, tag: string, values: T); T: {float, double, int32, uint8, \
     int16, int8, int64, bfloat16, uint16, half, uint32, uint64, bool} = float; stateful", none, histogram_kernel;
    "WriteImageSummary(writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8); \
     max_images: int >= 1 = 3; T: {uint8, double, float, half} = float; stateful", none, image_kernel;
    "WriteAudioSummary(writer: resource, step: int64, tag: string, tensor: float, sample_rate: float); \
     max_outputs: int >= 1 = 3; stateful", none, audio_kernel;
    "WriteGraphSummary(writer: resource, step: int64, tensor: string); stateful", none, graph_kernel;
};

/// Writes a tensor at a step, under a tag; `metadata` is a SummaryMetadata message, or empty.
pub fn write_summary(writer: &Output, step: &Output, tensor: &Output, tag: &Output, metadata: &Output) -> Node {
    let op = tensor.scope().op("WriteSummary").input(writer).input(step).input(tensor);
    op.input(tag).input(metadata).node()
}

/// Writes one number at a step, under a tag.
pub fn write_scalar_summary(writer: &Output, step: &Output, tag: &Output, value: &Output) -> Node {
    value.scope().op("WriteScalarSummary").input(writer).input(step).input(tag).input(value).node()
}

/// A kernel that writes the Event message that `event` builds from the other inputs.
fn writing(setup: &Setup<'_>, event: impl Fn(&mut Inputs) -> Result<Bytes> + Send + Sync + 'static) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        let writer = find::<SummaryWriter>(&home, &inputs.tensor(0)?)?;
        writer.write(event(&mut inputs)?)?;
        Ok(outputs![])
    })
    .heavy())
}

/// As the previous function, for ops whose next inputs are a step and a tag; `summary` builds a Summary message.
fn under_tag(
    setup: &Setup<'_>,
    summary: impl Fn(String, &mut Inputs) -> Result<Bytes> + Send + Sync + 'static,
) -> Result<Kernel> {
    writing(setup, move |inputs| {
        let (step, tag) = (step(inputs)?, text(&inputs.tensor(2)?.to_string_scalar()?));
        Ok(summary_event(now(), step, &summary(tag, inputs)?))
    })
}

fn step(inputs: &mut Inputs) -> Result<i64> {
    let step = inputs.tensor(1)?;
    match step.shape().rank() {
        0 => step.to_scalar(),
        _ => Err(invalid!("step must be scalar, got shape {}", step.shape())),
    }
}

fn data_loss(message: impl Into<String>) -> Error {
    Error::new(Code::DataLoss, message)
}

fn tensor_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    writing(setup, |inputs| {
        let (step, tensor) = (step(inputs)?, inputs.tensor(2)?);
        let (tag, metadata) = (inputs.tensor(3)?.to_string_scalar()?, inputs.tensor(4)?.to_string_scalar()?);
        let metadata = Some(metadata).filter(|metadata| !metadata.is_empty());
        Ok(summary_event(now(), step, &tensor_summary(&text(&tag), "", &tensor, metadata)?))
    })
}

fn messages_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    writing(setup, |inputs| {
        let (step, messages) = (step(inputs)?, inputs.tensor(2)?);
        let messages = messages.strings()?;
        if let Some(index) = messages.iter().position(|message| !is_summary(message)) {
            return Err(data_loss(format!("Bad tf.compat.v1.Summary binary proto tensor string at index {index}")));
        }
        if messages.is_empty() {
            return Event { wall_time: now(), step, ..Event::default() }.to_message();
        }
        Ok(summary_event(now(), step, &messages.concat()))
    })
}

fn event_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    writing(setup, |inputs| {
        let event = inputs.tensor(1)?.to_string_scalar()?;
        match is_event(&event) {
            true => Ok(event),
            false => Err(data_loss("Bad tf.Event binary proto tensor string")),
        }
    })
}

fn graph_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    writing(setup, |inputs| {
        let (step, graph) = (step(inputs)?, inputs.tensor(2)?.to_string_scalar()?);
        if !is_graph(&graph) {
            return Err(data_loss("Bad tf.GraphDef binary proto tensor string"));
        }
        Event { wall_time: now(), step, what: EventWhat::Graph(graph), writer: None }.to_message()
    })
}

fn scalar_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.dtype("T")? == DType::BF16 {
        return under_tag(setup, |_, _| Err(not_supported(DType::BF16)));
    }
    for_reals!(setup, setup.dtype("T")?, T => {
        under_tag(setup, |tag, inputs| {
            let value = inputs.tensor(3)?;
            let first = value.values::<T>()?.first().copied();
            let first = first.ok_or_else(|| invalid!("value must not be empty, got shape {}", value.shape()))?;
            scalar::message(tag, first)
        })
    })
}

fn not_supported(dtype: DType) -> Error {
    unimplemented_op!("SummaryFileWriter {dtype} not supported.")
}

fn histogram_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    fn kernel<T: Real>(setup: &Setup<'_>) -> Result<Kernel> {
        under_tag(setup, |tag, inputs| {
            let values: Tensor = inputs.tensor(3)?;
            let complaints = ["Nan", "Infinity"].map(|what| format!("{what} in summary histogram for: {tag}"));
            histogram::message(tag, &complaints, values.values::<T>()?)
        })
    }
    match setup.dtype("T")? {
        DType::BF16 => under_tag(setup, |tag, inputs| match inputs.tensor(3)?.elements() {
            0 => histogram::message::<f32>(tag, &Default::default(), &[]),
            _ => Err(not_supported(DType::BF16)),
        }),
        DType::BOOL => kernel::<bool>(setup),
        dtype => for_reals!(setup, dtype, T => kernel::<T>(setup)),
    }
}

fn image_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let most = image::most_images(setup)?;
    under_tag(setup, move |tag, inputs| {
        let (pictures, bad_color) = (inputs.tensor(3)?, inputs.tensor(4)?);
        image::check_color(&bad_color)?;
        image::message(&tag, &pictures, bad_color.values::<u8>()?, most)
    })
}

fn audio_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let most = audio::most_outputs(setup)?;
    under_tag(setup, move |tag, inputs| {
        let (sounds, rate) = (inputs.tensor(3)?, inputs.tensor(4)?.to_scalar::<f32>()?);
        audio::message(&tag, &sounds, rate, most)
    })
}
