//! Functions of a graph: a body is compiled to a program, and a call runs it.

use crate::imported::ImportingLibraries;
use crate::{Devices, Kernels, Program, RemoteFunction, RunOptions, Target, compile, run};
use graph::builtin_ops::{ARG, IDENTITY, RETVAL, SYMBOLIC_GRADIENT};
use graph::{
    Arg, ArgType, AttrValue, FlatGraph, Function, FunctionDef, FunctionLibrary, GraphDef, NodeDef, Signature,
    Signatures, function_fingerprint,
};
use op::{Callable, Ctx, Done, Forks, Functions, Inputs, Kernel, Libraries, Outputs, Setup, Siblings, Value, later};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use status::{Result, exhausted, internal, invalid, not_found};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use tensor::DType;

/// Returns the gradient function of a function. The caller of this crate provides it, so that `exec` need not know how
/// to differentiate.
pub type Differentiate = dyn Fn(&FunctionDef, &FunctionLibrary) -> Result<FunctionDef> + Send + Sync;

/// The most functions with distinct attributes in a graph. Functions that pass their attributes on can combine them
/// without end.
const MAX_INSTANCES: usize = 100_000;

/// The functions of a graph, on the devices of a task.
pub struct Library {
    functions: Arc<FunctionLibrary>,
    /// The version of the producer of the graph.
    producer: i32,
    devices: Arc<dyn Devices>,
    kernels: Arc<Kernels>,
    differentiate: Option<Arc<Differentiate>>,
    callables: Mutex<FxHashMap<String, Arc<Body>>>,
    own: Weak<Library>,
}

impl Library {
    /// The library of a graph on these devices.
    pub fn new(
        graph: &FlatGraph,
        devices: Arc<dyn Devices>,
        kernels: Arc<Kernels>,
        differentiate: Option<Arc<Differentiate>>,
    ) -> Arc<Library> {
        Arc::new_cyclic(|own| Library {
            functions: graph.library.clone(),
            producer: graph.versions.producer,
            devices,
            kernels,
            differentiate,
            callables: Mutex::default(),
            own: own.clone(),
        })
    }

    /// The same functions, whose nodes have state of their own.
    fn fork(&self) -> Arc<Library> {
        self.with_functions(self.functions.clone())
    }

    /// Other functions on the same devices.
    pub(crate) fn with_functions(&self, functions: Arc<FunctionLibrary>) -> Arc<Library> {
        let kernels = Arc::new(self.kernels.fork());
        Arc::new_cyclic(|own| Library {
            functions,
            producer: self.producer,
            devices: self.devices.clone(),
            kernels,
            differentiate: self.differentiate.clone(),
            callables: Mutex::default(),
            own: own.clone(),
        })
    }

    pub(crate) fn functions(&self) -> &Arc<FunctionLibrary> {
        &self.functions
    }

    pub(crate) fn devices(&self) -> &dyn Devices {
        &*self.devices
    }

    pub(crate) fn siblings(&self) -> Arc<dyn Siblings> {
        self.devices.clone()
    }

    /// True if an op is a function that may be inlined.
    pub(crate) fn is_inlined(&self, op: &str) -> bool {
        let function = self.functions.functions.get(op);
        function.is_some_and(|function| function.attrs.get("_noinline") != Some(&AttrValue::Bool(true)))
    }

    /// The kernel of a node whose op is a function's name.
    pub(crate) fn call_kernel(&self, setup: &Setup<'_>) -> Result<Kernel> {
        let def = setup.def();
        let function = Function { name: def.op.clone(), attrs: def.attrs.clone() };
        let callable = self.instantiate(&function, setup.device())?;
        Ok(later(move |ctx, inputs, done| callable.call(ctx, inputs, done)))
    }
}

impl Functions for Library {
    fn instantiate(&self, function: &Function, device: &str) -> Result<Arc<dyn Callable>> {
        Library::instantiate(self, function, device)
    }

    fn fingerprint(&self, function: &Function) -> Option<u64> {
        function_fingerprint(&self.functions, function)
    }

    fn producer(&self) -> i32 {
        self.producer
    }

    fn definitions(&self) -> Option<Arc<FunctionLibrary>> {
        Some(self.functions.clone())
    }

    fn libraries(&self) -> Option<Arc<dyn Libraries>> {
        Some(Arc::new(ImportingLibraries(self.own.clone())))
    }
}

impl Library {
    fn instantiate(&self, function: &Function, device: &str) -> Result<Arc<dyn Callable>> {
        self.instantiate_as(function, device, Placement::Requested)
    }

