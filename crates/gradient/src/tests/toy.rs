//! Toy ops, and gradients as text: `Mul(dy, x)`.

use graph::{Forwards, Graph, Node, Output, Scope};
use op::shapes::{broadcast, unchanged, unknown};
use op::{Facts, Grad, Gradient, Grads, IntoGradient, Kernel, Op, PLAIN, Registry, Setup, Slices, grads};
use status::{Result, unimplemented_op};
use std::sync::Arc;
use tensor::{DType, PartialShape};

type Shapes = fn(&op::ShapeQuery<'_>) -> Result<Vec<PartialShape>>;

const fn row(def: &'static str, shape: Shapes, grad: Grad, facts: Facts) -> Op {
    Op { def, shape, grad, kernel: no_kernel, facts }
}

fn no_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Err(unimplemented_op!("toy ops do not run"))
}

/// The ops that differentiation itself adds, and a few to differentiate.
const OPS: &[Op] = &[
    row("Const() -> output: dtype; value: tensor; dtype: type", unknown, Grad::Stop, PLAIN),
    row("Placeholder() -> output: dtype; dtype: type; shape: shape = ?", op::shapes::attr_shape, Grad::Stop, PLAIN),
    row("Shape(input: T) -> output: int32; T: type", unknown, Grad::Stop, PLAIN),
    row("Fill(dims: int32, value: T) -> output: T; T: type", unknown, Grad::Stop, PLAIN),
    row("ZerosLike(x: T) -> y: T; T: type", unchanged, Grad::Stop, PLAIN),
    row("AddN(inputs: N * T) -> sum: T; N: int >= 1; T: type", unknown, Grad::Unknown, PLAIN),
    row("ConcatV2(values: N * T, axis: int32) -> output: T; N: int >= 2; T: type", unknown, Grad::Unknown, PLAIN),
    row("Cast(x: SrcT) -> y: DstT; SrcT: type; DstT: type", unchanged, Grad::Stop, PLAIN),
    row(
        "StridedSlice(input: T, begin: int32, end: int32, strides: int32) -> output: T; T: type; \
         shrink_axis_mask: int = 0",
        unknown,
        Grad::Unknown,
        PLAIN,
    ),
    row("UnsortedSegmentSum(data: T, ids: I, n: int32) -> output: T; T: type; I: type", unknown, Grad::Unknown, PLAIN),
    row("NoOp()", op::shapes::none, Grad::Stop, PLAIN),
    row(
        "Identity(input: T) -> output: T; T: type",
        unchanged,
        Grad::Rule(|_, dy| Ok(grads![dy.clone()])),
        PLAIN.forwards(Forwards::First).passes_gradient(),
    ),
    row("Mul(x: T, y: T) -> z: T; T: type", broadcast, Grad::Rule(product_rule), PLAIN),
    row("Square(x: T) -> y: T; T: type", unchanged, Grad::Rule(|op, dy| Ok(grads![dy * op.input(0)])), PLAIN),
    row("Halves(x: T) -> low: T, high: T; T: type", unknown, Grad::Rules(halves_rule), PLAIN),
    row("Rows(table: T, indices: I) -> rows: T; T: type; I: type", unknown, Grad::Rule(rows_rule), PLAIN),
    row("Round(x: T) -> y: T; T: type", unchanged, Grad::Stop, PLAIN),
    row("Opaque(x: T) -> y: T; T: type", unchanged, Grad::Unknown, PLAIN),
    row("Wrong(x: T) -> y: T; T: type", unchanged, Grad::Rule(|_, _| Ok(Vec::new())), PLAIN),
    row("Reshaped(x: T) -> y: T; T: type", unknown, Grad::Rule(|_, dy| Ok(grads![dy.clone()])), PLAIN),
];

fn product_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy * op.input(1), dy * op.input(0)])
}

fn halves_rule(_: &Node, dys: &[Option<Output>]) -> Result<Grads> {
    Ok(vec![dys.iter().flatten().next().map(|dy| Gradient::Dense(dy.clone()))])
}

fn rows_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let shape = dy.scope().op("Shape").input(&op.input(0)).output();
    let slices = Slices { indices: op.input(1), values: dy.clone(), shape: Some(shape) };
    Ok(vec![slices.into_gradient(), None])
}

pub fn registry() -> Arc<Registry> {
    Arc::new(Registry::new(&[OPS]).expect("toy rows"))
}

pub fn root() -> Scope {
    Graph::with_ops(registry()).root()
}

pub fn placeholder(scope: &Scope, name: &str, dtype: DType) -> Output {
    scope.op("Placeholder").named(name).attr("dtype", dtype).output()
}

pub fn unary(op: &str, x: &Output) -> Output {
    x.scope().op(op).input(x).output()
}

pub fn rows(table: &Output, indices: &Output) -> Output {
    table.scope().op("Rows").input(table).input(indices).output()
}

/// A gradient as text; slices as `values @ indices`.
pub fn text(gradient: &Gradient) -> String {
    match gradient {
        Gradient::Dense(output) => formula(output),
        Gradient::Sparse(slices) => format!("{} @ {}", formula(&slices.values), formula(&slices.indices)),
    }
}

/// The formula that an output is computed by; placeholders by name, constants by value.
pub fn formula(output: &Output) -> String {
    let node = output.node();
    let name = match node.op().as_str() {
        "Placeholder" => node.name(),
        "Const" => match node.attr("value") {
            Ok(graph::AttrValue::Tensor(value)) => value.decode().map_or("?".into(), |value| number(&value)),
            _ => "?".to_string(),
        },
        op => {
            let inputs: Vec<String> = node.all_inputs().iter().map(formula).collect();
            format!("{op}({})", inputs.join(", "))
        }
    };
    match output.index() {
        0 => name,
        index => format!("{name}:{index}"),
    }
}

fn number(value: &tensor::Tensor) -> String {
    match value.dtype() {
        DType::F32 => value.values::<f32>().map(|values| format!("{values:?}")),
        _ => value.values::<i32>().map(|values| format!("{values:?}")),
    }
    .unwrap_or_default()
}
