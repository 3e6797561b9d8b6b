//! Running a program: ready nodes are run until none is left.
//!
//! The state (`Core`) belongs to one thread at a time, the combiner. Whoever finishes an op puts the
//! outcome into the inbox; the one who finds the inbox empty becomes the combiner and moves the state
//! on, running light ops on the spot. So a ready op meets no lock that somebody else could hold, and a
//! thread that brings an outcome never waits for another.

use crate::core::{Core, Produced, Ready};
use crate::far::add_far;
use crate::program::{Kind, Node, OutEdge, Program};
use crossbeam_queue::SegQueue;
use op::{Cost, Ctx, Flow, Inputs, NodeStats, Outputs, Run, Stats, StepEnv, Value};
use parking_lot::Mutex;
use smallvec::{SmallVec, smallvec};
use status::{Error, Result, internal, invalid};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensor::{DType, Element, Shape, Tensor};

/// Called once, when nothing of the run is left: with the results of a function, or the first error.
pub type Finish = Box<dyn FnOnce(Result<Vec<Option<Value>>>) + Send>;

/// Ops whose inputs have together fewer elements than this run on the spot.
const LIGHT: usize = 8192;

/// So many ops a thread that is not for ops runs before it lets another go on.
const PATIENCE: usize = 16_384;

/// What a run needs besides its program.
pub struct RunOptions {
    /// What its kernels share.
    pub env: Arc<StepEnv>,
    /// Arguments, if it is a function.
    pub args: Vec<Option<Value>>,
}

/// Runs a program. Light ops run before this returns; heavy ones on the threads of the step.
pub fn run(program: Arc<Program>, options: RunOptions, finish: Finish) {
    let core = Core::new(program.clone(), options.args);
    let active = Arc::new(Active {
        program,
        env: options.env,
        core: Mutex::new((core, None)),
        inbox: SegQueue::new(),
        waiting: AtomicUsize::new(0),
        finish: Mutex::new(Some(finish)),
    });
    active.drive(Message::Start, false);
}

/// One run.
struct Active {
    program: Arc<Program>,
    env: Arc<StepEnv>,
    /// The state and the first error; only the combiner touches it.
    core: Mutex<(Core, Option<Error>)>,
    inbox: SegQueue<Message>,
    /// Messages that no combiner has dealt with.
    waiting: AtomicUsize,
    finish: Mutex<Option<Finish>>,
}

enum Message {
    Start,
    Done(Ready, Result<Produced>),
}

/// What a thread does after combining.
enum Next {
    /// Run this heavy op.
    Run(Work),
    /// Let another thread combine: so many messages are dealt with.
    HandOver(usize),
    Nothing,
}

/// An op to run, with its inputs.
struct Work {
    ready: Ready,
    key: u64,
    inputs: SmallVec<[Option<Value>; 4]>,
    scheduled: u64,
}

impl Active {
    /// Delivers a message and moves the run on for as long as there is something for this thread to do.
    /// `home` says that this is a thread for heavy ops.
    fn drive(self: &Arc<Self>, message: Message, home: bool) {
        let mut message = message;
        loop {
            self.inbox.push(message);
            if self.waiting.fetch_add(1, Ordering::AcqRel) > 0 {
                return;
            }
            match self.combine(0, home) {
                Next::Run(work) => message = self.execute(work),
                Next::HandOver(taken) => return self.hand_over(taken),
                Next::Nothing => return,
            }
        }
    }

    /// Lets a thread of the step go on in this one's place: a thread that moves messages must not be
    /// kept by a loop that may never end.
    fn hand_over(self: &Arc<Self>, taken: usize) {
        let active = self.clone();
        (self.env.spawn)(Box::new(move || match active.combine(taken, true) {
            Next::Run(work) => {
                let message = active.execute(work);
                active.drive(message, true);
            }
            Next::HandOver(taken) => active.hand_over(taken),
            Next::Nothing => {}
        }));
    }

