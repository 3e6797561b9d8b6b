//! A case that is a graph: nodes, functions, and steps one after another in one session.

use crate::case::{Want, located};
use crate::graph_nodes::Nodes;
use crate::text::{inside, words};
use crate::values::tensor;
use graph::{AttrValue, FunctionDef, FunctionLibrary, GraphDef, NodeDef, Signature, Signatures, TensorName, Versions};
use op::Registry;
use status::{Result, invalid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tensor::{DType, Tensor};

/// What stands in a case for a folder of its own.
const FOLDER: &str = "{tmp}";
/// The version that graphs have if they do not say another.
const PRODUCER: i32 = 2474;

/// A graph case as it stands in a file.
#[derive(Clone, Debug, Default)]
pub struct GraphCase {
    /// File and line of its first line.
    pub place: String,
    lines: Vec<(String, String)>,
}

/// A graph case that can be run.
#[derive(Debug, Default)]
pub struct Program {
    /// Its graph.
    pub graph: GraphDef,
    /// What is run, in order.
    pub steps: Vec<Step>,
    /// Tolerance, if it is not the usual one.
    pub tolerance: Option<f64>,
}

/// One step: what is fed and asked for, and what TensorFlow answered.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// What placeholders are fed, by name.
    pub feeds: BTreeMap<String, Feed>,
    /// Tensors asked for, `name:0`.
    pub fetches: Vec<String>,
    /// Nodes that only run.
    pub targets: Vec<String>,
    /// What to expect.
    pub want: Want,
}

/// What a placeholder is fed.
#[derive(Clone, Debug)]
pub enum Feed {
    /// A value.
    Value(Tensor),
    /// What this fetch gave when it was last asked for.
    Last(String),
}

/// The cases of a file that are graphs.
pub fn parse_graphs(file: &str, text: &str) -> Vec<GraphCase> {
    let (mut cases, mut in_graph) = (Vec::<GraphCase>::new(), false);
    for (number, line) in text.lines().enumerate() {
        let (line, place) = (line.trim(), format!("{file}:{}", number + 1));
        match line.split(' ').next() {
            Some("" | "#") | None => continue,
            Some("graph") => {
                in_graph = true;
                cases.push(GraphCase { place: place.clone(), lines: Vec::new() });
            }
            Some("op") => in_graph = false,
            _ => {}
        }
        if let Some(case) = cases.last_mut().filter(|_| in_graph) {
            case.lines.push((place, line.to_string()));
        }
    }
    cases
}

impl GraphCase {
    /// Whether its file, line, ops or names contain the text.
    pub fn is_named(&self, text: &str) -> bool {
        self.place.contains(text) || self.lines.iter().any(|(_, line)| line.contains(text))
    }

    /// Reads its lines; files it mentions are in `folder`.
    pub fn read(&self, registry: &Registry, folder: &str) -> Result<Program> {
        let mut reader = Reader::new(registry);
        for (place, line) in &self.lines {
            let line = line.replace(FOLDER, folder);
            reader.line(&words(&line)).map_err(|error| located(error, place))?;
        }
        Ok(reader.finished())
    }
}

/// A function whose lines are being read.
struct Body {
    name: String,
    args: Vec<(String, DType)>,
    nodes: Nodes,
}

struct Reader<'a> {
    registry: &'a Registry,
    nodes: Nodes,
    body: Option<Body>,
    library: FunctionLibrary,
    feeds: BTreeMap<String, Feed>,
    program: Program,
}