    fn instantiate_as(&self, function: &Function, device: &str, placement: Placement) -> Result<Arc<dyn Callable>> {
        if !self.functions.functions.contains_key(&function.name) && function.name != SYMBOLIC_GRADIENT {
            return Err(not_found!("Function {} is not defined", function.name));
        }
        let key = instance(function, device, placement);
        let mut callables = self.callables.lock();
        if callables.len() >= MAX_INSTANCES && !callables.contains_key(&key) {
            return Err(exhausted!(
                "Function {} is called with new attributes: there are {MAX_INSTANCES} instances of functions already",
                function.name
            ));
        }
        let body = callables.entry(key).or_insert_with(|| {
            Arc::new(Body {
                library: self.own.clone(),
                function: function.clone(),
                device: device.to_string(),
                placement,
                program: OnceLock::new(),
            })
        });
        Ok(body.clone())
    }

    /// The function on the device that a call names, seen from another device.
    fn instantiate_on(self: &Arc<Self>, function: &Function, target: &str, from: &str) -> Result<Arc<dyn Callable>> {
        match self.devices.target(target, from)? {
            Target::Here(device) => self.instantiate_as(function, &device, Placement::OneDevice),
            Target::There(task, device) => {
                let def = self.functions.functions.get(&function.name);
                let def = def.ok_or_else(|| not_found!("Function {} is not defined", function.name))?;
                let types = |args: &[Arg]| -> Result<Vec<DType>> {
                    let each = args.iter().map(|arg| arg_types(&def.signature, arg, function));
                    Ok(each.collect::<Result<Vec<_>>>()?.concat())
                };
                let (args, results) = (types(&def.signature.inputs)?, types(&def.signature.outputs)?);
                let (functions, function) = (Arc::new(self.without_devices_of(def)), function.clone());
                task.function(RemoteFunction { functions, function, device, args, results })
            }
        }
    }

    /// The functions, of which one runs on the device of its caller alone.
    fn without_devices_of(&self, def: &FunctionDef) -> FunctionLibrary {
        let mut functions = (*self.functions).clone();
        functions.functions.insert(def.signature.name.clone(), Arc::new(without_devices(def)));
        functions
    }

    /// Compiles the body of a function for a device.
    fn prepare(self: &Arc<Self>, function: &Function, device: &str, placement: Placement) -> Result<Arc<Program>> {
        let mut def = match function.name.as_str() {
            SYMBOLIC_GRADIENT => self.gradient(function)?,
            name => self
                .functions
                .functions
                .get(name)
                .cloned()
                .ok_or_else(|| not_found!("Function {name} is not defined"))?,
        };
        if placement == Placement::OneDevice {
            def = Arc::new(without_devices(&def));
        }
        let graph = body_graph(&def, (function, device), self.kernels.registry().as_ref(), &self.functions)?;
        let path = format!("{}/", instance(function, device, placement));
        Ok(Arc::new(compile(graph, &self.kernels, self, &path)?))
    }

    fn gradient(&self, function: &Function) -> Result<Arc<FunctionDef>> {
        let Some(AttrValue::Func(forward)) = function.attrs.get("f") else {
            return Err(invalid!("SymbolicGradient without a function"));
        };
        if let Some(own) = self.functions.gradients.get(&forward.name) {
            let found = self.functions.functions.get(own).cloned();
            return found.ok_or_else(|| not_found!("Gradient function {own} is not defined"));
        }
        let def = self.functions.functions.get(&forward.name);
        let def = def.ok_or_else(|| not_found!("Function {} is not defined", forward.name))?;
        let differentiate = self.differentiate.as_ref();
        let differentiate = differentiate.ok_or_else(|| internal!("this library cannot differentiate functions"))?;
        Ok(Arc::new(differentiate(&instantiated(def, forward)?, &self.functions)?))
    }
}

/// The devices on which the nodes of a body run.
#[derive(Clone, Copy, PartialEq)]
enum Placement {
    /// Those that the nodes name, or else the device of the function.
    Requested,
    /// The device of the function: the caller chose it for all nodes.
    OneDevice,
}

/// What distinguishes the instances of functions: the device, the name and the attributes. Attributes that begin with an
/// underscore are hints of the client and change nothing.
fn instance(function: &Function, device: &str, placement: Placement) -> String {
    let attrs: BTreeMap<_, _> = function.attrs.iter().filter(|(name, _)| !name.starts_with('_')).collect();
    let alone = if placement == Placement::OneDevice { "only " } else { "" };
    format!("{alone}{device} {} {attrs:?}", function.name)
}