    /// Deals with messages until there are none; `taken` of them were taken by the combiner before.
    fn combine(self: &Arc<Self>, mut taken: usize, home: bool) -> Next {
        let mut own = None;
        let mut left = if home { usize::MAX } else { PATIENCE };
        let mut current = 0;
        let finished = {
            let mut guard = self.core.lock();
            let (core, error) = &mut *guard;
            loop {
                // A panic is an error of the op that was running, and of this step only.
                while let Err(panic) = catch_unwind(AssertUnwindSafe(|| {
                    while let Some(message) = self.inbox.pop() {
                        taken += 1;
                        self.receive(core, error, message, &mut current);
                    }
                    self.run_ready(core, error, home, &mut own, (&mut left, &mut current));
                })) {
                    self.fail(core, error, panicked(&self.program.nodes[current as usize], panic));
                }
                if left == 0 {
                    return Next::HandOver(taken);
                }
                if !self.inbox.is_empty() {
                    continue;
                }
                if core.outstanding == 0 {
                    break Some(match error.take() {
                        Some(error) => Err(error),
                        None => {
                            core.retire();
                            Ok(std::mem::take(&mut core.results))
                        }
                    });
                }
                if self.waiting.fetch_sub(taken, Ordering::AcqRel) == taken {
                    break None;
                }
                taken = 0;
            }
        };
        if let Some(result) = finished
            && let Some(finish) = self.finish.lock().take()
        {
            finish(result);
        }
        own.map_or(Next::Nothing, Next::Run)
    }

    /// Deals with ready nodes until there are none, or `left` is used up; `current` is the one it is at.
    fn run_ready(
        self: &Arc<Self>,
        core: &mut Core,
        error: &mut Option<Error>,
        home: bool,
        own: &mut Option<Work>,
        (left, current): (&mut usize, &mut u32),
    ) {
        while *left > 0
            && let Some(ready) = core.ready.pop()
        {
            *current = ready.node;
            *left -= 1;
            self.dispatch(core, error, ready, home, own);
        }
    }

    fn receive(&self, core: &mut Core, error: &mut Option<Error>, message: Message, current: &mut u32) {
        match message {
            Message::Start => {}
            Message::Done(ready, result) => {
                *current = ready.node;
                match result {
                    Ok(produced) => core.complete(&self.program, ready, produced),
                    Err(found) => self.fail(core, error, found),
                }
            }
        }
    }

    /// The first error stops the run: nothing new starts, and what waits is told.
    fn fail(&self, core: &mut Core, error: &mut Option<Error>, found: Error) {
        if error.is_none() {
            *error = Some(found.clone());
            self.env.rendezvous.abort(found.clone());
            self.env.cancel.cancel(found);
        }
        core.outstanding -= 1;
    }

    /// Runs a ready node if it is light or dead, else finds a thread for it.
    fn dispatch(
        self: &Arc<Self>,
        core: &mut Core,
        error: &mut Option<Error>,
        ready: Ready,
        home: bool,
        own: &mut Option<Work>,
    ) {
        if error.is_none() && self.env.cancel.is_cancelled() {
            *error = self.env.cancel.reason();
        }
        if error.is_some() {
            core.outstanding -= 1;
            return;
        }
        let node = &self.program.nodes[ready.node as usize];
        if ready.dead && node.kind != Kind::SeesDead {
            core.leave_inputs(&self.program, &ready);
            return core.complete(&self.program, ready, Produced::new());
        }
        let heavy = match node.kernel.cost {
            Cost::Free => false,
            Cost::ByInput => core.input_elements(&self.program, &ready) >= LIGHT,
            Cost::Asked(work) => core.ask(&self.program, &ready, work) >= LIGHT,
            Cost::Heavy => true,
        };
        if !heavy
            && self.env.stats.is_none()
            && matches!(node.kernel.run, Run::Source(_) | Run::Unary(_) | Run::Binary(_))
        {
            return self.run_simple(core, error, node, ready);
        }
        let scheduled = self.env.stats.as_ref().map_or(0, |stats| stats.now());
        let inputs = core.take_inputs(&self.program, &ready);
        let work = Work { ready, key: core.key(&ready), inputs, scheduled };
        if !heavy {
            return self.run_light(core, error, node, work);
        }
        if home && own.is_none() && core.ready.is_empty() {
            *own = Some(work);
            return;
        }
        let active = self.clone();
        (self.env.spawn)(Box::new(move || {
            let message = active.execute(work);
            active.drive(message, true);
        }));
    }

    /// Runs a light kernel of one output on its inputs where they wait: most ops of most graphs, so they are not moved
    /// more than needed. A panic of the kernel unwinds to `combine`, which makes it an error.
    fn run_simple(&self, core: &mut Core, error: &mut Option<Error>, node: &Node, ready: Ready) {
        let ctx = Ctx { env: &self.env, frame: core.key(&ready), iteration: ready.iteration };
        let slots = self.program.inputs(node);
        let values = core.values(&ready);
        let wanted = match &node.kernel.run {
            Run::Unary(_) => 1,
            Run::Binary(_) => 2,
            _ => 0,
        };
        slots.iter().skip(wanted).for_each(|&slot| values.leave(slot));
        let result = match (&node.kernel.run, slots) {
            (Run::Unary(run), &[x, ..]) => values.read(x).and_then(|x| run(&ctx, x)),
            (Run::Binary(run), &[x, y, ..]) => values.read(x).and_then(|x| run(&ctx, x, values.read(y)?)),
            (Run::Source(run), _) => run(&ctx),
            _ => Err(missing()),
        };
        match result {
            Ok(tensor) => core.complete_one(&self.program, ready, Value::Tensor(tensor)),
            Err(found) => self.fail(core, error, found.at_node(&node.name)),
        }
    }

