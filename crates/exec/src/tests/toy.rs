//! Toy ops and graphs written as text: `name = Op input input; …`.

use crate::{Devices, Kernels, Library, LocalRendezvous, Program, RunOptions, Threads, compile, prepare};
use graph::{AttrValue, ControlFlow, FlatGraph, Forwards, FunctionDef, FunctionLibrary, GraphDef, NodeDef, Signature};
use math::Pool;
use op::shapes::unknown;
use op::{
    Facts, Flow, Grad, Kernel, Op, PLAIN, Registry, Resources, Setup, Siblings, Stats, StepEnv, Value, binary, many,
    outputs, source, unary,
};
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use tensor::{Bytes, Tensor};

const fn row(def: &'static str, kernel: fn(&Setup<'_>) -> Result<Kernel>) -> Op {
    with(def, kernel, PLAIN)
}

const fn with(def: &'static str, kernel: fn(&Setup<'_>) -> Result<Kernel>, facts: Facts) -> Op {
    Op { def, shape: unknown, grad: Grad::Unknown, kernel, facts }
}

/// A row of a control flow primitive.
const fn flow(def: &'static str, kernel: fn(&Setup<'_>) -> Result<Kernel>, role: ControlFlow) -> Op {
    with(def, kernel, PLAIN.control_flow(role))
}

const OPS: &[Op] = &[
    row("Number() -> out: int32; value: int", number),
    row("Sum(a: int32, b: int32) -> out: int32", |_| Ok(binary(sum))),
    row("HeavySum(a: int32, b: int32) -> out: int32", |_| Ok(binary(sum).heavy())),
    row("Less(a: int32, b: int32) -> out: bool", |_| Ok(binary(less))),
    row("Fail(a: int32) -> out: int32", |_| Ok(unary(|_, _| Err(invalid!("told to fail"))))),
    row("Panic(a: int32) -> out: int32", |_| Ok(unary(|_, _| panic!("on purpose")))),
    with("Identity(a: int32) -> out: int32", |_| Ok(Kernel::flow(Flow::Identity)), PLAIN.forwards(Forwards::First)),
    flow("Switch(a: int32, p: bool) -> f: int32, t: int32", |_| Ok(Kernel::flow(Flow::Switch)), ControlFlow::Switch),
    flow(
        "Merge(a: int32, b: int32) -> out: int32, index: int32",
        |_| Ok(Kernel::flow(Flow::Merge)),
        ControlFlow::Merge,
    ),
    flow("Enter(a: int32) -> out: int32; frame_name: string; is_constant: bool = false", enter, ControlFlow::Enter),
    flow("Exit(a: int32) -> out: int32", |_| Ok(Kernel::flow(Flow::Exit)), ControlFlow::Exit),
    flow(
        "NextIteration(a: int32) -> out: int32",
        |_| Ok(Kernel::flow(Flow::NextIteration)),
        ControlFlow::NextIteration,
    ),
    row("NoOp()", |_| Ok(many(|_, _| Ok(outputs![])).free())),
    row("Speak(a: int32) -> out: int32; stateful", |_| Ok(unary(|_, _| Err(invalid!("I am here"))))),
    flow("ControlTrigger()", |_| Ok(Kernel::flow(Flow::ControlTrigger)), ControlFlow::Trigger),
    flow("LoopCond(a: bool) -> out: bool", |_| Ok(Kernel::flow(Flow::Identity)), ControlFlow::LoopCond),
    row("Out(a: int32)", |_| Ok(Kernel::flow(Flow::Ret(0)))),
    row("_Arg() -> output: T; T: type; index: int; stateful", |setup| {
        Ok(Kernel::flow(Flow::Arg(setup.int("index")? as usize, setup.dtype("T")?)))
    }),
    row("_Retval(input: T); T: type; index: int; stateful", |setup| {
        Ok(Kernel::flow(Flow::Ret(setup.int("index")? as usize)))
    }),
];

fn number(setup: &Setup<'_>) -> Result<Kernel> {
    let value = setup.int("value")? as i32;
    Ok(source(move |_| Ok(Tensor::scalar(value))))
}

fn enter(setup: &Setup<'_>) -> Result<Kernel> {
    let (frame, constant) = (setup.string("frame_name")?, setup.bool("is_constant")?);
    Ok(Kernel::flow(Flow::Enter { frame, constant, parallel: 2 }))
}

fn sum(_: &op::Ctx<'_>, a: Tensor, b: Tensor) -> Result<Tensor> {
    Ok(Tensor::scalar(a.to_scalar::<i32>()? + b.to_scalar::<i32>()?))
}

fn less(_: &op::Ctx<'_>, a: Tensor, b: Tensor) -> Result<Tensor> {
    Ok(Tensor::scalar(a.to_scalar::<i32>()? < b.to_scalar::<i32>()?))
}

fn parse(text: &str) -> GraphDef {
    let mut graph = GraphDef::default();
    for line in text.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, op, args) = (words[0], words[2], &words[3..]);
        let mut attrs: BTreeMap<String, AttrValue> = BTreeMap::new();
        let (op, inputs) = match op {
            "Number" => {
                attrs.insert("value".into(), args[0].parse::<i64>().expect("number").into());
                ("Number", &args[..0])
            }
            "Enter" | "EnterConst" => {
                attrs.insert("frame_name".into(), args[1].into());
                attrs.insert("is_constant".into(), (op == "EnterConst").into());
                ("Enter", &args[..1])
            }
            op => (op, args),
        };
        let inputs = inputs.iter().map(|input| input.to_string()).collect();
        let node = NodeDef { name: name.into(), op: op.into(), inputs, attrs, ..NodeDef::default() };
        graph.nodes.push(Arc::new(node));
    }
    graph
}