impl<'a> Reader<'a> {
    fn new(registry: &'a Registry) -> Reader<'a> {
        let (nodes, library) = (Nodes::default(), FunctionLibrary::default());
        Reader { registry, nodes, body: None, library, feeds: BTreeMap::new(), program: Program::default() }
    }

    fn line(&mut self, words: &[&str]) -> Result<()> {
        match words {
            ["graph"] => self.program.graph.versions = Versions { producer: PRODUCER, ..Versions::default() },
            ["graph", word] => self.program.graph.versions.producer = producer(word)?,
            ["node", name, op, rest @ ..] => self.node(name, op, rest)?,
            ["const", name, rest @ ..] => self.constant(name, tensor(rest)?)?,
            ["in", name, rest @ ..] => self.feed(name, rest)?,
            ["function", name, args @ ..] => self.begin_function(name, args)?,
            ["return", rest @ ..] => self.end_function(rest)?,
            ["run", rest @ ..] => self.step(rest),
            ["tol", text] => {
                self.program.tolerance = Some(text.parse().map_err(|_| invalid!("{text} is not a tolerance"))?);
            }
            ["like", _] | ["shapes"] => {} // for update.py
            _ => match self.program.steps.last_mut() {
                Some(step) => step.want.line(words)?,
                None => return Err(invalid!("what is '{}'?", words.join(" "))),
            },
        }
        Ok(())
    }

    fn signature(&self, op: &str) -> Result<Signature> {
        let function = self.library.functions.get(op).map(|function| &function.signature);
        let found = function.or_else(|| Signatures::signature(self.registry, op));
        found.cloned().ok_or_else(|| invalid!("there is no op or function {op}"))
    }

    fn node(&mut self, name: &str, op: &str, rest: &[&str]) -> Result<()> {
        let signature = self.signature(op)?;
        self.here().add(name, &signature, rest)
    }

    /// The nodes that lines speak of: those of the function that is open, or of the graph.
    fn here(&mut self) -> &mut Nodes {
        self.body.as_mut().map_or(&mut self.nodes, |body| &mut body.nodes)
    }

    fn constant(&mut self, name: &str, value: Tensor) -> Result<()> {
        let signature = self.signature("Const")?;
        let attrs = [("dtype", AttrValue::Type(value.dtype())), ("value", value.into())];
        self.here().add_with(name, &signature, &attrs)
    }

    fn feed(&mut self, name: &str, words: &[&str]) -> Result<()> {
        let (dtype, feed) = match words.first().and_then(|word| inside(word, "last(", ')')) {
            Some(fetch) => (self.nodes.output(fetch)?.0, Feed::Last(fetch_name(fetch))),
            None => {
                let value = tensor(words)?;
                (value.dtype(), Feed::Value(value))
            }
        };
        let signature = self.signature("Placeholder")?;
        if !self.nodes.has(name) {
            self.nodes.add_with(name, &signature, &[("dtype", AttrValue::Type(dtype))])?;
        }
        self.feeds.insert(name.to_string(), feed);
        Ok(())
    }

    fn begin_function(&mut self, name: &str, words: &[&str]) -> Result<()> {
        let mut args = Vec::new();
        for word in words {
            let (arg, dtype) = word.split_once('=').ok_or_else(|| invalid!("{word} is not an argument"))?;
            let dtype = DType::from_name(dtype).ok_or_else(|| invalid!("{dtype} is not a type"))?;
            args.push((arg.to_string(), dtype));
        }
        let nodes = Nodes::body(&args);
        self.body = Some(Body { name: name.to_string(), args, nodes });
        Ok(())
    }

    fn end_function(&mut self, words: &[&str]) -> Result<()> {
        let body = self.body.take().ok_or_else(|| invalid!("return from what?"))?;
        let (mut ret, mut control_ret) = (BTreeMap::new(), BTreeMap::new());
        let mut signature = Signature { name: body.name.clone(), ..Signature::default() };
        signature.inputs = body.args.iter().map(|(name, dtype)| arg(name, *dtype)).collect();
        for word in words {
            if let Some(node) = word.strip_prefix('^') {
                signature.control_outputs.push(node.to_string());
                control_ret.insert(node.to_string(), node.to_string());
                continue;
            }
            let (name, source) = word.split_once('=').ok_or_else(|| invalid!("{word} is not a result"))?;
            let (dtype, source) = body.nodes.output(source)?;
            signature.outputs.push(arg(name, dtype.base()));
            ret.insert(name.to_string(), source);
        }
        let nodes = body.nodes.defs;
        signature.stateful = nodes.iter().any(|node| self.signature(&node.op).is_ok_and(|op| op.stateful));
        let function = FunctionDef {
            signature,
            nodes,
            ret,
            control_ret,
            attrs: BTreeMap::new(),
            arg_attrs: BTreeMap::new(),
            resource_arg_unique_id: BTreeMap::new(),
            encoded: Default::default(),
        };
        self.library.functions.insert(body.name, Arc::new(function));
        Ok(())
    }

    fn step(&mut self, words: &[&str]) {
        let mut step = Step { feeds: self.feeds.clone(), ..Step::default() };
        for word in words {
            match word.strip_prefix('^') {
                Some(node) => step.targets.push(node.to_string()),
                None => step.fetches.push(fetch_name(word)),
            }
        }
        self.program.steps.push(step);
    }

    fn finished(mut self) -> Program {
        self.program.graph.nodes = self.nodes.defs;
        self.program.graph.library = self.library;
        self.program
    }
}

/// `x:0` for `x`.
fn fetch_name(word: &str) -> String {
    if word.contains(':') { word.to_string() } else { format!("{word}:0") }
}

fn producer(word: &str) -> Result<i32> {
    let version = word.strip_prefix("producer=").and_then(|version| version.parse().ok());
    version.ok_or_else(|| invalid!("{word} is not producer=version"))
}

fn arg(name: &str, dtype: DType) -> graph::Arg {
    graph::Arg { name: name.to_string(), ty: graph::ArgType::Fixed(dtype), number: None, is_ref: false }
}

impl Program {
    /// The ops that its steps run, those of functions included.
    pub fn ops(&self) -> BTreeSet<String> {
        let mut ops = BTreeSet::new();
        let (nodes, functions) = self.reached();
        ops.extend(nodes.iter().map(|node| node.op.clone()));
        for function in functions.iter().filter_map(|name| self.graph.library.functions.get(*name)) {
            ops.extend(function.nodes.iter().map(|node| node.op.clone()));
            // What a call hands over goes through these.
            ops.extend(function.signature.inputs.first().map(|_| "_Arg".to_string()));
            ops.extend(function.signature.outputs.first().map(|_| "_Retval".to_string()));
        }
        ops
    }

