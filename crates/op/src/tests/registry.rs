//! The op table: rows by name, invalid rows, facts, kernels.

use super::setup::{Node, kernel_of};
use crate::shapes::{scalar, unchanged};
use crate::{Elementwise, Grad, Kernel, Op, PLAIN, Registry, Setup, many, outputs, unary};
use graph::{NodeDef, OpSet, ShapeQuery, Signatures};
use math::fused::Unary;
use status::{Code, Result, invalid};
use tensor::{DType, PartialShape};

const fn row(def: &'static str, kernel: fn(&Setup<'_>) -> Result<Kernel>) -> Op {
    Op { def, shape: unchanged, grad: Grad::Stop, kernel, facts: PLAIN }
}

fn identity(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, x| Ok(x)))
}

const OPS: &[Op] = &[
    Op { facts: PLAIN.unary(Unary::Relu), ..row("Relu(x: T) -> y: T; T: type", identity) },
    Op {
        facts: PLAIN.unary(Unary::Relu),
        ..row("Waiting(x: T) -> y: T; T: type", |_| Ok(many(|_, _| Ok(outputs![]))))
    },
    Op { facts: PLAIN.removed_in(9, "use Relu"), ..row("OldRelu(x: T) -> y: T; T: type", identity) },
    Op { shape: scalar, ..row("Size(x: T) -> y: int32; T: type", |_| Err(invalid!("bad attribute"))) },
];

#[test]
fn rows_are_found_by_the_name_in_their_signature() {
    let registry = Registry::new(&[&OPS[..2], &OPS[2..]]).unwrap();
    let mut names: Vec<&str> = registry.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["OldRelu", "Relu", "Size", "Waiting"]);
    assert!(registry.op("Relu").is_some() && registry.op("relu").is_none());
    assert_eq!(Signatures::signature(&registry, "Size").unwrap().outputs.len(), 1);
    registry.check().unwrap();
}

#[test]
fn two_rows_of_one_op_are_an_error() {
    let error = Registry::new(&[OPS, &OPS[..1]]).err().unwrap();
    assert_eq!((error.code, error.message.as_str()), (Code::Internal, "op Relu has two rows"));
}

#[test]
fn a_row_with_an_invalid_signature_is_an_unknown_op() {
    let registry = Registry::new(&[&[row("Broken(x: ", identity)]]).unwrap();
    assert!(Signatures::signature(&registry, "Broken").is_none());
    assert!(registry.check().is_err());
}

#[test]
fn facts_come_from_the_row() {
    let registry = Registry::new(&[OPS]).unwrap();
    assert_eq!(registry.facts("Relu").elementwise, Some(Elementwise::Unary(Unary::Relu)));
    assert_eq!(registry.facts("Size").elementwise, None);
    assert_eq!(registry.facts("a_function").elementwise, None);
    assert_eq!(registry.deprecated("OldRelu"), Some((9, "use Relu")));
    assert_eq!(registry.deprecated("Relu"), None);
}

#[test]
fn kernels_are_fusible_for_32_bit_floats_only() {
    let registry = Registry::new(&[OPS]).unwrap();
    let elementwise = |op: &str, dtype| {
        let node = Node::new("Relu(x: T) -> y: T; T: type").op(op).types(&[dtype], &[dtype]);
        kernel_of(&registry, &node).unwrap().elementwise
    };
    assert_eq!(elementwise("Relu", DType::F32), Some(Elementwise::Unary(Unary::Relu)));
    assert_eq!(elementwise("Relu", DType::F64), None);
    assert_eq!(elementwise("Waiting", DType::F32), None); // its kernel takes any number of inputs
}

#[test]
fn errors_of_kernels_name_the_node() {
    let registry = Registry::new(&[OPS]).unwrap();
    let error = |op: &str| kernel_of(&registry, &Node::new("Size(x: T) -> y: int32; T: type").op(op)).err().unwrap();
    let unknown = error("Missing");
    assert_eq!((unknown.code, unknown.message.as_str()), (Code::NotFound, "Op type not registered 'Missing'"));
    let bad = error("Size").message;
    assert!(bad.starts_with("bad attribute") && bad.contains("{{node n}}"), "{bad}");
}

#[test]
fn functions_have_outputs_of_unknown_shape() {
    let registry = Registry::new(&[OPS]).unwrap();
    let def = NodeDef { op: "a_function".to_string(), ..NodeDef::default() };
    let signature = Signatures::signature(&registry, "Relu").unwrap();
    let inputs = [PartialShape::new(&[2])];
    let query = ShapeQuery { def: &def, signature, inputs: &inputs, constants: &[], variables: &[], outputs: 2 };
    assert_eq!(registry.infer(&query).unwrap(), [PartialShape::unknown(), PartialShape::unknown()]);
    let def = NodeDef { op: "Size".to_string(), ..NodeDef::default() };
    let query = ShapeQuery { def: &def, outputs: 1, ..query };
    assert_eq!(registry.infer(&query).unwrap(), [PartialShape::scalar()]);
}
