//! Ops that call functions: plain calls, If, Case, and the gradient of a function.

use graph::{AttrValue, Function, FunctionCall};
use op::shapes::unknown;
use op::{Callable, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, later, source, unary};
use parking_lot::Mutex;
use status::{Code, Result, invalid};
use std::sync::Arc;
use tensor::{Bytes, DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "PartitionedCall(args: [Tin]) -> output: [Tout]; Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; \
              config: string = \"\"; config_proto: string = \"\"; executor_type: string = \"\"",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: call,
        facts: PLAIN.calls(FunctionCall::Plain),
    },
    Op {
        def: "StatefulPartitionedCall(args: [Tin]) -> output: [Tout]; Tin: list(type) >= 0; Tout: list(type) >= 0; \
              f: func; config: string = \"\"; config_proto: string = \"\"; executor_type: string = \"\"; stateful; \
              distributed",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: call,
        facts: PLAIN.calls(FunctionCall::Plain),
    },
    Op {
        def: "RemoteCall(target: string, args: [Tin]) -> output: [Tout]; Tin: list(type) >= 1; Tout: list(type) >= 1; \
              f: func; stateful",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: remote_call,
        facts: PLAIN,
    },
    Op {
        def: "If(cond: Tcond, input: [Tin]) -> output: [Tout]; Tcond: type; Tin: list(type) >= 0; \
              Tout: list(type) >= 0; then_branch: func; else_branch: func; output_shapes: list(shape) = []; stateful",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: if_kernel,
        facts: PLAIN.calls(FunctionCall::If),
    },
    Op {
        def: "StatelessIf(cond: Tcond, input: [Tin]) -> output: [Tout]; Tcond: type; Tin: list(type) >= 0; \
              Tout: list(type) >= 0; then_branch: func; else_branch: func; output_shapes: list(shape) = []",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: if_kernel,
        facts: PLAIN.calls(FunctionCall::If),
    },
    Op {
        def: "Case(branch_index: int32, input: [Tin]) -> output: [Tout]; Tin: list(type) >= 0; \
              Tout: list(type) >= 0; branches: list(func) >= 1; output_shapes: list(shape) = []; stateful",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: case_kernel,
        facts: PLAIN.calls(FunctionCall::Case),
    },
    Op {
        def: "StatelessCase(branch_index: int32, input: [Tin]) -> output: [Tout]; Tin: list(type) >= 0; \
              Tout: list(type) >= 0; branches: list(func) >= 1; output_shapes: list(shape) = []",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: case_kernel,
        facts: PLAIN.calls(FunctionCall::Case),
    },
    Op {
        def: "SymbolicGradient(input: [Tin]) -> output: [Tout]; Tin: list(type) >= 1; Tout: list(type) >= 1; f: func",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: symbolic_gradient,
        facts: PLAIN,
    },
    Op {
        def: "ToBool(input: T) -> output: bool; T: type",
        shape: op::shapes::scalar,
        grad: Grad::Stop,
        kernel: to_bool,
        facts: PLAIN,
    },
    Op {
        def: "FakeParam() -> output: dtype; dtype: type; shape: shape",
        shape: op::shapes::attr_shape,
        grad: Grad::Stop,
        kernel: fake_param,
        facts: PLAIN,
    },
];

fn call(setup: &Setup<'_>) -> Result<Kernel> {
    let function = setup.function("f").map_err(|error| match (error.code, setup.def().attrs.get("f")) {
        (Code::NotFound, Some(AttrValue::Func(f))) => {
            invalid!("Failed to find function \"{}\" in function library", f.name)
        }
        _ => error,
    })?;
    Ok(later(move |ctx, inputs, done| function.call(ctx, inputs, done)))
}

