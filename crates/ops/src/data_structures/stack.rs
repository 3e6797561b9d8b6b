//! Stacks of tensors that end with their step; loops store there the values that their gradients need.

use super::step_resource::{announce, find};
use crate::dispatch::undeclared;
use graph::{Node, Output, Scope, ShapeQuery};
use op::shapes::{none, scalar, unknown};
use op::{Ctx, Grad, Inputs, Kernel, Op, PLAIN, Resource, Setup, many, outputs};
use parking_lot::Mutex;
use status::{Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Stack() -> handle: Ref(string); elem_type: type; stack_name: string = \"\"; stateful",
        shape: pair,
        grad: Grad::Stop,
        kernel: stack_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StackV2(max_size: int32) -> handle: resource; elem_type: type; stack_name: string = \"\"; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: stack_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StackPush(handle: Ref(string), elem: T) -> output: T; T: type; swap_memory: bool = false",
        shape: pushed,
        grad: Grad::Stop,
        kernel: push_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StackPushV2(handle: resource, elem: T) -> output: T; T: type; swap_memory: bool = false; stateful",
        shape: pushed,
        grad: Grad::Stop,
        kernel: push_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StackPop(handle: Ref(string)) -> elem: elem_type; elem_type: type",
        shape: unknown,
        grad: Grad::Stop,
        kernel: pop_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StackPopV2(handle: resource) -> elem: elem_type; elem_type: type; stateful",
        shape: unknown,
        grad: Grad::Stop,
        kernel: pop_kernel,
        facts: PLAIN,
    },
    Op { def: "StackClose(handle: Ref(string))", shape: none, grad: Grad::Stop, kernel: close_kernel, facts: PLAIN },
    Op {
        def: "StackCloseV2(handle: resource); stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: close_kernel,
        facts: PLAIN,
    },
];

/// A new stack, for at most `max_size` tensors; any number if that is negative.
pub fn stack(scope: &Scope, max_size: &Output, dtype: DType) -> Output {
    scope.op("StackV2").input(max_size).attr("elem_type", dtype).output()
}

/// Pushes a tensor on a stack, and returns the tensor.
pub fn stack_push(handle: &Output, tensor: &Output) -> Output {
    handle.scope().op("StackPushV2").input(handle).input(tensor).output()
}

/// Pops the last tensor off a stack.
pub fn stack_pop(handle: &Output, dtype: DType) -> Output {
    handle.scope().op("StackPopV2").input(handle).attr("elem_type", dtype).output()
}

/// Closes a stack and drops its elements.
pub fn stack_close(handle: &Output) -> Node {
    handle.scope().op("StackCloseV2").input(handle).node()
}

fn pair(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[2])])
}

fn pushed(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].clone()])
}

/// A stack. Closed, it holds nothing and takes nothing.
struct Stack {
    name: String,
    dtype: DType,
    max_size: usize,
    tensors: Mutex<Option<Vec<Tensor>>>,
}

impl Resource for Stack {
    const TYPE_NAME: &'static str = "N10tensorflow5StackE";
}

impl Stack {
    fn push(&self, tensor: Tensor) -> Result<()> {
        let mut tensors = self.tensors.lock();
        let tensors = tensors.as_mut().ok_or_else(|| self.closed())?;
        if tensors.len() >= self.max_size {
            return Err(invalid!("Stack[{}] overflowed its max_size ({})", self.name, self.max_size));
        }
        tensors.push(tensor);
        Ok(())
    }

    fn pop(&self) -> Result<Tensor> {
        let mut tensors = self.tensors.lock();
        let tensors = tensors.as_mut().ok_or_else(|| self.closed())?;
        tensors.pop().ok_or_else(|| invalid!("Stack[{}] is empty when calling Pop().", self.name))
    }

    fn closed(&self) -> status::Error {
        invalid!("Stack[{}] has already been closed.", self.name)
    }
}

const KIND: &str = "_stacks";

fn find_stack(ctx: &Ctx<'_>, inputs: &mut Inputs) -> Result<Arc<Stack>> {
    find(ctx, inputs, "Stack handle must have two elements")
}

fn stack_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let dtype = setup.dtype("elem_type")?;
    let name = match setup.string("stack_name")? {
        name if name.is_empty() => setup.name().to_string(),
        name => name,
    };
    let (form, device) = (setup.output_types()[0], setup.device().to_string());
    Ok(many(move |ctx, mut inputs| {
        let max_size = if inputs.is_empty() { i32::MAX as usize } else { size_of(&inputs.tensor(0)?)? };
        let name = format!("{name}_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let stack = Stack { name: name.clone(), dtype, max_size, tensors: Mutex::new(Some(Vec::new())) };
        ctx.step_resources().create("", &format!("{KIND}{name}"), Arc::new(stack))?;
        Ok(outputs![announce::<Stack>(ctx, form, &device, KIND, &name)?])
    })
    .free())
}

/// The largest number of tensors; a negative one sets no limit.
fn size_of(max_size: &Tensor) -> Result<usize> {
    if max_size.shape().rank() != 0 {
        return Err(invalid!("Stack size must be a scalar, but had shape: {}", max_size.shape()));
    }
    Ok(usize::try_from(max_size.to_scalar::<i32>()?).unwrap_or(i32::MAX as usize))
}

fn push_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let (stack, tensor) = (find_stack(ctx, &mut inputs)?, inputs.tensor(1)?);
        if tensor.dtype() != stack.dtype {
            return Err(invalid!("Must have type {} but got {}", stack.dtype.number(), tensor.dtype().number()));
        }
        stack.push(tensor.clone())?;
        Ok(outputs![tensor])
    })
    .free())
}

fn pop_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, node) = (setup.dtype("elem_type")?, setup.name().to_string());
    Ok(many(move |ctx, mut inputs| {
        let tensor = find_stack(ctx, &mut inputs)?.pop()?;
        if tensor.dtype() != dtype {
            return Err(undeclared(&node, tensor.dtype(), dtype));
        }
        Ok(outputs![tensor])
    })
    .free())
}

fn close_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let stack = find_stack(ctx, &mut inputs)?;
        let tensors = stack.tensors.lock().take();
        drop(tensors); // outside the lock: freeing many takes time
        Ok(outputs![])
    }))
}
