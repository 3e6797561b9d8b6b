//! Toy ops, and graphs written as text: `name @job:task = Op input input; …`.

use crate::Worker;
use graph::{AttrValue, GraphDef, NodeDef, RendezvousKeyPrefix};
use op::shapes::unknown;
use op::{CollectiveKind, CollectiveRequest, CollectiveRuntime, GroupRequest, Merge, Subdivisions};
use op::{
    Flow, Grad, Kernel, Op, OpenedTensor, Outputs, PLAIN, Registry, RemoteTensor, Resources, Setup, Spawn, Stored,
    TensorStream, Transfer, binary, later, outputs, poll_on, source, stored, unary,
};
use parking_lot::Mutex;
use status::{Error, Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use tensor::{DType, Shape, Tensor};

const fn row(def: &'static str, kernel: fn(&Setup<'_>) -> Result<Kernel>) -> Op {
    Op { def, shape: unknown, grad: Grad::Unknown, kernel, facts: PLAIN }
}

const OPS: &[Op] = &[
    row("Number() -> out: int32; value: int; stateful", number),
    row("Sum(a: int32, b: int32) -> out: int32; stateful", |_| Ok(binary(sum))),
    row("Cycle() -> out: int32; stateful", cycle),
    row("Fail(a: int32) -> out: int32; stateful", |_| Ok(unary(|_, _| Err(invalid!("told to fail"))))),
    row("Stored() -> out: int32; value: int; stateful", in_file),
    row("Last(a: int32) -> out: int32; stateful", |_| Ok(later(last).streaming_from(0))),
    row("AllReduce(a: float, instance_key: int32) -> out: float; value: int; stateful", all_reduce),
    row("Floats(a: int32) -> out: float; value: int; stateful", floats),
    row("Never(a: int32) -> out: int32; stateful", never),
    row(
        "_Send(tensor: T); T: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
         recv_device: string; client_terminated: bool = false; stateful",
        |setup| Ok(Kernel::flow(Flow::Send(ends(setup)?))),
    ),
    row(
        "_Recv() -> tensor: tensor_type; tensor_type: type; tensor_name: string; send_device: string; \
         send_device_incarnation: int; recv_device: string; client_terminated: bool = false; stateful",
        |setup| Ok(Kernel::flow(Flow::Recv(ends(setup)?))),
    ),
];

pub fn registry() -> Arc<Registry> {
    Arc::new(Registry::new(&[OPS]).expect("toy rows"))
}

fn number(setup: &Setup<'_>) -> Result<Kernel> {
    let value = setup.int("value")? as i32;
    Ok(source(move |_| Ok(Tensor::scalar(value))))
}