struct Nowhere(Arc<Resources>);

impl Siblings for Nowhere {
    fn resources_of(&self, _: &str) -> Option<Arc<Resources>> {
        None
    }
}

impl Devices for Nowhere {
    fn device(&self, name: &str) -> Result<(String, Arc<Resources>)> {
        Ok((name.to_string(), self.0.clone()))
    }
}

/// The number that arrives at `Out`.
pub fn run(text: &str) -> i32 {
    try_run(text).expect("the graph runs")
}

/// The number that arrives at `Out`, or the first error.
pub fn try_run(text: &str) -> Result<i32> {
    run_with(text, FunctionLibrary::default(), None, as_it_is)
}

fn as_it_is(graph: FlatGraph, kernels: &Kernels, library: &Arc<Library>) -> Result<Program> {
    compile(graph, kernels, library, "")
}

/// The same of a graph without the work that need not be done.
pub fn try_run_simplified(text: &str) -> Result<i32> {
    run_with(text, FunctionLibrary::default(), None, prepare)
}

/// The nodes that a trace shows, in order of their names; there is a function `twice`.
pub fn traced(text: &str, noinline: bool) -> Vec<String> {
    let mut functions = library(&["twice(x: int32) -> y: int32 = sum = Sum x x; y = sum:out:0"]);
    if let Some(twice) = functions.functions.get_mut("twice") {
        Arc::make_mut(twice).attrs.insert("_noinline".to_string(), noinline.into());
    }
    let stats = Arc::new(Stats::new());
    run_with(text, functions, Some(stats.clone()), as_it_is).expect("the graph runs");
    let mut names: Vec<String> = stats.take().iter().map(|node| node.name.to_string()).collect();
    names.sort();
    names
}

/// The number that arrives at `Out` in a graph with functions: `name(args) -> result: type = body; result = output`.
pub fn try_run_calls(text: &str, functions: &[&str]) -> Result<i32> {
    run_with(text, library(functions), None, as_it_is)
}

/// Starts such a graph, cancels it, and returns what it ends with.
pub fn cancelled(text: &str, functions: &[&str]) -> Result<i32> {
    let (env, results) = start(text, library(functions), None, as_it_is)?;
    env.cancel.cancel(status::cancelled!("enough"));
    result_of(&results)
}

fn library(functions: &[&str]) -> FunctionLibrary {
    let mut library = FunctionLibrary::default();
    for text in functions {
        let (signature, body) = text.split_once(" = ").expect("a signature and a body");
        let (body, result) = body.rsplit_once(';').expect("a body and a result");
        let (name, source) = result.split_once('=').expect("a result");
        let function = FunctionDef {
            signature: Signature::parse(signature).expect("a signature"),
            attrs: BTreeMap::new(),
            nodes: parse(body).nodes,
            ret: BTreeMap::from([(name.trim().to_string(), source.trim().to_string())]),
            control_ret: BTreeMap::new(),
            arg_attrs: BTreeMap::new(),
            resource_arg_unique_id: BTreeMap::new(),
            encoded: Bytes::default(),
        };
        library.functions.insert(function.signature.name.clone(), Arc::new(function));
    }
    library
}

type Results = mpsc::Receiver<Result<Vec<Option<Value>>>>;

fn run_with(
    text: &str,
    functions: FunctionLibrary,
    stats: Option<Arc<Stats>>,
    make: fn(FlatGraph, &Kernels, &Arc<Library>) -> Result<Program>,
) -> Result<i32> {
    let (_env, results) = start(text, functions, stats, make)?;
    result_of(&results)
}

fn result_of(results: &Results) -> Result<i32> {
    let mut results = results.recv().expect("the run ends")?;
    match results.pop().flatten() {
        Some(Value::Tensor(tensor)) => tensor.to_scalar(),
        _ => Err(invalid!("the result is dead")),
    }
}

fn start(
    text: &str,
    functions: FunctionLibrary,
    stats: Option<Arc<Stats>>,
    make: fn(FlatGraph, &Kernels, &Arc<Library>) -> Result<Program>,
) -> Result<(Arc<StepEnv>, Results)> {
    let functions = Arc::new(functions);
    let registry = Arc::new(Registry::new(&[OPS]).expect("toy rows"));
    let kernels = Arc::new(Kernels::new(registry.clone()));
    let devices = Arc::new(Nowhere(Arc::new(Resources::new("toy"))));
    let mut flat = FlatGraph::with_library(functions);
    flat.extend(&parse(text), registry.as_ref())?;
    let library = Library::new(&flat, devices, kernels.clone(), None);
    let program = Arc::new(make(flat, &kernels, &library)?);
    let threads = Arc::new(Threads::new(2));
    let env = Arc::new(StepEnv {
        step_id: 1,
        pool: Arc::new(Pool::new(1)),
        step_resources: Arc::new(Resources::new("step")),
        rendezvous: Arc::new(LocalRendezvous::default()),
        cancel: Arc::default(),
        extensions: Default::default(),
        stats,
        calls: Default::default(),
        spawn: Arc::new(move |work| threads.spawn(work)),
    });
    let (send, receive) = mpsc::channel();
    let finish = Box::new(move |result| {
        let _library = library; // the bodies of its functions run until now
        drop(send.send(result));
    });
    crate::run(program, RunOptions { env: env.clone(), args: Vec::new() }, finish);
    Ok((env, receive))
}
