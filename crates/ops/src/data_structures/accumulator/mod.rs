//! Accumulators sum the gradients of several replicas until there are enough, and drop those of past steps.

mod counters;
pub(super) mod state;

use self::counters::Counters;
use self::state::{Accumulator, Gradient};
use crate::data_structures::named::{Unnamed, find, maker, place_name, signature_mismatch};
use crate::data_structures::queue::two_strings;
use crate::data_structures::waiting::answering;
use graph::{Node, OpBuilder, Output, Scope, StateRole};
use op::shapes::{none, scalar, unknown};
use op::{Ctx, Done, Home, Inputs, Kernel, Op, PLAIN, Setup, later, many, outputs, unary};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "ConditionalAccumulator() -> handle: Ref(string); dtype: numbertype; shape: shape; container: string = \"\"; \
     shared_name: string = \"\"; reduction_type: {\"MEAN\", \"SUM\"} = \"MEAN\"; stateful", two_strings, dense_kernel,
        PLAIN.state_role(StateRole::CreatesAccumulator);
    "SparseConditionalAccumulator() -> handle: Ref(string); dtype: numbertype; shape: shape; \
     container: string = \"\"; shared_name: string = \"\"; reduction_type: {\"MEAN\", \"SUM\"} = \"MEAN\"; \
     stateful", two_strings, sparse_kernel, PLAIN.state_role(StateRole::CreatesAccumulator);
    "ResourceConditionalAccumulator() -> handle: resource; dtype: numbertype; shape: shape; \
     container: string = \"\"; shared_name: string = \"\"; reduction_type: {\"MEAN\", \"SUM\"} = \"MEAN\"; \
     stateful", two_strings, dense_kernel,
        PLAIN.holds_shared_state().state_role(StateRole::CreatesAccumulator);
    "AccumulatorApplyGradient(handle: Ref(string), local_step: int64, gradient: dtype); dtype: numbertype",
        none, apply_kernel;
    "ResourceAccumulatorApplyGradient(handle: resource, local_step: int64, gradient: dtype); dtype: numbertype; \
     stateful", none, apply_kernel;
    "AccumulatorTakeGradient(handle: Ref(string), num_required: int32) -> average: dtype; dtype: numbertype",
        unknown, take_kernel;
    "ResourceAccumulatorTakeGradient(handle: resource, num_required: int32) -> average: dtype; dtype: numbertype; \
     stateful", unknown, take_kernel;
    "AccumulatorSetGlobalStep(handle: Ref(string), new_global_step: int64)", none, set_global_step_kernel;
    "ResourceAccumulatorSetGlobalStep(handle: resource, new_global_step: int64); stateful",
        none, set_global_step_kernel;
    "AccumulatorNumAccumulated(handle: Ref(string)) -> num_accumulated: int32", scalar, num_accumulated_kernel;
    "ResourceAccumulatorNumAccumulated(handle: resource) -> num_accumulated: int32; stateful",
        scalar, num_accumulated_kernel;
    "SparseAccumulatorApplyGradient(handle: Ref(string), local_step: int64, gradient_indices: int64, \
     gradient_values: dtype, gradient_shape: int64); dtype: numbertype; has_known_shape: bool",
        none, sparse_apply_kernel;
    "SparseAccumulatorTakeGradient(handle: Ref(string), num_required: int32) -> indices: int64, values: dtype, \
     shape: int64; dtype: numbertype", unknown, take_kernel;
};

/// An accumulator of gradients of this type and shape, shared by all nodes with this name; it averages the gradients.
pub fn conditional_accumulator(scope: &Scope, shared_name: &str, dtype: DType, shape: &PartialShape) -> Output {
    let op = scope.op("ConditionalAccumulator").attr("dtype", dtype).attr("shape", shape);
    op.attr("shared_name", shared_name).output()
}

