//! A graph case: nodes, functions, and steps that run one after another in one session.

use crate::case::located;
use crate::graph_nodes::Nodes;
use crate::program::{Feed, Program, Step};
use crate::text::{inside, words};
use crate::values::tensor;
use graph::{AttrValue, FunctionDef, FunctionLibrary, Signature, Signatures, Versions};
use op::Registry;
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{DType, Tensor};

/// The placeholder for the folder of a case.
const FOLDER: &str = "{tmp}";
/// The version of graphs that do not name one.
const PRODUCER: i32 = 2474;

/// A graph case as it is written in a file.
#[derive(Clone, Debug, Default)]
pub struct GraphCase {
    /// The file and the first line.
    pub place: String,
    lines: Vec<(String, String)>,
}

/// Reads the graph cases of a file.
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
    /// True if its file, line, ops or names contain the text.
    pub fn is_named(&self, text: &str) -> bool {
        self.place.contains(text) || self.lines.iter().any(|(_, line)| line.contains(text))
    }

    /// True if TensorFlow runs this only in the client's own process.
    pub fn is_direct(&self) -> bool {
        self.lines.iter().any(|(_, line)| line == "direct")
    }

    /// Parses its lines. `folder` is the folder of its files.
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
            ["like", _] | ["shapes"] | ["direct"] => {} // for update.py, and for who runs it
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

    /// The nodes that the current line refers to: those of the open function, or of the graph.
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
