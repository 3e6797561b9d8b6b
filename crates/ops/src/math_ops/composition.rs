//! _UnaryOpsComposition: several ops of one input, one after the other.

use graph::{AttrValue, NodeDef, Signatures};
use op::shapes::unchanged;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Run, Setup, unary};
use status::{Result, internal, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "_UnaryOpsComposition(x: T) -> y: T; T: {float, half, double}; op_names: list(string)",
    shape: unchanged,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// The ops that can be part of a composition of floats or doubles, those first that also halves have.
const NAMES: [&str; 32] = [
    "Abs",
    "Ceil",
    "Cos",
    "Expm1",
    "Exp",
    "Floor",
    "Inv",
    "Log",
    "Log1p",
    "Neg",
    "Reciprocal",
    "Rint",
    "Round",
    "Rsqrt",
    "Sigmoid",
    "Sin",
    "Sqrt",
    "Square",
    "Tanh",
    "Elu",
    "Relu",
    "Relu6",
    "Selu",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Cosh",
    "Sinh",
    "Tan",
];
/// How many of them halves have.
const OF_HALVES: usize = 23;

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, names) = (setup.dtype("T")?, &setup.list("op_names")?.strings);
    let known = if dtype == DType::F16 { &NAMES[..OF_HALVES] } else { &NAMES[..] };
    if names.is_empty() {
        return Err(invalid!("Unary op composition must have at least one op"));
    }
    let part = |name: &tensor::Bytes| match known.iter().find(|known| known.as_bytes() == &name[..]) {
        Some(op) => part(setup, op, dtype),
        None => Err(invalid!("Do not have a compute function registered for op: {}", String::from_utf8_lossy(name))),
    };
    let parts = names.iter().map(part).collect::<Result<Vec<Part>>>()?;
    Ok(unary(move |ctx, x| parts.iter().try_fold(x, |x, part| part(ctx, x))))
}

type Part = Box<dyn Fn(&Ctx<'_>, Tensor) -> Result<Tensor> + Send + Sync>;

/// The kernel of one of the ops.
fn part(setup: &Setup<'_>, op: &str, dtype: DType) -> Result<Part> {
    let registry = crate::registry();
    let signature = registry.signature(op).ok_or_else(|| internal!("Op type not registered '{op}'"))?;
    let mut def = NodeDef { name: setup.name().to_string(), op: op.to_string(), ..NodeDef::default() };
    def.attrs.insert("T".into(), AttrValue::Type(dtype));
    let types = [dtype];
    let inner = Setup::new(&def, signature, (&types, &types), setup.device(), setup.resources(), &NoFunctions);
    match registry.kernel(&inner)?.run {
        Run::Unary(run) => Ok(run),
        _ => Err(internal!("{op} cannot be part of a composition")),
    }
}

/// These ops call no functions.
struct NoFunctions;

impl op::Functions for NoFunctions {
    fn instantiate(&self, function: &graph::Function, _: &str) -> Result<std::sync::Arc<dyn op::Callable>> {
        Err(internal!("No function {}", function.name))
    }
}