    fn run_light(self: &Arc<Self>, core: &mut Core, error: &mut Option<Error>, node: &Node, work: Work) {
        let ready = work.ready;
        let outcome = match &node.kernel.run {
            Run::Flow(flow) => match flow {
                Flow::Recv(_) | Flow::Send(_) => self.transfer(flow, node, work),
                Flow::Arg(index, dtype) => {
                    let value = core.args.get_mut(*index).and_then(Option::take);
                    Some(argument(*index, *dtype, value).map_err(|error| error.at_node(&node.name)))
                }
                Flow::Ret(index) => {
                    core.results[*index] = work.inputs.into_iter().next().flatten();
                    Some(Ok(Produced::new()))
                }
                flow => Some(run_flow(flow, node, work.inputs)),
            },
            Run::Later(_) => self.run_later(node, work),
            _ => Some(self.run_kernel(node, work)),
        };
        match outcome {
            Some(Ok(produced)) => core.complete(&self.program, ready, produced),
            Some(Err(found)) => self.fail(core, error, found),
            None => {}
        }
    }

    /// Runs a heavy op on this thread.
    fn execute(self: &Arc<Self>, work: Work) -> Message {
        let node = &self.program.nodes[work.ready.node as usize];
        let ready = work.ready;
        Message::Done(ready, self.run_kernel(node, work))
    }

    fn run_kernel(&self, node: &Node, work: Work) -> Result<Produced> {
        let start = self.env.stats.as_ref().map_or(0, |stats| stats.now());
        let ctx = Ctx { env: &self.env, frame: work.key, iteration: work.ready.iteration };
        let result = match &node.kernel.run {
            Run::Stored(_) => self.call_stored(node, &ctx, work.inputs),
            _ => call(node, &ctx, work.inputs),
        };
        if let Some(stats) = &self.env.stats {
            note(stats, node, work.scheduled, start, result.as_ref().ok());
        }
        result.map_err(|error| error.at_node(&node.name))
    }