/// As `conditional_accumulator`, with a handle of the newer kind.
pub fn resource_conditional_accumulator(
    scope: &Scope,
    shared_name: &str,
    dtype: DType,
    shape: &PartialShape,
) -> Output {
    let op = scope.op("ResourceConditionalAccumulator").named("conditional_accumulator").attr("dtype", dtype);
    op.attr("shape", shape).attr("shared_name", shared_name).output()
}

/// As `conditional_accumulator`, for gradients of some rows.
pub fn sparse_conditional_accumulator(scope: &Scope, shared_name: &str, dtype: DType, shape: &PartialShape) -> Output {
    let op = scope.op("SparseConditionalAccumulator").attr("dtype", dtype).attr("shape", shape);
    op.attr("shared_name", shared_name).output()
}

/// Adds a gradient, unless it was computed in an earlier step than the accumulator's.
pub fn accumulator_apply_gradient(accumulator: &Output, local_step: &Output, gradient: &Output) -> Node {
    op_of(accumulator, "AccumulatorApplyGradient").input(accumulator).input(local_step).input(gradient).node()
}

/// As `accumulator_apply_gradient`, for a gradient of some rows.
pub fn sparse_accumulator_apply_gradient(
    accumulator: &Output,
    local_step: &Output,
    (indices, values): (&Output, &Output),
    shape: &Output,
    has_known_shape: bool,
) -> Node {
    let op = accumulator.scope().op("SparseAccumulatorApplyGradient").input(accumulator).input(local_step);
    op.input(indices).input(values).input(shape).attr("has_known_shape", has_known_shape).node()
}

/// The average of the gradients, as soon as there are `num_required`. The accumulator is reset and advances one step.
pub fn accumulator_take_gradient(accumulator: &Output, num_required: &Output, dtype: DType) -> Output {
    let op = op_of(accumulator, "AccumulatorTakeGradient").input(accumulator).input(num_required);
    op.attr("dtype", dtype).output()
}

/// As `accumulator_take_gradient`; returns row indices, rows, and the dense shape.
pub fn sparse_accumulator_take_gradient(
    accumulator: &Output,
    num_required: &Output,
    dtype: DType,
) -> (Output, Output, Output) {
    let op = accumulator.scope().op("SparseAccumulatorTakeGradient").input(accumulator).input(num_required);
    let node = op.attr("dtype", dtype).node();
    (node.output(0), node.output(1), node.output(2))
}

/// Sets the global step of an accumulator.
pub fn accumulator_set_global_step(accumulator: &Output, step: &Output) -> Node {
    op_of(accumulator, "AccumulatorSetGlobalStep").named("SetGlobalStep").input(accumulator).input(step).node()
}

/// The number of gradients since the last take.
pub fn accumulator_num_accumulated(accumulator: &Output) -> Output {
    op_of(accumulator, "AccumulatorNumAccumulated").input(accumulator).output()
}

/// The op for the kind of handle that an accumulator has.
fn op_of(accumulator: &Output, op: &str) -> OpBuilder {
    match accumulator.full_dtype() == DType::RESOURCE {
        true => accumulator.scope().op(&format!("Resource{op}")),
        false => accumulator.scope().op(op),
    }
}

fn dense_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    accumulator_kernel(setup, false)
}

fn sparse_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    accumulator_kernel(setup, true)
}

fn accumulator_kernel(setup: &Setup<'_>, sparse: bool) -> Result<Kernel> {
    let (dtype, shape) = (setup.dtype("dtype")?, setup.shape("shape")?);
    if !matches!(dtype, DType::F32 | DType::F64 | DType::F16) {
        return Err(setup.no_kernel());
    }
    let mean = setup.string("reduction_type")? == "MEAN";
    let counters = counters_of(setup)?;
    let make = move |_: &str| Ok(Accumulator::new(dtype, shape.clone(), mean, sparse).counting(counters.clone()));
    maker(setup, Unnamed::Private, make, |_| Ok(()))
}

