//! Valid nodes of every op: those of the cases, and made ones for ops that have none.

use super::edit::{Sample, Target, constant, node};
use super::functions;
use crate::values::numbers;
use crate::{Case, Feed, Files, Input, Kind, Program, Step, Want, attrs};
use graph::{ArgType, AttrDef, AttrKind, AttrList, AttrValue, GraphDef, NodeDef, Signature, Signatures, Versions};
use op::Registry;
use status::{Result, invalid};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape, Tensor};

/// The number of elements from which on an input makes the run slow.
const LARGE: usize = 5000;
/// The version of graphs that do not name one.
const PRODUCER: i32 = 2474;

/// All case files, and where the ops are in them.
pub struct Samples {
    registry: Arc<Registry>,
    files: Files,
    folder: String,
    /// The graph cases that run an op.
    graphs: BTreeMap<String, Vec<usize>>,
}

impl Samples {
    /// Reads the case files. `folder` is the folder of their files.
    pub fn read(folder: &str) -> Samples {
        let (registry, files) = (data::registry(), Files::read());
        let mut graphs: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, case) in files.graphs.iter().enumerate() {
            for op in case.read(&registry, folder).map(|program| program.ops()).unwrap_or_default() {
                graphs.entry(op).or_default().push(place);
            }
        }
        Samples { registry, files, folder: folder.to_string(), graphs }
    }

    /// At most `count` samples of an op: of nodes alone, of graphs, or a made one.
    pub fn of(&self, op: &str, count: usize) -> Vec<Sample> {
        let mut samples: Vec<Sample> = self.nodes(op, count);
        let missing = count.saturating_sub(samples.len());
        samples.extend(self.in_graphs(op).into_iter().take(missing));
        if samples.is_empty() {
            samples.extend(self.signature(op).and_then(|signature| made(op, signature).ok()));
        }
        samples.iter_mut().for_each(|sample| functions::add(&mut sample.program));
        samples
    }

    /// The signature of an op.
    pub fn signature(&self, op: &str) -> Option<&Signature> {
        Signatures::signature(&*self.registry, op)
    }

    /// Cases of one node that succeed and are small, those that differ most from each other first.
    fn nodes(&self, op: &str, count: usize) -> Vec<Sample> {
        let size = |case: &&Case| case.inputs.iter().map(|(_, input)| input.shape.elements()).sum::<usize>();
        let succeeds = |case: &&Case| case.op == op && matches!(case.want, Want::Outputs { .. }) && size(case) < LARGE;
        let cases: Vec<&Case> = self.files.cases.iter().filter(succeeds).collect();
        let step = cases.len().div_ceil(count).max(1);
        cases.into_iter().step_by(step).filter_map(|case| self.of_case(case).ok()).collect()
    }

    fn of_case(&self, case: &Case) -> Result<Sample> {
        let signature = self.signature(&case.op).ok_or_else(|| invalid!("no op {}", case.op))?;
        let mut def = attrs::node(case, signature)?;
        let mut builder = Builder::default();
        def.inputs.clear();
        for arg in &signature.inputs {
            for (name, input) in case.inputs.iter().filter(|(name, _)| *name == arg.name) {
                let name = format!("{name}_{}", def.inputs.len());
                builder.input(&name, input);
                def.inputs.push(name);
            }
        }
        let removed = self.registry.facts(&case.op).removed_in.map(|(version, _)| version - 1);
        builder.sample(&case.place, def, signature, removed.unwrap_or(PRODUCER))
    }

    fn in_graphs(&self, op: &str) -> Vec<Sample> {
        let mut samples = Vec::new();
        for &place in self.graphs.get(op).into_iter().flatten() {
            let case = &self.files.graphs[place];
            let Ok(program) = case.read(&self.registry, &self.folder) else { continue };
            let fails = program.steps.iter().any(|step| matches!(step.want, Want::Error(..)));
            let Some(target) = find(&program, op) else { continue };
            let sample = Sample { place: case.place.clone(), program, target };
            // Those whose steps all succeed come first.
            if fails { samples.push(sample) } else { samples.insert(0, sample) }
        }
        samples
    }
}

/// The first node of an op.
fn find(program: &Program, op: &str) -> Option<Target> {
    let place = |nodes: &[Arc<NodeDef>]| nodes.iter().position(|node| node.op == op);
    let functions = &program.graph.library.functions;
    let body = || functions.iter().find_map(|(name, body)| Some(Target::Body(name.clone(), place(&body.nodes)?)));
    place(&program.graph.nodes).map(Target::Graph).or_else(body)
}

/// The graph of a node alone.
#[derive(Default)]
struct Builder {
    nodes: Vec<NodeDef>,
    feeds: BTreeMap<String, Feed>,
    initial: Vec<String>,
}

impl Builder {
    fn fed(&mut self, name: &str, value: &Tensor) {
        self.nodes.push(node(name, "Placeholder", &[], &[("dtype", value.dtype().into())]));
        self.feeds.insert(name.to_string(), Feed::Value(value.clone()));
    }

