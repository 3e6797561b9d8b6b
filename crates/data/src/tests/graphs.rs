//! Graphs of datasets that a client may have made: long, nested, or no graphs at all.

use crate::dataset_of;
use crate::graphs::{ENCODED, GraphReader, graph_of};
use graph::wire::write_graph;
use graph::{AttrList, AttrValue, Function, FunctionLibrary, GraphDef, NodeDef, Signature};
use math::Pool;
use op::{Callable, Ctx, Functions, Libraries, Resources, Setup, StepEnv};
use status::{Code, Error, Result, not_found};
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape, Tensor, Variant, VariantData};

struct NoFunctions;

impl Functions for NoFunctions {
    fn instantiate(&self, function: &Function, _: &str) -> Result<Arc<dyn Callable>> {
        Err(not_found!("{}", function.name))
    }
}

/// Graphs may be read, and have no functions.
struct Reading;

impl Functions for Reading {
    fn instantiate(&self, function: &Function, _: &str) -> Result<Arc<dyn Callable>> {
        Err(not_found!("{}", function.name))
    }

    fn libraries(&self) -> Option<Arc<dyn Libraries>> {
        Some(Arc::new(Plain))
    }
}

struct Plain;

impl Libraries for Plain {
    fn with(&self, _: &FunctionLibrary) -> Result<Arc<dyn Functions + Send + Sync>> {
        Ok(Arc::new(NoFunctions))
    }
}

fn read(graph: &[u8]) -> Result<Tensor> {
    let (def, signature) = (NodeDef::default(), Signature::parse("Op()").unwrap());
    let resources = Arc::new(Resources::new("localhost"));
    let reader = GraphReader::of(&Setup::new(&def, &signature, (&[], &[]), "/device:CPU:0", &resources, &Reading));
    let env = StepEnv::alone(Arc::new(Pool::new(1)));
    reader.read(&Ctx { env: &env, frame: 0, iteration: 0 }, &graph.to_vec().into())
}

fn node<const N: usize>(name: &str, op: &str, inputs: &[&str], attrs: [(&str, AttrValue); N]) -> Arc<NodeDef> {
    let attrs = attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    let inputs = inputs.iter().map(|input| input.to_string()).collect();
    Arc::new(NodeDef { name: name.to_string(), op: op.to_string(), inputs, attrs, ..NodeDef::default() })
}

fn constant(name: &str, value: Tensor) -> Arc<NodeDef> {
    let dtype = value.dtype();
    node(name, "Const", &[], [("dtype", dtype.into()), ("value", AttrValue::Tensor(value.into()))])
}

fn of_numbers() -> [(&'static str, AttrValue); 2] {
    let list = |list| AttrValue::List(Box::new(list));
    [
        ("output_types", list(AttrList { types: vec![DType::I64], ..AttrList::default() })),
        ("output_shapes", list(AttrList { shapes: vec![PartialShape::scalar()], ..AttrList::default() })),
    ]
}

fn graph(mut nodes: Vec<Arc<NodeDef>>, output: &str) -> Vec<u8> {
    let attrs = [("T", DType::VARIANT.into()), ("index", 0i64.into())];
    nodes.push(node("dataset", "_Retval", &[output], attrs));
    write_graph(&GraphDef { nodes, ..GraphDef::default() })
}

/// The numbers 0 to 9, of which each of `stages` datasets skips none.
fn chain(stages: usize) -> Vec<u8> {
    let numbers = [("start", 0i64), ("stop", 10), ("step", 1), ("none", 0)];
    let mut nodes: Vec<_> = numbers.iter().map(|(name, value)| constant(name, Tensor::scalar(*value))).collect();
    nodes.push(node("d0", "RangeDataset", &["start", "stop", "step"], of_numbers()));
    for stage in 1..=stages {
        let input = format!("d{}", stage - 1);
        nodes.push(node(&format!("d{stage}"), "SkipDataset", &[&input, "none"], of_numbers()));
    }
    graph(nodes, &format!("d{stages}"))
}

#[track_caller]
fn check_error(graph: &[u8], code: Code, text: &str) {
    let error: Error = read(graph).expect_err("no error");
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(text), "{error}");
}

#[test]
fn a_long_pipeline_is_written_and_read_again() {
    let first = read(&chain(900)).unwrap();
    let again = read(&write_graph(&graph_of(&first).unwrap())).unwrap();
    assert_eq!(dataset_of(&again).unwrap().cardinality().number(), 10);
    assert_eq!(graph_of(&again).unwrap().nodes.len(), 3 + 1 + 2 * 900 + 1);
}

#[test]
fn a_pipeline_that_is_too_long_is_refused() {
    check_error(&chain(1000), Code::ResourceExhausted, "more than 1000 stages");
}

#[test]
fn a_pipeline_of_many_stages_can_be_sent() {
    let sent = tensor::wire::tensor_to_bytes(&read(&chain(100)).unwrap()).unwrap();
    let arrived = tensor::wire::tensor_from_bytes(&sent).unwrap();
    let Ok([Variant::Data(data)]) = arrived.variants() else { panic!("not serialised: {arrived:?}") };
    assert_eq!(data.type_name, ENCODED);
    let dataset = read(&data.tensors[0].to_string_scalar().unwrap()).unwrap();
    assert_eq!(dataset_of(&dataset).unwrap().cardinality().number(), 10);
}

#[test]
fn graphs_inside_of_graphs_are_refused() {
    let data = VariantData {
        type_name: ENCODED.to_string(),
        tensors: vec![Tensor::string(chain(0))],
        ..VariantData::default()
    };
    let inner = Tensor::from_variants(Shape::scalar(), vec![Variant::Data(Arc::new(data))]).unwrap();
    let nodes = vec![
        constant("inner", inner),
        constant("none", Tensor::scalar(0i64)),
        node("outer", "SkipDataset", &["inner", "none"], of_numbers()),
    ];
    check_error(&graph(nodes, "outer"), Code::InvalidArgument, "graph of another dataset in it");
}

#[test]
fn what_is_no_graph_of_a_dataset_is_an_error() {
    check_error(b"\xff", Code::InvalidArgument, "Could not parse GraphDef");
    check_error(b"", Code::NotFound, "FetchOutputs node");
    check_error(&graph(vec![node("x", "NoSuchOp", &[], [])], "x"), Code::NotFound, "NoSuchOp");
    let looped = ["a", "b"].map(|name| {
        let input = if name == "a" { "b" } else { "a" };
        node(name, "SkipDataset", &[input, "none"], of_numbers())
    });
    let nodes = looped.into_iter().chain([constant("none", Tensor::scalar(0i64))]).collect();
    check_error(&graph(nodes, "a"), Code::InvalidArgument, "cycle");
}