/// Accumulators of synchronous training, which are known by their names, count what becomes of gradients.
fn counters_of(setup: &Setup<'_>) -> Result<Option<Arc<Counters>>> {
    if !setup.string("shared_name")?.ends_with("/grad_accum") {
        return Ok(None);
    }
    let (container, name, _) = place_name(setup, Unnamed::Private)?;
    Ok(Some(Arc::new(Counters::of(&Home::of(setup), &container, &name)?)))
}

/// The one number of an input; `name` is for the error that it is not one.
fn number<T: tensor::Element>(inputs: &mut Inputs, index: usize, name: &str) -> Result<T> {
    let tensor = inputs.tensor(index)?;
    if tensor.shape().rank() != 0 {
        return Err(invalid!("Argument {name} must be scalar, but had bad shape {}", tensor.shape()));
    }
    tensor.to_scalar()
}

fn apply_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, types) = (Home::of(setup), setup.input_types().to_vec());
    Ok(many(move |ctx, mut inputs| {
        let accumulator = find::<Accumulator>(&home, &inputs.tensor(0)?)?;
        if types[2] != accumulator.dtype {
            return Err(signature_mismatch(&types, &[], &[types[0], DType::I64, accumulator.dtype], &[]));
        }
        let local_step = number::<i64>(&mut inputs, 1, "local_step")?;
        accumulator.apply(ctx, local_step, Gradient::Dense(inputs.tensor(2)?))?;
        Ok(outputs![])
    }))
}

fn sparse_apply_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, types) = (Home::of(setup), setup.input_types().to_vec());
    let has_known_shape = setup.bool("has_known_shape")?;
    Ok(many(move |ctx, mut inputs| {
        let accumulator = find::<Accumulator>(&home, &inputs.tensor(0)?)?;
        if types[3] != accumulator.dtype {
            let expected = [types[0], DType::I64, DType::I64, accumulator.dtype, DType::I64];
            return Err(signature_mismatch(&types, &[], &expected, &[]));
        }
        let local_step = number::<i64>(&mut inputs, 1, "local_step")?;
        let (indices, values) = (inputs.tensor(2)?, inputs.tensor(3)?);
        let shape = if has_known_shape { Some(inputs.tensor(4)?) } else { None };
        accumulator.apply(ctx, local_step, Gradient::Sparse { indices, values, shape })?;
        Ok(outputs![])
    }))
}

fn take_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    let (inputs_of, outputs_of) = (setup.input_types().to_vec(), setup.output_types().to_vec());
    let prepare = move |inputs: &mut Inputs| {
        let accumulator = find::<Accumulator>(&home, &inputs.tensor(0)?)?;
        let expected = accumulator.output_types();
        if outputs_of != expected {
            return Err(signature_mismatch(&inputs_of, &outputs_of, &inputs_of, &expected));
        }
        let required = number::<i32>(inputs, 1, "num_required")?;
        match usize::try_from(required) {
            Ok(1..) => Ok((accumulator, required as usize)),
            _ => Err(invalid!("Argument num_required must be positive, but was {required}")),
        }
    };
    Ok(later(move |ctx: &Ctx<'_>, mut inputs, done: Done| match prepare(&mut inputs) {
        Ok((accumulator, required)) => Arc::clone(&accumulator).take(ctx.env, required, answering(done)),
        Err(error) => done(Err(error)),
    }))
}

fn set_global_step_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        let accumulator = find::<Accumulator>(&home, &inputs.tensor(0)?)?;
        accumulator.set_global_step(number::<i64>(&mut inputs, 1, "num_required")?);
        Ok(outputs![])
    })
    .free())
}

fn num_accumulated_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(unary(move |_, handle| {
        let count = find::<Accumulator>(&home, &handle)?.num_accumulated();
        Ok(Tensor::scalar(i32::try_from(count).unwrap_or(i32::MAX)))
    })
    .free())
}
