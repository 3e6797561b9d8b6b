//! Toy ops, and graphs written as text: `name @job:task = Op input input; …`.

use graph::{AttrValue, GraphDef, NodeDef};
use op::shapes::unknown;
use op::{Flow, Grad, Kernel, Op, Registry, Setup, Transfer, binary, later, source, unary};
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::Tensor;

const fn row(def: &'static str, kernel: fn(&Setup<'_>) -> Result<Kernel>) -> Op {
    Op { def, shape: unknown, grad: Grad::Unknown, kernel }
}

const OPS: &[Op] = &[
    row("Number() -> out: int32; value: int; stateful", number),
    row("Sum(a: int32, b: int32) -> out: int32; stateful", |_| Ok(binary(sum))),
    row("Fail(a: int32) -> out: int32; stateful", |_| Ok(unary(|_, _| Err(invalid!("told to fail"))))),
    row("Never(a: int32) -> out: int32; stateful", |_| Ok(later(never))),
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

fn sum(_: &op::Ctx<'_>, a: Tensor, b: Tensor) -> Result<Tensor> {
    Ok(Tensor::scalar(a.to_scalar::<i32>()? + b.to_scalar::<i32>()?))
}

/// Waits until the step is cancelled.
fn never(ctx: &op::Ctx<'_>, _: op::Inputs, done: op::Done) {
    let _ = ctx.env.cancel.register(move |error| done(Err(error.clone())));
}

fn ends(setup: &Setup<'_>) -> Result<Transfer> {
    let (send, recv) = (setup.string("send_device")?, setup.string("recv_device")?);
    let (incarnation, name) = (setup.int("send_device_incarnation")? as u64, setup.string("tensor_name")?);
    Ok(Transfer { prefix: format!("{send};{incarnation:016x};{recv};{name};") })
}

/// A graph from its text.
pub fn parse(text: &str) -> GraphDef {
    let mut graph = GraphDef::default();
    for line in text.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (job, task) = words[1].trim_start_matches('@').split_once(':').expect("job:task");
        let mut attrs: BTreeMap<String, AttrValue> = BTreeMap::new();
        let mut inputs: Vec<String> = words[4..].iter().map(|word| word.to_string()).collect();
        if words[3] == "Number" {
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
