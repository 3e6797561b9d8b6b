//! The runtime that consists of one kernel, without graph and executor.

use crate::attrs;
use crate::case::{Case, Input, Kind, Want};
use crate::runner::{Answer, Runner};
use graph::{Function, Signature, Signatures};
use math::Pool;
use op::{
    Callable, Ctx, Flow, Functions, Inputs, Kernel, Outputs, Registry, Resource, Resources, Run, Setup, StepEnv, Value,
    Variable,
};
use status::{Result, internal, invalid, not_found};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tensor::{DType, ResourceHandle, Shape, Tensor};

/// The device of a kernel without a task.
pub(crate) const DEVICE: &str = "/job:localhost/replica:0/task:0/device:CPU:0";
const CONTAINER: &str = "localhost";
/// The time limit of a kernel that completes asynchronously.
const PATIENCE: Duration = Duration::from_secs(20);

/// Calls kernels directly.
pub struct KernelAlone {
    registry: Arc<Registry>,
    pool: Arc<Pool>,
    shared: bool,
}

impl KernelAlone {
    /// Kernels of all ops. With `shared`, every input has a second owner, so that kernels cannot write in place.
    pub fn new(shared: bool) -> KernelAlone {
        KernelAlone { registry: data::registry(), pool: Arc::new(Pool::new(2)), shared }
    }

    fn signature(&self, case: &Case) -> Result<&Signature> {
        Signatures::signature(&*self.registry, &case.op)
            .ok_or_else(|| not_found!("Op type not registered '{}'", case.op))
    }
}

impl Runner for KernelAlone {
    fn takes(&self, case: &Case) -> bool {
        // The versions of graphs in which ops were removed are only known to graphs.
        !matches!(&case.want, Want::Error(_, text) if text.contains("is not available in GraphDef version"))
    }

    fn run(&self, case: &Case) -> Result<Answer> {
        let signature = self.signature(case)?;
        let def = attrs::node(case, signature)?;
        signature.check_attrs(&def)?;
        let types = (signature.input_types(&def)?, signature.output_types(&def)?);
        let mut state = State::new(case, signature)?;
        check_inputs(&types.0, &state)?;
        let setup = Setup::new(&def, signature, (&types.0, &types.1), DEVICE, &state.resources, &NoFunctions);
        let kernel = self.registry.kernel(&setup)?;
        let held = if self.shared { state.values.clone() } else { Vec::new() };
        let outputs = self.call(kernel, state.values.drain(..).collect())?;
        drop(held);
        let outputs = outputs.into_iter().map(Value::read).collect::<Result<Vec<_>>>()?;
        Ok(Answer { outputs, after: state.after(), ..Answer::default() })
    }
}

impl KernelAlone {
    fn call(&self, kernel: Kernel, mut inputs: Inputs) -> Result<Outputs> {
        let env = StepEnv::alone(self.pool.clone());
        let ctx = Ctx { env: &env, frame: 0, iteration: 0 };
        match kernel.run {
            Run::Source(run) => run(&ctx).map(one),
            Run::Unary(run) => run(&ctx, inputs.tensor(0)?).map(one),
            Run::Binary(run) => run(&ctx, inputs.tensor(0)?, inputs.tensor(1)?).map(one),
            Run::Many(run) => run(&ctx, inputs),
            Run::Later(run) => {
                let (sender, receiver) = mpsc::channel();
                run(&ctx, inputs, Box::new(move |result| _ = sender.send(result)));
                receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| Err(internal!("the kernel never answered")))
            }
            Run::Stored(run) => Ok(run(&ctx, inputs)?.into_iter().map(Value::Stored).collect()),
            Run::Flow(flow) => call_flow(&flow, inputs),
        }
    }
}

/// Computes what the executor computes for nodes that it handles itself, outside of loops.
fn call_flow(flow: &Flow, mut inputs: Inputs) -> Result<Outputs> {
    match flow {
        Flow::Identity | Flow::Exit | Flow::NextIteration | Flow::Enter { .. } => {
            Ok(std::iter::once(inputs.take(0)?).collect())
        }
        Flow::ControlTrigger => Ok(Outputs::new()),
        other => Err(internal!("{other:?} has no meaning outside of a graph")),
    }
}