/// A resource that refers to its device, like an iterator.
pub struct Cycle(#[allow(dead_code)] Arc<Resources>);

/// How many resources of `Cycle` there are.
pub static CYCLES: AtomicUsize = AtomicUsize::new(0);

impl Drop for Cycle {
    fn drop(&mut self) {
        CYCLES.fetch_sub(1, Relaxed);
    }
}

fn cycle(setup: &Setup<'_>) -> Result<Kernel> {
    CYCLES.fetch_add(1, Relaxed);
    setup.resources().create("", setup.name(), Arc::new(Cycle(setup.resources().clone())))?;
    Ok(source(|_| Ok(Tensor::scalar(CYCLES.load(Relaxed) as i32))))
}

fn sum(_: &op::Ctx<'_>, a: Tensor, b: Tensor) -> Result<Tensor> {
    Ok(Tensor::scalar(a.to_scalar::<i32>()? + b.to_scalar::<i32>()?))
}

/// A tensor of many equal numbers; if they are negative, reading it fails.
struct InFile(i32, Shape);

/// How many.
pub const STORED: usize = 1 << 20;

fn in_file(setup: &Setup<'_>) -> Result<Kernel> {
    let value = setup.int("value")? as i32;
    Ok(stored(move |_, _| Ok(vec![Arc::new(InFile(value, Shape::new(&[STORED]))) as Arc<dyn Stored>])))
}

impl Stored for InFile {
    fn dtype(&self) -> DType {
        DType::I32
    }

    fn shape(&self) -> &Shape {
        &self.1
    }

    fn read(&self) -> Result<Tensor> {
        Err(invalid!("this tensor is only read in chunks"))
    }

    fn stream(&self, spawn: Spawn) -> Option<TensorStream> {
        let (value, mut left) = (self.0, 4);
        Some(TensorStream::from_reads(DType::I32, self.1.clone(), spawn, move || {
            left -= 1;
            match left {
                0.. => Ok(Some(value.to_le_bytes().repeat(STORED / 4).into())),
                _ if value < 0 => Err(invalid!("the file is broken")),
                _ => Ok(None),
            }
        }))
    }
}

/// Returns the last number of its input, which it reads in chunks.
fn last(ctx: &op::Ctx<'_>, mut inputs: op::Inputs, done: op::Done) {
    let Some(remote) = inputs.remote(0) else { return done(Err(invalid!("another task does not send the input"))) };
    let mut reading = Reading { remote, stream: None, number: 0 };
    poll_on(ctx.env.spawn.clone(), move |cx| reading.poll(cx), done);
}

struct Reading {
    remote: RemoteTensor,
    stream: Option<TensorStream>,
    number: i32,
}

impl Reading {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Outputs>> {
        loop {
            let Some(stream) = &mut self.stream else {
                match ready!(self.remote.poll_open(cx))? {
                    OpenedTensor::Whole((tensor, false)) => return Poll::Ready(Ok(outputs![tensor])),
                    OpenedTensor::Whole((_, true)) => return Poll::Ready(Ok(outputs![])),
                    OpenedTensor::Stream(stream) => self.stream = Some(stream),
                }
                continue;
            };
            match ready!(stream.poll_next(cx))? {
                Some(bytes) => {
                    let last = bytes.last_chunk().map(|bytes| i32::from_le_bytes(*bytes));
                    self.number = last.unwrap_or(self.number);
                }
                None if stream.shape().elements() == STORED => {
                    return Poll::Ready(Ok(outputs![Tensor::scalar(self.number)]));
                }
                None => return Poll::Ready(Err(invalid!("the shape is {}", stream.shape()))),
            }
        }
    }
}

/// As many floats as its attribute says, that begin with its input and increase by a quarter.
fn floats(setup: &Setup<'_>) -> Result<Kernel> {
    let count = setup.int("value")? as usize;
    Ok(unary(move |_, first| {
        let first = first.to_scalar::<i32>()? as f32;
        Ok(Tensor::vector(&(0..count).map(|place| first + 0.25 * place as f32).collect::<Vec<_>>()))
    }))
}

/// The sum over a group of as many devices as its attribute says, which has the key 7.
fn all_reduce(setup: &Setup<'_>) -> Result<Kernel> {
    let (size, device, name) = (setup.int("value")? as usize, setup.device().to_string(), setup.name().to_string());
    Ok(later(move |ctx, mut inputs, done| {
        let request = inputs.tensors_from(0).and_then(|inputs| {
            Ok(CollectiveRequest {
                name: name.clone(),
                device: device.as_str().into(),
                group: GroupRequest { key: 7, size, rank: None, timeout: None },
                is_joined: false,
                instance_key: inputs[1].to_scalar()?,
                kind: CollectiveKind::Reduce { merge: Merge::Add, divide: false },
                dtype: DType::F32,
                shape: inputs[0].shape().clone(),
                subdivisions: Subdivisions::AtMost(-1),
                input: Some(inputs[0].clone()),
            })
        });
        match (request, ctx.env.extensions.get::<CollectiveRuntime>()) {
            (Ok(request), Some(runtime)) => {
                runtime.0.run(ctx, request, Box::new(move |sum| done(sum.map(|sum| outputs![sum]))));
            }
            (request, _) => done(Err(request.err().unwrap_or_else(|| invalid!("the task runs no collectives")))),
        }
    }))
}

/// How many ops of a device wait forever.
#[derive(Default)]
struct Waiting(AtomicUsize);

/// How many ops of a task wait forever.
pub fn waiting(worker: &Worker) -> usize {
    let of = |resources: &Arc<Resources>| resources.get::<Waiting>("toy", "waiting");
    worker.resources().filter_map(of).map(|waiting| waiting.0.load(Relaxed)).sum()
}

/// Waits until the step is cancelled.
fn never(setup: &Setup<'_>) -> Result<Kernel> {
    let waiting = setup.resources().get_or_create("toy", "waiting", || Ok(Waiting::default()))?;
    Ok(later(move |ctx, _, done| {
        waiting.0.fetch_add(1, Relaxed);
        let (left, done) = (waiting.clone(), Mutex::new(Some(done)));
        let end = Arc::new(move |error: &Error| {
            if let Some(done) = done.lock().take() {
                left.0.fetch_sub(1, Relaxed);
                done(Err(error.clone()));
            }
        });
        let on_cancel = end.clone();
        if let Err(error) = ctx.env.cancel.register(move |error| on_cancel(error)) {
            end(&error);
        }
    }))
}

fn ends(setup: &Setup<'_>) -> Result<Transfer> {
    let (send, recv) = (setup.string("send_device")?, setup.string("recv_device")?);
    let (incarnation, name) = (setup.int("send_device_incarnation")? as u64, setup.string("tensor_name")?);
    let client_terminated = setup.bool("client_terminated")?;
    Ok(Transfer { key_prefix: RendezvousKeyPrefix::new(&send, incarnation, &recv, &name), client_terminated })
}

/// A graph from its text.
pub fn parse(text: &str) -> GraphDef {
    let mut graph = GraphDef::default();
    for line in text.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (job, task) = words[1].trim_start_matches('@').split_once(':').expect("job:task");
        let mut attrs: BTreeMap<String, AttrValue> = BTreeMap::new();
        let mut inputs: Vec<String> = words[4..].iter().map(|word| word.to_string()).collect();
        if ["Number", "Stored", "AllReduce", "Floats"].contains(&words[3]) {
            attrs.insert("value".into(), inputs.remove(0).parse::<i64>().expect("a number").into());
        }
        graph.nodes.push(Arc::new(NodeDef {
            name: words[0].into(),
            op: words[3].into(),
            device: format!("/job:{job}/task:{task}"),
            inputs,
            attrs,
            ..NodeDef::default()
        }));
    }
    graph
}