/// The function with nodes that name no device.
fn without_devices(def: &FunctionDef) -> FunctionDef {
    let without = |node: &Arc<NodeDef>| Arc::new(NodeDef { device: String::new(), ..(**node).clone() });
    FunctionDef { nodes: def.nodes.iter().map(without).collect(), encoded: Default::default(), ..def.clone() }
}

/// The function with the attributes of a call substituted: every argument and result is one tensor of a fixed type.
fn instantiated(def: &FunctionDef, function: &Function) -> Result<FunctionDef> {
    let mut instance = def.clone();
    instance.nodes = def.nodes.iter().map(|node| node.with_attrs_of(function).map(Arc::new)).collect::<Result<_>>()?;
    for args in [&mut instance.signature.inputs, &mut instance.signature.outputs] {
        for arg in args {
            match arg_types(&def.signature, arg, function)?[..] {
                [dtype] => (arg.ty, arg.number) = (ArgType::Fixed(dtype), None),
                _ => return Err(invalid!("Argument '{}' of a function must be one tensor", arg.name)),
            }
        }
    }
    instance.signature.attrs.clear();
    Ok(instance)
}

/// A function whose body is compiled at the first call.
struct Body {
    library: Weak<Library>,
    function: Function,
    device: String,
    placement: Placement,
    program: OnceLock<Result<Arc<Program>>>,
}

impl Callable for Body {
    fn call(&self, ctx: &Ctx<'_>, mut args: Inputs, done: Done) {
        let library = match self.library() {
            Ok(library) => library,
            Err(error) => return done(Err(error)),
        };
        let program = match self.program.get_or_init(|| library.prepare(&self.function, &self.device, self.placement)) {
            Ok(program) => program.clone(),
            Err(error) => return done(Err(error.clone())),
        };
        let env = match ctx.env.called(&self.function.name) {
            Ok(env) => env,
            Err(error) => return done(Err(error)),
        };
        let args = (0..args.len()).map(|index| args.take(index).ok()).collect();
        let options = RunOptions { env: env.clone(), args };
        let ended = env.clone();
        let finish = move |result: Result<Vec<Option<Value>>>| {
            ended.end_call(move || {
                let _alive = library; // keeps the kernels of the body alive during the run
                done(result.and_then(results));
            });
        };
        env.run_call(move || run(program, options, Box::new(finish)));
    }

    fn fork(&self, forks: &Forks) -> Result<Arc<dyn Callable>> {
        let library = forks.libraries::<LibraryForks>().of(&self.library()?);
        let body = library.instantiate_as(&self.function, &self.device, self.placement)?;
        Ok(Arc::new(Forked { library, body }))
    }

    fn on_device(&self, target: &str) -> Result<Arc<dyn Callable>> {
        self.library()?.instantiate_on(&self.function, target, &self.device)
    }

    fn has_op(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.library.upgrade().is_some_and(|library| has_op(&library.functions, &self.function.name, test))
    }

    fn is_identity(&self) -> bool {
        let library = self.library.upgrade();
        library.is_some_and(|library| {
            library.functions.functions.get(&self.function.name).is_some_and(|def| is_identity(def))
        })
    }
}

impl Body {
    fn library(&self) -> Result<Arc<Library>> {
        self.library.upgrade().ok_or_else(|| internal!("the graph of function {} was released", self.function.name))
    }
}

/// True if a function, or one that it uses, has a node whose op passes the test.
fn has_op(library: &FunctionLibrary, name: &str, test: &dyn Fn(&str) -> bool) -> bool {
    let mut reached = FxHashSet::from_iter([name]);
    let mut queue = vec![name];
    while let Some(name) = queue.pop() {
        let Some(function) = library.functions.get(name) else { continue };
        for node in &function.nodes {
            if test(&node.op) {
                return true;
            }
            queue.extend(used_functions(node).filter(|used| reached.insert(used)));
        }
    }
    false
}

/// True if each result is the argument at the same position, at most copied by Identity nodes.
fn is_identity(def: &FunctionDef) -> bool {
    let (inputs, outputs) = (&def.signature.inputs, &def.signature.outputs);
    inputs.len() == outputs.len()
        && inputs.iter().zip(outputs).all(|(input, output)| {
            let returned = def.ret.get(&output.name);
            returned.is_some_and(|returned| argument_behind(def, returned) == Some(&input.name))
        })
}