    /// Finds tensors in files. Large ones that are only sent to other tasks stay there until they are.
    fn call_stored(&self, node: &Node, ctx: &Ctx<'_>, inputs: SmallVec<[Option<Value>; 4]>) -> Result<Produced> {
        let Run::Stored(run) = &node.kernel.run else { return Err(missing()) };
        let call = || {
            let found = run(ctx, resolve(node, inputs)?)?;
            let given = found.into_iter().enumerate().map(|(index, stored)| {
                let stays = stored.shape().elements() >= op::PIECE / 4 && self.is_only_sent(node, index);
                Ok(Some(if stays { Value::Stored(stored) } else { Value::Tensor(stored.read()?) }))
            });
            given.collect::<Result<Produced>>()
        };
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(panicked(node, panic)))
    }

    /// Whether nobody here reads an output, and the answer of this run does not bring it.
    fn is_only_sent(&self, node: &Node, output: usize) -> bool {
        let readers = node.outputs[output] as usize..node.outputs[output + 1] as usize;
        let is_send = |edge: &OutEdge| match &self.program.nodes[edge.node as usize].kernel.run {
            Run::Flow(Flow::Send(transfer)) => !transfer.is_clients,
            _ => false,
        };
        self.program.edges[readers].iter().all(is_send)
    }

    fn run_later(self: &Arc<Self>, node: &Node, work: Work) -> Option<Result<Produced>> {
        let Run::Later(run) = &node.kernel.run else { return None };
        let mut inputs = match resolve(node, work.inputs) {
            Ok(inputs) => inputs,
            Err(error) => return Some(Err(error.at_node(&node.name))),
        };
        let dead = add_far(&mut inputs, node, (work.key, work.ready.iteration), &self.env, self.env.stats.as_ref());
        let ctx = Ctx { env: &self.env, frame: work.key, iteration: work.ready.iteration };
        let start = self.env.stats.as_ref().map_or(0, |stats| stats.now());
        let (active, ready, scheduled) = (self.clone(), work.ready, work.scheduled);
        let done = Box::new(move |result: Result<Outputs>| {
            let node = &active.program.nodes[ready.node as usize];
            let mut ready = ready;
            ready.dead = dead.is_dead();
            let result = result.map(|outputs| outputs.into_iter().map(Some).collect::<Produced>());
            if let Some(stats) = &active.env.stats {
                note(stats, node, scheduled, start, result.as_ref().ok());
            }
            let result = result.map_err(|error| error.at_node(&node.name));
            active.drive(Message::Done(ready, result), false);
        });
        match catch_unwind(AssertUnwindSafe(|| run(&ctx, inputs, done))) {
            Ok(()) => None,
            Err(panic) => Some(Err(panicked(node, panic))),
        }
    }

    /// Send and Recv run even when dead: the news travels.
    fn transfer(self: &Arc<Self>, flow: &Flow, node: &Node, work: Work) -> Option<Result<Produced>> {
        match flow {
            Flow::Send(transfer) => {
                let key = transfer.key(work.key, work.ready.iteration);
                if let Some(stats) = &self.env.stats {
                    // Noted first: whoever waits for the value goes on inside `send`.
                    note(stats, node, work.scheduled, stats.now(), None);
                }
                let value = work.inputs.into_iter().next().flatten();
                let sent = match value {
                    _ if work.ready.dead => self.env.rendezvous.send(&key, empty(), true),
                    Some(Value::Stored(stored)) => self.env.rendezvous.offer(&key, stored),
                    Some(value) => value.read().and_then(|tensor| self.env.rendezvous.send(&key, tensor, false)),
                    None => Err(internal!("nothing to send")),
                };
                Some(sent.map(|()| Produced::new()).map_err(|error| error.at_node(&node.name)))
            }
            Flow::Recv(_) if work.ready.dead => Some(Ok(Produced::new())),
            Flow::Recv(transfer) => {
                let key = transfer.key(work.key, work.ready.iteration);
                let (active, ready, scheduled) = (self.clone(), work.ready, work.scheduled);
                let start = self.env.stats.as_ref().map_or(0, |stats| stats.now());
                let done = move |received: Result<op::Received>| {
                    let node = &active.program.nodes[ready.node as usize];
                    let mut ready = ready;
                    let result = received.map(|(tensor, dead)| {
                        ready.dead = dead;
                        if dead { smallvec![None] } else { smallvec![Some(Value::Tensor(tensor))] }
                    });
                    if let Some(stats) = &active.env.stats {
                        note(stats, node, scheduled, start, result.as_ref().ok());
                    }
                    active.drive(Message::Done(ready, result.map_err(|error: Error| error.at_node(&node.name))), false);
                };
                self.env.rendezvous.recv(&key, Box::new(done));
                None
            }
            _ => None,
        }
    }
}

/// A tensor that nobody looks at.
fn empty() -> Tensor {
    Tensor::vector::<f32>(&[])
}

/// Calls a kernel; a panic in it is an error of this step only.
fn call(node: &Node, ctx: &Ctx<'_>, inputs: SmallVec<[Option<Value>; 4]>) -> Result<Produced> {
    let one = |tensor| smallvec![Some(Value::Tensor(tensor))];
    let result = catch_unwind(AssertUnwindSafe(|| match &node.kernel.run {
        Run::Source(run) => run(ctx).map(one),
        Run::Unary(run) => {
            let mut inputs = inputs.into_iter().flatten();
            let x = inputs.next().ok_or_else(missing).and_then(Value::read)?;
            run(ctx, x).map(one)
        }
        Run::Binary(run) => {
            let mut inputs = inputs.into_iter().flatten();
            let x = inputs.next().ok_or_else(missing).and_then(Value::read)?;
            let y = inputs.next().ok_or_else(missing).and_then(Value::read)?;
            run(ctx, x, y).map(one)
        }
        Run::Many(run) => run(ctx, resolve(node, inputs)?).map(|outputs| outputs.into_iter().map(Some).collect()),
        Run::Later(_) | Run::Stored(_) | Run::Flow(_) => Err(internal!("op {} cannot run here", node.op)),
    }));
    result.unwrap_or_else(|panic| Err(panicked(node, panic)))
}

fn missing() -> Error {
    internal!("an input is missing")
}

fn panicked(node: &Node, panic: Box<dyn std::any::Any + Send>) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    internal!("the kernel of {} ({}) failed unexpectedly: {text}", node.name, node.op).at_node(&node.name)
}