    /// Nodes and functions that stand there and that no step reaches.
    pub fn idle(&self) -> Vec<String> {
        let (nodes, functions) = self.reached();
        let names: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let all = self.graph.nodes.iter().map(|node| node.name.as_str());
        let mut idle: Vec<String> = all.filter(|name| !names.contains(name)).map(str::to_string).collect();
        let all = self.graph.library.functions.keys();
        idle.extend(all.filter(|name| !functions.contains(name.as_str())).cloned());
        idle
    }

    /// The nodes that the steps need, and the functions those name.
    fn reached(&self) -> (Vec<&NodeDef>, BTreeSet<&str>) {
        let by_name: BTreeMap<&str, &NodeDef> = self.graph.nodes.iter().map(|node| (&*node.name, &**node)).collect();
        let asked = self.steps.iter().flat_map(|step| step.fetches.iter().chain(&step.targets));
        let mut waiting: Vec<&str> = asked.map(|name| TensorName::parse(name).node).collect();
        let (mut seen, mut nodes) = (BTreeSet::new(), Vec::new());
        while let Some(name) = waiting.pop() {
            let Some(node) = by_name.get(name).filter(|_| seen.insert(name)) else { continue };
            nodes.push(*node);
            waiting.extend(node.inputs.iter().map(|input| TensorName::parse(input).node));
        }
        let mut functions = BTreeSet::new();
        let mut waiting: Vec<&str> = nodes.iter().flat_map(|node| called(node)).collect();
        while let Some(name) = waiting.pop() {
            let Some(function) = self.graph.library.functions.get(name).filter(|_| functions.insert(name)) else {
                continue;
            };
            waiting.extend(function.nodes.iter().flat_map(|node| called(node)));
        }
        (nodes, functions)
    }
}

/// The functions a node may name: its op, and those in its attributes.
fn called(node: &NodeDef) -> Vec<&str> {
    let mut names = vec![node.op.as_str()];
    for value in node.attrs.values() {
        match value {
            AttrValue::Func(function) => names.push(&function.name),
            AttrValue::List(list) => names.extend(list.funcs.iter().map(|function| function.name.as_str())),
            _ => {}
        }
    }
    names
}
