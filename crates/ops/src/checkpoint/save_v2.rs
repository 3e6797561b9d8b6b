//! Writes checkpoints: one tensor after the other, and tensors of other tasks chunk by chunk, so that this task never
//! holds all of them.

use super::args::{named_slices, prefix, slice_of};
use super::pace::Doing;
use super::systems;
use io::{BundleWriter, FileSystems};
use op::{
    Inputs, Kernel, OpenedTensor, Outputs, RemoteTensor, Resources, Setup, StepEnv, TensorStream, later, poll_on,
};
use status::{Result, invalid};
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tensor::{DType, Shape, Tensor};

/// Prefix, names and slices come before the tensors.
const FIRST: usize = 3;
/// The number of tensors requested ahead of their turn; of each, at most the flow-control window arrives early.
const AHEAD: usize = 16;

pub(super) fn save_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, resources) = (systems(setup)?, setup.resources().clone());
    let kernel = later(move |ctx, inputs, done| {
        let (systems, resources, env) = (systems.clone(), resources.clone(), ctx.env.clone());
        (ctx.env.spawn)(Box::new(move || match begin(&systems, &resources, inputs, &env) {
            Ok(mut saving) => poll_on(env.spawn.clone(), move |cx| saving.poll(cx), done),
            Err(error) => done(Err(error)),
        }));
    });
    Ok(kernel.streaming_from(FIRST))
}

fn begin(systems: &FileSystems, resources: &Resources, mut inputs: Inputs, env: &Arc<StepEnv>) -> Result<Saving> {
    let prefix = prefix(&inputs.tensor(0)?)?;
    let named = named_slices(&inputs.tensor(1)?, &inputs.tensor(2)?)?;
    let tensors = inputs.len() - FIRST;
    if named.len() != tensors {
        return Err(invalid!("Got {} tensor names but {tensors} tensors.", named.len()));
    }
    let item = |(place, (name, slice)): (usize, (String, String))| {
        let value = match inputs.remote(FIRST + place) {
            Some(remote) => Source::Remote(remote),
            None => Source::Local(inputs.tensor(FIRST + place)?),
        };
        Ok(Item { name, slice, value })
    };
    let mut left: VecDeque<Item> = named.into_iter().enumerate().map(item).collect::<Result<_>>()?;
    let writer = BundleWriter::create(systems, &prefix)?.watched(Doing::Saving.watch(resources, &prefix));
    left.iter_mut().take(AHEAD).for_each(Item::request);
    Ok(Saving { writer: Some(writer), stream: None, left, env: env.clone() })
}

/// A tensor to save, and which slice of another tensor it is if `slice` is not empty.
struct Item {
    name: String,
    slice: String,
    value: Source,
}

enum Source {
    Local(Tensor),
    Remote(RemoteTensor),
}

impl Item {
    /// Requests the tensor if it is with another task.
    fn request(&mut self) {
        if let Source::Remote(remote) = &mut self.value {
            remote.request();
        }
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<OpenedTensor>> {
        match &mut self.value {
            Source::Local(tensor) => Poll::Ready(Ok(OpenedTensor::Whole((tensor.clone(), false)))),
            Source::Remote(remote) => remote.poll_open(cx),
        }
    }
}

/// A checkpoint that is being written. Dropping it before it is complete removes its files.
struct Saving {
    /// `None` when the checkpoint is complete.
    writer: Option<BundleWriter>,
    /// The tensor of another task that is being written.
    stream: Option<TensorStream>,
    left: VecDeque<Item>,
    env: Arc<StepEnv>,
}

impl Saving {
    /// Writes until it has to wait for another task.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outputs>> {
        while let Some(writer) = &mut self.writer {
            if let Some(stream) = &mut self.stream {
                let chunk = ready!(stream.poll_next(cx));
                self.env.cancel.reason().map_or(Ok(()), Err)?;
                match chunk? {
                    Some(bytes) => writer.append(&bytes)?,
                    None => {
                        writer.end()?;
                        self.stream = None;
                    }
                }
                continue;
            }
            // Requests take time, so they are sent ahead of their turn.
            if let Some(item) = self.left.get_mut(AHEAD - 1) {
                item.request();
            }
            let Some(item) = self.left.front_mut() else { break };
            self.env.cancel.reason().map_or(Ok(()), Err)?;
            let opened = ready!(item.poll_open(cx))?;
            match opened {
                OpenedTensor::Whole((_, true)) => return Poll::Ready(Ok(Outputs::new())),
                OpenedTensor::Whole((tensor, false)) => add(writer, item, &tensor)?,
                OpenedTensor::Stream(stream) => {
                    begin_stream(writer, item, stream.dtype(), stream.shape())?;
                    self.stream = Some(stream);
                }
            }
            self.left.pop_front();
        }
        let finished = self.writer.take().map_or(Ok(()), BundleWriter::finish);
        Poll::Ready(finished.map(|()| Outputs::new()))
    }
}

fn add(writer: &mut BundleWriter, item: &Item, tensor: &Tensor) -> Result<()> {
    if item.slice.is_empty() {
        return writer.add(&item.name, tensor);
    }
    let (shape, slice) = slice_of(&item.slice, tensor.shape())?;
    writer.add_slice(&item.name, &shape, &slice, tensor)
}

fn begin_stream(writer: &mut BundleWriter, item: &Item, dtype: DType, shape: &Shape) -> Result<()> {
    if item.slice.is_empty() {
        return writer.begin(&item.name, None, dtype, shape);
    }
    let (whole, slice) = slice_of(&item.slice, shape)?;
    writer.begin(&item.name, Some((&whole, &slice)), dtype, shape)
}