/// The argument that an output of a function's body is a copy of.
fn argument_behind<'a>(def: &'a FunctionDef, output: &'a str) -> Option<&'a str> {
    let mut source = output;
    for _ in 0..=def.nodes.len() {
        let name = source.split(':').next().unwrap_or(source);
        let Some(node) = def.nodes.iter().find(|node| node.name == name) else { return Some(name) };
        source = node.inputs.first().filter(|_| node.op == IDENTITY)?;
    }
    None
}

/// The op of a node, which may be a function, and the functions in its attributes.
fn used_functions(node: &NodeDef) -> impl Iterator<Item = &str> {
    let in_attrs = node.attrs.values().flat_map(|value| match value {
        AttrValue::Func(function) => vec![function.name.as_str()],
        AttrValue::List(list) => list.funcs.iter().map(|function| function.name.as_str()).collect(),
        _ => Vec::new(),
    });
    std::iter::once(node.op.as_str()).chain(in_attrs)
}

/// The forks of the libraries from which one owner took functions, beside the originals.
#[derive(Default)]
struct LibraryForks(Mutex<Vec<(Weak<Library>, Arc<Library>)>>);

impl LibraryForks {
    /// The fork of a library; a fork is its own fork.
    fn of(&self, library: &Arc<Library>) -> Arc<Library> {
        let mut forks = self.0.lock();
        let is_same = |(original, fork): &&(Weak<Library>, Arc<Library>)| {
            std::ptr::eq(original.as_ptr(), Arc::as_ptr(library)) || Arc::ptr_eq(fork, library)
        };
        if let Some((_, fork)) = forks.iter().find(is_same) {
            return fork.clone();
        }
        let fork = library.fork();
        forks.push((Arc::downgrade(library), fork.clone()));
        fork
    }
}

/// A function of a forked library, which it keeps alive.
pub(crate) struct Forked {
    pub(crate) library: Arc<Library>,
    pub(crate) body: Arc<dyn Callable>,
}

impl Callable for Forked {
    fn call(&self, ctx: &Ctx<'_>, args: Inputs, done: Done) {
        self.body.call(ctx, args, done);
    }

    fn fork(&self, forks: &Forks) -> Result<Arc<dyn Callable>> {
        let library = forks.libraries::<LibraryForks>().of(&self.library);
        Ok(Arc::new(Forked { library, body: self.body.fork(forks)? }))
    }

    fn on_device(&self, target: &str) -> Result<Arc<dyn Callable>> {
        Ok(Arc::new(Forked { library: self.library.clone(), body: self.body.on_device(target)? }))
    }

    fn has_op(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.body.has_op(test)
    }

    fn is_identity(&self) -> bool {
        self.body.is_identity()
    }
}

/// The results of a body, none of which may be dead.
fn results(values: Vec<Option<Value>>) -> Result<Outputs> {
    let live = |value: Option<Value>| value.ok_or_else(|| invalid!("Retval does not have value"));
    values.into_iter().map(live).collect()
}

/// The body of a function as a graph on a device: arguments and results become nodes, attributes are substituted.
fn body_graph(
    def: &FunctionDef,
    (function, device): (&Function, &str),
    ops: &dyn Signatures,
    library: &Arc<FunctionLibrary>,
) -> Result<FlatGraph> {
    let mut body = BodyGraph { sources: FxHashMap::default(), nodes: Vec::new() };
    body.add_args(&def.signature, function)?;
    for node in &def.nodes {
        body.declare(node, function, ops, library)?;
    }
    for node in &def.nodes {
        body.add_node(node, function)?;
    }
    body.add_results(def, function)?;
    let nodes = body.nodes.into_iter().map(|node| Arc::new(placed(node, device))).collect();
    let mut flat = FlatGraph::with_library(library.clone());
    flat.extend(&GraphDef { nodes, ..GraphDef::default() }, ops)?;
    drop_unused(&mut flat, def, ops);
    Ok(flat)
}

/// Removes nodes that lead neither to a result nor to a declared side effect, unless they have state.
fn drop_unused(flat: &mut FlatGraph, def: &FunctionDef, ops: &dyn Signatures) {
    let mut needed = vec![false; flat.nodes.len()];
    let mut queue: Vec<u32> = def.control_ret.values().filter_map(|name| flat.find(name)).collect();
    for (id, node) in flat.nodes.iter().enumerate() {
        if ops.signature(&node.def.op).is_none_or(|signature| signature.stateful) {
            queue.push(id as u32);
        }
    }
    while let Some(id) = queue.pop() {
        if !std::mem::replace(&mut needed[id as usize], true) {
            let node = flat.node(id);
            queue.extend(node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied()));
        }
    }
    flat.retain(&needed);
}