fn one(tensor: Tensor) -> Outputs {
    std::iter::once(Value::Tensor(tensor)).collect()
}

/// The inputs of a case. Creates its variables.
struct State {
    resources: Arc<Resources>,
    values: Vec<Value>,
    /// Variables by name. The kernel may create, replace or delete those with handles.
    variables: Vec<(String, Option<Arc<Variable>>)>,
}

impl State {
    fn new(case: &Case, signature: &Signature) -> Result<State> {
        let resources = Arc::new(Resources::new(CONTAINER));
        let mut state = State { resources, values: Vec::new(), variables: Vec::new() };
        for (name, _) in &case.inputs {
            if !signature.inputs.iter().any(|arg| arg.name == *name) {
                return Err(invalid!("{} has no input '{name}'", case.op));
            }
        }
        for arg in &signature.inputs {
            for (name, input) in case.inputs.iter().filter(|(name, _)| *name == arg.name) {
                state.add(name, input)?;
            }
        }
        Ok(state)
    }

    fn add(&mut self, name: &str, input: &Input) -> Result<()> {
        if input.kind == Kind::Value {
            self.values.extend(input.value.clone().map(|tensor| Value::Tensor(own(tensor))));
            return Ok(());
        }
        let variable = Arc::new(Variable::new(name, input.dtype).of_shape(input.shape.clone()));
        if let Some(value) = &input.value {
            variable.assign(own(value.clone()));
        }
        if input.kind == Kind::Ref {
            self.variables.push((name.to_string(), Some(variable.clone())));
            self.values.push(Value::Ref(variable));
            return Ok(());
        }
        self.variables.push((name.to_string(), None));
        if input.value.is_some() {
            self.resources.create(CONTAINER, name, variable)?;
        }
        let handle = ResourceHandle {
            device: DEVICE.into(),
            container: CONTAINER.into(),
            name: name.into(),
            hash_code: graph::hash64(Variable::TYPE_NAME.as_bytes()),
            type_name: Variable::TYPE_NAME.into(),
            values: vec![(input.dtype, (&input.shape).into())],
        };
        self.values.push(Value::Tensor(Tensor::from_handles(Shape::scalar(), vec![handle])?));
        Ok(())
    }

    /// The values of the variables after the kernel ran.
    fn after(&self) -> Vec<(String, Option<Tensor>)> {
        let left = self.variables.iter().map(|(name, variable)| {
            let variable = variable.clone().or_else(|| self.resources.get::<Variable>(CONTAINER, name));
            (name.clone(), variable.and_then(|variable| variable.read().ok()))
        });
        left.collect()
    }
}

/// A copy of the tensor, so that the tensor of the case is not changed.
fn own(mut tensor: Tensor) -> Tensor {
    match tensor.dtype() {
        DType::STRING => _ = tensor.strings_mut(),
        dtype if dtype.is_plain() => _ = tensor.bytes_mut(),
        _ => {}
    }
    tensor
}

fn check_inputs(types: &[DType], state: &State) -> Result<()> {
    let found: Vec<DType> = state
        .values
        .iter()
        .map(|value| match value {
            Value::Tensor(tensor) => tensor.dtype(),
            Value::Ref(variable) => variable.dtype().to_ref(),
            Value::Stored(stored) => stored.dtype(),
        })
        .collect();
    let fits = |(wanted, found): (&DType, &DType)| wanted == found || *wanted == found.base();
    if types.len() != found.len() || !types.iter().zip(&found).all(fits) {
        return Err(invalid!("inputs {found:?} where the op takes {types:?}"));
    }
    Ok(())
}

/// A library without functions.
pub(crate) struct NoFunctions;

impl Functions for NoFunctions {
    fn instantiate(&self, function: &Function, _: &str) -> Result<Arc<dyn Callable>> {
        Err(not_found!("Function {} is not defined.", function.name))
    }
}