/// The last target stays prepared: a node nearly always has the same one.
fn remote_call(setup: &Setup<'_>) -> Result<Kernel> {
    let function = setup.function("f")?;
    let last: Mutex<Option<(Bytes, Arc<dyn Callable>)>> = Mutex::default();
    let on_target = move |target: Bytes| -> Result<Arc<dyn Callable>> {
        let mut last = last.lock();
        if let Some((_, callable)) = last.as_ref().filter(|(name, _)| *name == target) {
            return Ok(callable.clone());
        }
        let callable = function.on_device(&String::from_utf8_lossy(&target))?;
        *last = Some((target, callable.clone()));
        Ok(callable)
    };
    Ok(later(move |ctx, mut inputs, done| {
        let target = inputs.tensor(0).and_then(|target| target.to_string_scalar());
        match target.and_then(&on_target) {
            Ok(callable) => callable.call(ctx, without_first(inputs), done),
            Err(error) => done(Err(error)),
        }
    }))
}

/// The inputs without the first.
pub(super) fn without_first(mut inputs: Inputs) -> Inputs {
    (1..inputs.len()).filter_map(|index| inputs.take(index).ok()).collect()
}

fn if_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (then_branch, else_branch) = (setup.function("then_branch")?, setup.function("else_branch")?);
    Ok(later(move |ctx, mut inputs, done| {
        let chosen = inputs.tensor(0).and_then(|cond| truth(&cond));
        match chosen {
            Ok(true) => then_branch.call(ctx, without_first(inputs), done),
            Ok(false) => else_branch.call(ctx, without_first(inputs), done),
            Err(error) => done(Err(error)),
        }
    }))
}

fn case_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let functions = &setup.list("branches")?.funcs;
    let branches = functions.iter().map(|f| setup.instantiate(f)).collect::<Result<Vec<Arc<dyn Callable>>>>()?;
    Ok(later(move |ctx, mut inputs, done| {
        let index = inputs.tensor(0).and_then(|index| index.to_scalar::<i32>());
        match index {
            // An index out of range means the last branch.
            Ok(index) => {
                let place = usize::try_from(index).ok().filter(|&place| place < branches.len());
                branches[place.unwrap_or(branches.len() - 1)].call(ctx, without_first(inputs), done);
            }
            Err(error) => done(Err(error)),
        }
    }))
}

fn symbolic_gradient(setup: &Setup<'_>) -> Result<Kernel> {
    let gradient = Function { name: "SymbolicGradient".to_string(), attrs: setup.def().attrs.clone() };
    let function = setup.instantiate(&gradient)?;
    let wanted = setup.output_types().len();
    Ok(later(move |ctx, inputs, done| {
        let checked = move |result: Result<Outputs>| {
            done(result.and_then(|found| match found.len() {
                count if count == wanted => Ok(found),
                count => {
                    Err(invalid!("SymGrad expects to return {wanted} tensor(s), but get {count} tensor(s) instead."))
                }
            }))
        };
        function.call(ctx, inputs, Box::new(checked))
    }))
}

fn to_bool(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| Ok(Tensor::scalar(truth(&input)?))).free())
}

/// A placeholder value that is never read: the branch that was not taken must return something.
fn fake_param(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, shape) = (setup.dtype("dtype")?, setup.shape("shape")?);
    let shape = shape.known().unwrap_or_else(|| tensor::Shape::new(&[0]));
    Ok(source(move |_| Tensor::zeros_of(dtype, shape.clone())).free())
}

/// A scalar counts as true when it is not zero or empty, anything else when it has elements.
pub(super) fn truth(value: &Tensor) -> Result<bool> {
    if value.shape().rank() > 0 {
        return Ok(value.elements() > 0);
    }
    Ok(match value.dtype() {
        DType::BOOL => value.to_scalar::<bool>()?,
        DType::STRING => !value.to_string_scalar()?.is_empty(),
        DType::F32 => value.to_scalar::<f32>()? != 0.0,
        DType::F64 => value.to_scalar::<f64>()? != 0.0,
        DType::U8 => value.to_scalar::<u8>()? != 0,
        dtype if dtype.is_integer() => op::shapes::integers(value)?[0] != 0,
        dtype => return Err(invalid!("{dtype} cannot be converted to a boolean")),
    })
}