/// A node of a body on the device of its function, unless it names another one.
fn placed(mut node: NodeDef, device: &str) -> NodeDef {
    if node.device.is_empty() {
        node.device = device.to_string();
    }
    node
}

struct BodyGraph {
    /// The tensors of the graph, `node:k`, by their names in the function, `node:out:i`.
    sources: FxHashMap<String, String>,
    nodes: Vec<NodeDef>,
}

impl BodyGraph {
    fn add_args(&mut self, signature: &Signature, function: &Function) -> Result<()> {
        let mut index = 0i64;
        for arg in &signature.inputs {
            for (place, dtype) in arg_types(signature, arg, function)?.into_iter().enumerate() {
                let name = if place == 0 { arg.name.clone() } else { format!("{}_{place}", arg.name) };
                let attrs = [("T", dtype.into()), ("index", index.into())];
                self.nodes.push(node_def(&name, ARG, Vec::new(), attrs));
                self.sources.insert(format!("{}:{place}", arg.name), name.clone());
                if place == 0 {
                    self.sources.insert(arg.name.clone(), name);
                }
                index += 1;
            }
        }
        Ok(())
    }

    /// Records the outputs of a body node under their names in the function.
    fn declare(
        &mut self,
        node: &Arc<NodeDef>,
        function: &Function,
        ops: &dyn Signatures,
        library: &FunctionLibrary,
    ) -> Result<()> {
        let node = node.with_attrs_of(function)?;
        let called = library.functions.get(&node.op).map(|function| &function.signature);
        let signature = called.or_else(|| ops.signature(&node.op));
        let signature = signature.ok_or_else(|| not_found!("Op type not registered '{}'", node.op))?;
        let mut flat = 0;
        for arg in &signature.outputs {
            for place in 0..signature.arg_types(arg, &node)?.len() {
                let target = if flat == 0 { node.name.clone() } else { format!("{}:{flat}", node.name) };
                self.sources.insert(format!("{}:{}:{place}", node.name, arg.name), target.clone());
                if place == 0 {
                    self.sources.insert(format!("{}:{}", node.name, arg.name), target);
                }
                flat += 1;
            }
        }
        Ok(())
    }

    fn add_node(&mut self, node: &Arc<NodeDef>, function: &Function) -> Result<()> {
        let mut node = node.with_attrs_of(function)?;
        node.inputs = node.inputs.iter().map(|input| self.source(input)).collect::<Result<_>>()?;
        self.nodes.push(node);
        Ok(())
    }

    fn source(&self, input: &str) -> Result<String> {
        if input.starts_with('^') {
            return Ok(input.to_string());
        }
        self.sources.get(input).cloned().ok_or_else(|| invalid!("Function body refers to unknown input '{input}'"))
    }

    fn add_results(&mut self, def: &FunctionDef, function: &Function) -> Result<()> {
        let mut index = 0i64;
        for arg in &def.signature.outputs {
            let types = arg_types(&def.signature, arg, function)?;
            let target = def.ret.get(&arg.name).ok_or_else(|| invalid!("Function result '{}' is missing", arg.name))?;
            for (place, dtype) in types.iter().enumerate() {
                // A result of several tensors names the first; the others are the following outputs.
                let input = match place {
                    0 => self.source(target)?,
                    _ => self.following(target, place)?,
                };
                let name = format!("_ret_{}_{place}", arg.name);
                let attrs = [("T", (*dtype).into()), ("index", index.into())];
                self.nodes.push(node_def(&name, RETVAL, vec![input], attrs));
                index += 1;
            }
        }
        Ok(())
    }

    fn following(&self, target: &str, place: usize) -> Result<String> {
        let base = target.rsplit_once(':').filter(|(_, last)| last.parse::<usize>().is_ok()).map_or(target, |(b, _)| b);
        self.source(&format!("{base}:{place}"))
    }
}

fn node_def<const N: usize>(name: &str, op: &str, inputs: Vec<String>, attrs: [(&str, AttrValue); N]) -> NodeDef {
    let attrs = attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    NodeDef { name: name.to_string(), op: op.to_string(), inputs, attrs, ..NodeDef::default() }
}

/// The types of the tensors of one argument of a function.
fn arg_types(signature: &Signature, arg: &Arg, function: &Function) -> Result<Vec<DType>> {
    let attrs = function.attrs.clone();
    let call = NodeDef { name: function.name.clone(), attrs, ..NodeDef::default() };
    match &arg.ty {
        ArgType::Fixed(dtype) if arg.number.is_none() => Ok(vec![*dtype]),
        _ => Ok(signature.arg_types(arg, &call)?.to_vec()),
    }
}