/// References stay references where the op wants them; elsewhere the current value is read.
fn resolve(node: &Node, values: SmallVec<[Option<Value>; 4]>) -> Result<Inputs> {
    if node.refs == 0 && values.iter().all(|value| matches!(value, Some(Value::Tensor(_)))) {
        return Ok(Inputs::from(values));
    }
    let mut inputs = Inputs::default();
    for (index, value) in values.into_iter().flatten().enumerate() {
        let wanted = index < 64 && node.refs >> index & 1 == 1;
        inputs.push(match value {
            Value::Ref(variable) if wanted => {
                if !node.may_be_uninitialized && !variable.is_initialized() {
                    return Err(variable.uninitialized());
                }
                Value::Ref(variable)
            }
            value => Value::Tensor(value.read()?),
        });
    }
    Ok(inputs)
}

/// The ops whose meaning is ours; values pass through untouched, references too where the op says so.
fn run_flow(flow: &Flow, node: &Node, inputs: SmallVec<[Option<Value>; 4]>) -> Result<Produced> {
    let keep = node.refs & 1 == 1;
    // A reference passes as it is, and whoever computes with it reads it then: a read that is ordered after an update
    // sees the update, even when the Identity before it ran earlier.
    let pass = |value: Value| match value {
        Value::Ref(variable) if !keep && !variable.is_initialized() => Err(variable.uninitialized()),
        value => Ok(value),
    };
    let mut inputs = inputs.into_iter();
    let result = match flow {
        Flow::Merge => {
            let first = inputs.enumerate().find_map(|(index, value)| Some((index, value?)));
            let (index, value) = first.ok_or_else(missing)?;
            Ok(smallvec![Some(pass(value)?), Some(Value::Tensor(Tensor::scalar(index as i32)))])
        }
        Flow::ControlTrigger => Ok(Produced::new()),
        Flow::Switch => {
            let value = pass(inputs.next().flatten().ok_or_else(missing)?)?;
            let chosen = choice::<bool>(inputs.next().flatten().ok_or_else(missing)?)?;
            Ok(if chosen { smallvec![None, Some(value)] } else { smallvec![Some(value), None] })
        }
        Flow::SwitchN(count) => {
            let value = pass(inputs.next().flatten().ok_or_else(missing)?)?;
            let chosen = choice::<i32>(inputs.next().flatten().ok_or_else(missing)?)?;
            let chosen = usize::try_from(chosen).ok().filter(|chosen| chosen < count).unwrap_or(count - 1);
            let mut outputs: Produced = (0..*count).map(|_| None).collect();
            outputs[chosen] = Some(value);
            Ok(outputs)
        }
        _ => Ok(smallvec![Some(pass(inputs.next().flatten().ok_or_else(missing)?)?)]),
    };
    result.map_err(|error: Error| error.at_node(&node.name))
}

/// What a Switch goes by.
fn choice<T: Element>(value: Value) -> Result<T> {
    let value = value.read()?;
    match value.shape().rank() {
        0 => value.to_scalar(),
        _ => Err(invalid!("The second input must be a scalar, but it has shape {}", value.shape())),
    }
}

/// An argument of a function, if it has the type that the function takes.
fn argument(index: usize, dtype: DType, value: Option<Value>) -> Result<Produced> {
    let value = value.ok_or_else(|| internal!("argument {index} is missing"))?;
    let found = match &value {
        Value::Tensor(tensor) => tensor.dtype(),
        Value::Ref(variable) => variable.dtype(),
        Value::Stored(stored) => stored.dtype(),
    };
    if found != dtype.base() {
        return Err(invalid!("Expects arg[{index}] to be {dtype} but {found} is provided"));
    }
    Ok(smallvec![Some(value)])
}

fn note(stats: &Stats, node: &Node, scheduled: u64, start: u64, produced: Option<&Produced>) {
    if node.inlined {
        return;
    }
    let described = |value: &Option<Value>| match value {
        Some(Value::Tensor(tensor)) => Some((tensor.dtype(), tensor.shape().clone())),
        _ => None,
    };
    let outputs: Vec<(DType, Shape)> =
        produced.map(|values| values.iter().filter_map(described).collect()).unwrap_or_default();
    stats.add(NodeStats {
        name: node.name.clone(),
        op: node.op.clone(),
        device: node.device.clone(),
        scheduled,
        start,
        end: stats.now(),
        outputs,
        thread: thread_number(),
    });
}

/// A small number for this thread.
pub(crate) fn thread_number() -> u32 {
    use std::cell::Cell;
    use std::sync::atomic::AtomicU32;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static OWN: Cell<Option<u32>> = const { Cell::new(None) });
    OWN.with(|own| {
        let number = own.get().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        own.set(Some(number));
        number
    })
}
