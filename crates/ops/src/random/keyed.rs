//! Random numbers that depend only on a key and a counter, and the sources of these.

use super::draw::{Law, bounds, fill_of, from_shape, integers_within};
use super::stateless::whole_of;
use super::stream::{PHILOX, from_key, from_seed, shape_of};
use graph::{Output, Scope, ShapeQuery};
use math::philox::Philox;
use op::shapes::scalar;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, many, outputs, source};
use status::Result;
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StatelessRandomUniformV2(shape: Tshape, key: uint64, counter: uint64, alg: int32) -> output: dtype; \
              dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Uniform),
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomNormalV2(shape: Tshape, key: uint64, counter: uint64, alg: int32) -> output: dtype; \
              dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Normal),
        facts: PLAIN,
    },
    Op {
        def: "StatelessTruncatedNormalV2(shape: Tshape, key: uint64, counter: uint64, alg: int32) -> output: dtype; \
              dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Truncated),
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomUniformIntV2(shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, \
              maxval: dtype) -> output: dtype; dtype: {int32, int64, uint32, uint64}; Tshape: {int32, int64} = \
              int32",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: integer_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomUniformFullIntV2(shape: Tshape, key: uint64, counter: uint64, alg: int32) -> output: \
              dtype; dtype: {int32, int64, uint32, uint64} = uint64; Tshape: {int32, int64} = int32",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: whole_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomGetKeyCounter(seed: Tseed) -> key: uint64, counter: uint64; Tseed: {int32, int64} = \
              int64",
        shape: key_shapes,
        grad: Grad::Stop,
        kernel: key_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomGetKeyCounterAlg(seed: Tseed) -> key: uint64, counter: uint64, alg: int32; Tseed: \
              {int32, int64} = int64",
        shape: key_shapes,
        grad: Grad::Stop,
        kernel: key_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomGetAlg() -> alg: int32; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: algorithm_kernel,
        facts: PLAIN,
    },
];

/// Key and counter that two seeds mean.
pub fn stateless_random_get_key_counter(seed: &Output) -> (Output, Output) {
    let node = seed.scope().op("StatelessRandomGetKeyCounter").input(seed).node();
    (node.output(0), node.output(1))
}

/// The number of the algorithm that this device prefers.
pub fn stateless_random_get_alg(scope: &Scope) -> Output {
    scope.op("StatelessRandomGetAlg").output()
}

/// Shapes of a key, a counter and an algorithm.
fn key_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let shapes = [PartialShape::new(&[1]), PartialShape::new(&[2]), PartialShape::scalar()];
    Ok(shapes[..query.outputs.min(3)].to_vec())
}

/// The shape asked for and the stream to draw from: the first four inputs.
fn read_inputs(inputs: &mut Inputs) -> Result<(Shape, Philox)> {
    let stream = from_key(&inputs.tensor(1)?, &inputs.tensor(2)?, &inputs.tensor(3)?, 3)?;
    Ok((shape_of(&inputs.tensor(0)?)?, stream))
}

fn float_kernel(setup: &Setup<'_>, law: Law) -> Result<Kernel> {
    let fill = fill_of(setup, setup.dtype("dtype")?, law)?;
    Ok(many(move |ctx, mut inputs| {
        let (shape, stream) = read_inputs(&mut inputs)?;
        Ok(outputs![fill(ctx, &stream, shape)?])
    })
    .heavy())
}

fn integer_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [i32, i64, u32, u64], T => Ok(many(|ctx, mut inputs| {
        let (shape, stream) = read_inputs(&mut inputs)?;
        let bounds = bounds::<T>(&inputs.tensor(4)?, &inputs.tensor(5)?)?;
        Ok(outputs![integers_within::<T>(ctx, &stream, shape, bounds)?])
    }).heavy()))
}

fn whole_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let whole = whole_of(setup, setup.dtype("dtype")?)?;
    Ok(many(move |ctx, mut inputs| {
        let (shape, stream) = read_inputs(&mut inputs)?;
        Ok(outputs![whole(ctx, &stream, shape)?])
    })
    .heavy())
}

fn key_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let count = setup.output_types().len();
    Ok(many(move |_, mut inputs| {
        let stream = from_seed(&inputs.tensor(0)?)?;
        let (key, counter) = (stream.key(), stream.counter());
        let counter = Tensor::vector(&[counter as u64, (counter >> 64) as u64]);
        let mut outputs: Outputs = outputs![Tensor::vector(&[key]), counter, Tensor::scalar(PHILOX as i32)];
        outputs.truncate(count);
        Ok(outputs)
    })
    .free())
}

fn algorithm_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(source(|_| Ok(Tensor::scalar(PHILOX as i32))).free())
}