    fn input(&mut self, name: &str, input: &Input) {
        if input.kind == Kind::Value {
            input.value.iter().for_each(|value| self.fed(name, value));
            return;
        }
        let is_ref = input.kind == Kind::Ref;
        let shape = AttrValue::Shape((&input.shape).into());
        let attrs = [("dtype", input.dtype.into()), ("shape", shape), ("shared_name", name.into())];
        self.nodes.push(node(name, if is_ref { "VariableV2" } else { "VarHandleOp" }, &[], &attrs));
        let Some(value) = &input.value else { return };
        let (from, assign) = (format!("{name}_value"), format!("{name}_assign"));
        self.fed(&from, value);
        let attrs = [(if is_ref { "T" } else { "dtype" }, input.dtype.into()), ("validate_shape", false.into())];
        let op = if is_ref { "Assign" } else { "AssignVariableOp" };
        self.nodes.push(node(&assign, op, &[name, &from], &attrs));
        self.initial.push(assign);
    }

    fn sample(mut self, place: &str, def: NodeDef, signature: &Signature, producer: i32) -> Result<Sample> {
        let types = signature.output_types(&def)?;
        let opaque = |dtype: &DType| matches!(dtype.base(), DType::RESOURCE | DType::VARIANT);
        let mut run = Step { feeds: self.feeds.clone(), ..Step::default() };
        match types.is_empty() || types.iter().any(opaque) {
            true => run.targets.push(def.name.clone()),
            false => run.fetches = (0..types.len()).map(|i| format!("{}:{i}", def.name)).collect(),
        }
        let initial = Step { feeds: self.feeds, targets: self.initial, ..Step::default() };
        let target = Target::Graph(self.nodes.len());
        self.nodes.push(def);
        let graph = GraphDef {
            nodes: self.nodes.into_iter().map(Arc::new).collect(),
            versions: Versions { producer, ..Versions::default() },
            ..GraphDef::default()
        };
        let steps = if initial.targets.is_empty() { vec![run] } else { vec![initial, run] };
        Ok(Sample { place: place.to_string(), program: Program { graph, steps, tolerance: None }, target })
    }
}

/// A node with the first types that are allowed, small inputs, and small attributes.
fn made(op: &str, signature: &Signature) -> Result<Sample> {
    let mut builder = Builder::default();
    let mut def = node("case", op, &[], &[]);
    for attr in signature.attrs.iter().filter(|attr| attr.default.is_none()) {
        def.attrs.insert(attr.name.clone(), plain(attr));
    }
    for (place, dtype) in signature.input_types(&def)?.iter().enumerate() {
        let name = format!("in{place}");
        match dtype.base() {
            dtype if *signature_ref(signature, place) => {
                builder.nodes.push(node(
                    &name,
                    "VariableV2",
                    &[],
                    &[("dtype", dtype.into()), ("shape", PartialShape::scalar().into())],
                ));
            }
            DType::RESOURCE => {
                let attrs = [("dtype", DType::F32.into()), ("shape", PartialShape::new(&[2]).into())];
                builder.nodes.push(node(&name, "VarHandleOp", &[], &attrs));
            }
            DType::VARIANT => {
                builder.nodes.extend(
                    ["start", "stop", "step"].map(|name| constant(&format!("{place}{name}"), &Tensor::scalar(2i64))),
                );
                let attrs =
                    [("output_types", vec![DType::I64].into()), ("output_shapes", vec![PartialShape::scalar()].into())];
                let bounds = [format!("{place}start"), format!("{place}stop"), format!("{place}step")];
                let bounds: Vec<&str> = bounds.iter().map(String::as_str).collect();
                builder.nodes.push(node(&name, "RangeDataset", &bounds, &attrs));
            }
            DType::STRING => builder.fed(&name, &Tensor::string("a")),
            dtype => builder.fed(&name, &numbers(dtype, Shape::new(&[2]), &[1.0])?),
        }
        def.inputs.push(name);
    }
    builder.sample("made", def, signature, PRODUCER)
}

/// Whether the argument of an input is a reference; true only for signatures without lists.
fn signature_ref(signature: &Signature, place: usize) -> &bool {
    signature.inputs.get(place).map_or(&false, |arg| match arg.ty {
        ArgType::List(_) => &false,
        _ => &arg.is_ref,
    })
}

/// A small value of an attribute.
fn plain(attr: &AttrDef) -> AttrValue {
    let allowed = match &attr.allowed {
        Some(AttrValue::List(list)) => Some(list),
        _ => None,
    };
    let dtype = allowed.and_then(|list| list.types.first().copied()).unwrap_or(DType::F32);
    let string = allowed.and_then(|list| list.strings.first().cloned()).unwrap_or_else(|| "a".into());
    let int = attr.minimum.unwrap_or(1).max(1);
    let mut list = AttrList::default();
    match attr.kind {
        AttrKind::String if attr.list => list.strings.push(string),
        AttrKind::Int if attr.list => list.ints.push(int),
        AttrKind::Float if attr.list => list.floats.push(1.0),
        AttrKind::Bool if attr.list => list.bools.push(true),
        AttrKind::Type if attr.list => list.types.push(dtype),
        AttrKind::Shape if attr.list => list.shapes.push(PartialShape::unknown()),
        AttrKind::Tensor if attr.list => list.tensors.push(Tensor::scalar(1f32).into()),
        AttrKind::Func if attr.list => list.funcs.push(Arc::new(functions::call(functions::FLOATS))),
        AttrKind::String => return AttrValue::String(string),
        AttrKind::Int => return int.into(),
        AttrKind::Float => return 1f32.into(),
        AttrKind::Bool => return true.into(),
        AttrKind::Type => return dtype.into(),
        AttrKind::Shape => return PartialShape::unknown().into(),
        AttrKind::Tensor => return Tensor::scalar(1f32).into(),
        AttrKind::Func => return functions::call(functions::FLOATS).into(),
    }
    list.into()
}
