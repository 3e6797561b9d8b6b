//! Random numbers whose state is a variable with a counter and a key, as in `tf.random.Generator`.

use super::draw::{Fill, Law, bounds, fill_of, integers_within};
use super::stateless::whole_of;
use super::stream::{AUTO, PHILOX, entropy, shape_of};
use graph::{Output, ShapeQuery};
use math::philox::{Philox, RESERVED_BLOCKS};
use op::shapes::{none, shape_from_input};
use op::{Ctx, Grad, Home, Inputs, Kernel, Op, PLAIN, Setup, Variable, handle_of, many, outputs, unary};
use status::{Result, invalid, unimplemented_op};
use std::sync::Arc;
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StatefulUniform(resource: resource, algorithm: int64, shape: shape_dtype) -> output: dtype; dtype: \
              type = float; shape_dtype: type = int64; stateful",
        shape: last_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Uniform),
        facts: PLAIN,
    },
    Op {
        def: "StatefulStandardNormalV2(resource: resource, algorithm: int64, shape: shape_dtype) -> output: dtype; \
              dtype: type = float; shape_dtype: type = int64; stateful",
        shape: last_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Normal),
        facts: PLAIN,
    },
    Op {
        def: "StatefulTruncatedNormal(resource: resource, algorithm: int64, shape: shape_dtype) -> output: dtype; \
              dtype: type = float; shape_dtype: type = int64; stateful",
        shape: last_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Truncated),
        facts: PLAIN,
    },
    Op {
        def: "StatefulUniformFullInt(resource: resource, algorithm: int64, shape: shape_dtype) -> output: dtype; \
              dtype: type = uint64; shape_dtype: type = int64; stateful",
        shape: last_shape,
        grad: Grad::Stop,
        kernel: whole_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatefulUniformInt(resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype, maxval: \
              dtype) -> output: dtype; dtype: type = int64; shape_dtype: type = int64; stateful",
        shape: last_shape,
        grad: Grad::Stop,
        kernel: integer_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatefulStandardNormal(resource: resource, shape: shape_dtype) -> output: dtype; dtype: type = float; \
              shape_dtype: type = int64; stateful",
        shape: second_shape,
        grad: Grad::Stop,
        kernel: tagged_kernel,
        facts: PLAIN.removed_in(29, "Use StatefulStandardNormalV2 instead"),
    },
    Op {
        def: "RngSkip(resource: resource, algorithm: int64, delta: int64); stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: skip_kernel,
        facts: PLAIN,
    },
    Op {
        def: "RngReadAndSkip(resource: resource, alg: int32, delta: uint64) -> value: int64; stateful",
        shape: state_shape,
        grad: Grad::Stop,
        kernel: read_and_skip_kernel,
        facts: PLAIN,
    },
    Op {
        def: "NonDeterministicInts(shape: shape_dtype) -> output: dtype; dtype: type = int64; shape_dtype: type = \
              int64; stateful",
        shape: first_shape,
        grad: Grad::Stop,
        kernel: entropy_kernel,
        facts: PLAIN,
    },
];

/// Advances the generator behind a handle by `delta` results, and returns its state before that.
pub fn rng_read_and_skip(handle: &Output, algorithm: &Output, delta: &Output) -> Output {
    handle.scope().op("RngReadAndSkip").input(handle).input(algorithm).input(delta).output()
}

fn last_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 2)])
}

fn second_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 1)])
}

fn first_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 0)])
}

fn state_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[3])])
}

/// Elements of a state: a counter of two words and a key.
const STATE: usize = 3;

/// The one number an input holds.
fn number<T: Element>(tensor: &Tensor, input: usize) -> Result<T> {
    if tensor.shape().rank() != 0 {
        return Err(invalid!("input {input} (0-based) must have shape [], not {}", tensor.shape()));
    }
    if !T::stores(tensor.dtype()) {
        return Err(invalid!("dtype of input {input} (0-based) must be {}, not {}", T::DTYPE, tensor.dtype()));
    }
    tensor.to_scalar::<T>()
}

pub(crate) fn check_algorithm(algorithm: i64) -> Result<()> {
    match algorithm {
        PHILOX | AUTO => Ok(()),
        2 => Err(unimplemented_op!("Non-XLA devices don't support the ThreeFry algorithm.")),
        other => Err(invalid!("Unsupported algorithm id: {other}")),
    }
}

/// The state of a generator in its variable, after `tag` leading elements.
fn state(value: &mut Tensor, tag: usize) -> Result<&mut [i64]> {
    if value.dtype() != DType::I64 {
        return Err(invalid!("dtype of RNG state variable must be int64, not {}", value.dtype()));
    }
    if value.shape().rank() != 1 {
        return Err(invalid!("RNG state must have one and only one dimension, not {}", value.shape().rank()));
    }
    let len = value.elements();
    if len < STATE + tag {
        return Err(invalid!(
            "For the Philox algorithm, the size of state must be at least {}; got {len}",
            STATE + tag
        ));
    }
    Ok(&mut value.values_mut::<i64>()?[tag..])
}

