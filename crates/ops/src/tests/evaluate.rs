//! Runs a graph node by node on one thread, without an executor: for ops whose values only other ops understand.

use graph::{Function, Graph, Node, Output, Signatures};
use math::Pool;
use membership::Member;
use op::{
    Callable, Ctx, Extensions, Functions, Inputs, Kernel, Outputs, Registry, Resources, Run, Setup, StepEnv, Value,
};
use status::{Result, cancelled, internal, not_found};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tensor::{DType, Tensor};

/// One step of a graph; every node runs once.
pub(super) struct Evaluation {
    registry: Arc<Registry>,
    pub resources: Arc<Resources>,
    env: Arc<StepEnv>,
    done: RefCell<HashMap<u32, Outputs>>,
    kernels: Rc<RefCell<HashMap<u32, Rc<Kernel>>>>,
}

/// An op that was started.
pub(super) struct Started(Receiver<Result<Outputs>>);

impl Started {
    /// Whether it waits still.
    pub fn waits(&self) -> bool {
        matches!(self.0.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }

    /// Its outputs, or an error, as soon as it does not wait any more.
    pub fn wait(&self, most: Duration) -> Result<Outputs> {
        self.0.recv_timeout(most).map_err(|_| internal!("it waits"))?
    }

    /// Its outputs, or an error; if it still waits, that is an error too.
    pub fn tensors(&self) -> Result<Vec<Tensor>> {
        let outputs = self.0.try_recv().map_err(|_| internal!("it waits"))??;
        outputs.into_iter().map(Value::read).collect()
    }
}

/// An empty graph of all our ops.
pub(super) fn graph() -> Graph {
    Graph::with_ops(crate::registry())
}

/// A constant node.
pub(super) fn constant(graph: &Graph, value: Tensor) -> Output {
    let dtype = value.dtype();
    graph.root().op("Const").attr("value", value).attr("dtype", dtype).output()
}

impl Evaluation {
    pub fn new() -> Evaluation {
        Evaluation {
            registry: crate::registry(),
            resources: Arc::new(Resources::new("localhost")),
            env: StepEnv::alone(Arc::new(Pool::new(2))),
            done: RefCell::default(),
            kernels: Rc::default(),
        }
    }

    /// The next step of the same session.
    pub fn next(&self) -> Evaluation {
        Evaluation {
            registry: self.registry.clone(),
            resources: self.resources.clone(),
            env: StepEnv::alone(self.env.pool.clone()),
            done: RefCell::default(),
            kernels: self.kernels.clone(),
        }
    }

    /// The next step, with a session that takes part in synchronous training.
    pub fn next_of(&self, member: &Arc<Member>) -> Evaluation {
        let mut next = self.next();
        Arc::get_mut(&mut next.env).expect("the new step is not shared yet").extensions =
            Extensions::new().with(member.clone());
        next
    }

    /// Cancels the step.
    pub fn cancel(&self) {
        self.env.cancel.cancel(cancelled!("the step is over"));
    }

    /// Starts a node, after everything it needs has run.
    pub fn start(&self, node: &Node) -> Started {
        node.graph().check().expect("the graph is right");
        let (send, receive) = channel();
        let inputs = self.inputs(node).expect("what it needs is there");
        self.launch(node, inputs, Box::new(move |result| drop(send.send(result))));
        Started(receive)
    }

    /// The value of an output.
    pub fn value(&self, output: &Output) -> Result<Tensor> {
        output.node().graph().check()?;
        self.run(output.node())?;
        let found = self.done.borrow().get(&output.node().id()).and_then(|all| all.get(output.index()).cloned());
        match found {
            Some(value) => value.read(),
            None => Err(internal!("{} has no output {}", output.node().name(), output.index())),
        }
    }

    /// Runs a node after everything it needs.
    pub fn run(&self, node: &Node) -> Result<()> {
        if self.done.borrow().contains_key(&node.id()) {
            return Ok(());
        }
        let inputs = self.inputs(node)?;
        let (send, receive) = channel();
        self.launch(node, inputs, Box::new(move |result| drop(send.send(result))));
        let outputs = receive.try_recv().map_err(|_| internal!("{} waits", node.name()))??;
        self.done.borrow_mut().insert(node.id(), outputs);
        Ok(())
    }

    fn inputs(&self, node: &Node) -> Result<Inputs> {
        let def = node.def();
        for control in def.inputs.iter().filter_map(|input| input.strip_prefix('^')) {
            let before = Node::find(node.scope(), control).ok_or_else(|| not_found!("{control}"))?;
            self.run(&before)?;
        }
        let mut inputs = Inputs::default();
        for input in node.all_inputs() {
            self.run(input.node())?;
            let value = self.done.borrow()[&input.node().id()][input.index()].clone();
            inputs.push(value);
        }
        Ok(inputs)
    }

    fn launch(&self, node: &Node, mut inputs: Inputs, done: op::Done) {
        let kernel = match self.kernel(node) {
            Ok(kernel) => kernel,
            Err(error) => return done(Err(error)),
        };
        let ctx = Ctx { env: &self.env, frame: 0, iteration: 0 };
        let one = |tensor: Tensor| -> Outputs { std::iter::once(Value::Tensor(tensor)).collect() };
        let result = match &kernel.run {
            Run::Later(run) => return run(&ctx, inputs, done),
            Run::Source(run) => run(&ctx).map(one),
            Run::Unary(run) => inputs.tensor(0).and_then(|a| run(&ctx, a)).map(one),
            Run::Binary(run) => inputs.tensor(0).and_then(|a| run(&ctx, a, inputs.tensor(1)?)).map(one),
            Run::Many(run) => run(&ctx, inputs),
            Run::Stored(run) => run(&ctx, inputs).map(|found| found.into_iter().map(Value::Stored).collect()),
            Run::Flow(_) => inputs.take(0).map(|value| std::iter::once(value).collect()),
        };
        done(result);
    }

    fn kernel(&self, node: &Node) -> Result<Rc<Kernel>> {
        if let Some(kernel) = self.kernels.borrow().get(&node.id()) {
            return Ok(kernel.clone());
        }
        let def = node.def();
        let signature = Signatures::signature(&*self.registry, &def.op).ok_or_else(|| not_found!("{}", def.op))?;
        let types = (signature.input_types(&def)?, signature.output_types(&def)?);
        let setup = Setup::new(&def, signature, (&types.0, &types.1), "/device:CPU:0", &self.resources, &Nothing);
        let kernel = Rc::new(self.registry.kernel(&setup)?);
        self.kernels.borrow_mut().insert(node.id(), kernel.clone());
        Ok(kernel)
    }
}

/// The library of a graph without functions.
struct Nothing;

impl Functions for Nothing {
    fn instantiate(&self, function: &Function, _: &str) -> Result<Arc<dyn Callable>> {
        Err(not_found!("function {}", function.name))
    }
}

/// The message of an error; the test fails if there is none.
pub(super) fn refusal<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.expect_err("this must be refused").message
}

/// A vector of floats as a constant.
pub(super) fn floats(graph: &Graph, values: &[f32]) -> Output {
    constant(graph, Tensor::vector(values))
}

/// An int32 as a constant.
pub(super) fn int(graph: &Graph, value: i32) -> Output {
    constant(graph, Tensor::scalar(value))
}

/// A vector of int32 as a constant.
pub(super) fn ints(graph: &Graph, values: &[i32]) -> Output {
    constant(graph, Tensor::vector(values))
}

/// The type these tests use.
pub(super) const FLOAT: DType = DType::F32;