fn stream_of(state: &[i64]) -> Philox {
    Philox::new(state[2] as u64, u128::from(state[0] as u64) | u128::from(state[1] as u64) << 64)
}

/// Advances the counter by this many results.
fn skip(state: &mut [i64], outputs: u64) {
    skip_blocks(state, outputs.wrapping_mul(RESERVED_BLOCKS));
}

fn skip_blocks(state: &mut [i64], blocks: u64) {
    let counter = stream_of(state).skipped(blocks).counter();
    (state[0], state[1]) = (counter as u64 as i64, (counter >> 64) as u64 as i64);
}

/// The part of the stream for a result of this many numbers.
fn take(variable: &Variable, outputs: usize) -> Result<Philox> {
    take_blocks(variable, (outputs as u64).wrapping_mul(RESERVED_BLOCKS))
}

/// The part of the stream of this many blocks.
pub(crate) fn take_blocks(variable: &Variable, blocks: u64) -> Result<Philox> {
    variable.update(|value| {
        let state = state(value, 0)?;
        let stream = stream_of(state);
        skip_blocks(state, blocks);
        Ok(stream)
    })
}

/// The generator and the shape asked for: the first three inputs.
fn read_inputs(home: &Home, inputs: &mut Inputs) -> Result<(Arc<Variable>, tensor::Shape)> {
    check_algorithm(number::<i64>(&inputs.tensor(1)?, 1)?)?;
    let shape = shape_of(&inputs.tensor(2)?)?;
    Ok((home.find(handle_of(&inputs.tensor(0)?)?)?, shape))
}

fn float_kernel(setup: &Setup<'_>, law: Law) -> Result<Kernel> {
    filling(setup, fill_of(setup, setup.dtype("dtype")?, law)?)
}

fn whole_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    filling(setup, whole_of(setup, setup.dtype("dtype")?)?)
}

fn filling(setup: &Setup<'_>, fill: Fill) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |ctx: &Ctx<'_>, mut inputs| {
        let (variable, shape) = read_inputs(&home, &mut inputs)?;
        Ok(outputs![fill(ctx, &take(&variable, shape.elements())?, shape)?])
    })
    .heavy())
}

fn integer_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    for_types!(setup, setup.dtype("dtype")?, [i32, i64, u32, u64], T => Ok(many(move |ctx, mut inputs| {
        let (low, high) = bounds::<T>(&inputs.tensor(3)?, &inputs.tensor(4)?)?;
        if low >= high {
            return Err(invalid!("Need minval < maxval, got {low} >= {high}"));
        }
        let (variable, shape) = read_inputs(&home, &mut inputs)?;
        let stream = take(&variable, shape.elements())?;
        Ok(outputs![integers_within::<T>(ctx, &stream, shape, (low, high))?])
    }).heavy()))
}

/// The deprecated form, whose state begins with the code of the algorithm.
fn tagged_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let fill = fill_of(setup, setup.dtype("dtype")?, Law::Normal)?;
    let home = Home::of(setup);
    Ok(many(move |ctx: &Ctx<'_>, mut inputs| {
        let shape = shape_of(&inputs.tensor(1)?)?;
        let variable = home.find::<Variable>(handle_of(&inputs.tensor(0)?)?)?;
        let stream = variable.update(|value| {
            if let Some(&algorithm) = value.values::<i64>()?.first() {
                check_algorithm(algorithm)?;
            }
            let state = state(value, 1)?;
            let stream = stream_of(state);
            skip(state, shape.elements() as u64);
            Ok(stream)
        })?;
        Ok(outputs![fill(ctx, &stream, shape)?])
    })
    .heavy())
}

fn skip_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        check_algorithm(number::<i64>(&inputs.tensor(1)?, 1)?)?;
        let delta = number::<i64>(&inputs.tensor(2)?, 2)?;
        let variable = home.find::<Variable>(handle_of(&inputs.tensor(0)?)?)?;
        variable.update(|value| {
            skip(state(value, 0)?, delta as u64);
            Ok(())
        })?;
        Ok(outputs![])
    })
    .free())
}

fn read_and_skip_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        check_algorithm(number::<i32>(&inputs.tensor(1)?, 1)?.into())?;
        let delta = number::<u64>(&inputs.tensor(2)?, 2)?;
        let variable = home.find::<Variable>(handle_of(&inputs.tensor(0)?)?)?;
        let before = variable.update(|value| {
            let state = state(value, 0)?;
            let before = Tensor::vector(&state[..STATE]);
            skip(state, delta);
            Ok(before)
        })?;
        Ok(outputs![before])
    })
    .free())
}

fn entropy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [i32, i64, u32, u64], T => Ok(unary(|_, shape| {
        let mut out = Tensor::zeros::<T>(shape_of(&shape)?)?;
        out.values_mut::<T>()?.iter_mut().for_each(|out| *out = entropy() as T);
        Ok(out)
    }).heavy()))
}
