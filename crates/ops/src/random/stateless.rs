//! Random numbers that depend only on their seeds.

use super::draw::{Law, bounds, fill_of, from_shape, integers_within};
use super::stream::{from_seed, shape_of};
use graph::Output;
use math::philox::{self, DrawInteger, Philox};
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, binary, many, outputs};
use status::Result;
use tensor::{DType, Element, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StatelessRandomUniform(shape: T, seed: Tseed) -> output: dtype; dtype: {half, bfloat16, float, \
              double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Uniform),
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomNormal(shape: T, seed: Tseed) -> output: dtype; dtype: {half, bfloat16, float, double} \
              = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Normal),
        facts: PLAIN,
    },
    Op {
        def: "StatelessTruncatedNormal(shape: T, seed: Tseed) -> output: dtype; dtype: {half, bfloat16, float, \
              double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: |setup| float_kernel(setup, Law::Truncated),
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomUniformInt(shape: T, seed: Tseed, minval: dtype, maxval: dtype) -> output: dtype; \
              dtype: {int32, int64}; T: {int32, int64}; Tseed: {int32, int64} = int64",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: integer_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessRandomUniformFullInt(shape: T, seed: Tseed) -> output: dtype; dtype: {int32, int64, uint32, \
              uint64} = uint64; T: {int32, int64} = int32; Tseed: {int32, int64, uint32, uint64} = int64",
        shape: from_shape,
        grad: Grad::Stop,
        kernel: whole_kernel,
        facts: PLAIN,
    },
];

/// Uniform numbers from zero to below one.
pub fn stateless_random_uniform(shape: &Output, seed: &Output, dtype: DType) -> Output {
    shape.scope().op("StatelessRandomUniform").input(shape).input(seed).attr("dtype", dtype).output()
}

/// Numbers of the standard normal distribution.
pub fn stateless_random_normal(shape: &Output, seed: &Output, dtype: DType) -> Output {
    shape.scope().op("StatelessRandomNormal").input(shape).input(seed).attr("dtype", dtype).output()
}

/// Numbers of the standard normal distribution within two standard deviations.
pub fn stateless_truncated_normal(shape: &Output, seed: &Output, dtype: DType) -> Output {
    shape.scope().op("StatelessTruncatedNormal").input(shape).input(seed).attr("dtype", dtype).output()
}

/// Integers from `minval` to below `maxval`.
pub fn stateless_random_uniform_int(shape: &Output, seed: &Output, minval: &Output, maxval: &Output) -> Output {
    let op = shape.scope().op("StatelessRandomUniformInt");
    op.input(shape).input(seed).input(minval).input(maxval).output()
}

fn float_kernel(setup: &Setup<'_>, law: Law) -> Result<Kernel> {
    let fill = fill_of(setup, setup.dtype("dtype")?, law)?;
    Ok(binary(move |ctx, shape, seed| {
        let shape = shape_of(&shape)?;
        fill(ctx, &from_seed(&seed)?, shape)
    })
    .heavy())
}

fn integer_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [i32, i64], T => Ok(many(|ctx, mut inputs| {
        let (shape, seed) = (shape_of(&inputs.tensor(0)?)?, from_seed(&inputs.tensor(1)?)?);
        let bounds = bounds::<T>(&inputs.tensor(2)?, &inputs.tensor(3)?)?;
        Ok(outputs![integers_within::<T>(ctx, &seed, shape, bounds)?])
    }).heavy()))
}

fn whole_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let whole = whole_of(setup, setup.dtype("dtype")?)?;
    Ok(binary(move |ctx, shape, seed| {
        let shape = shape_of(&shape)?;
        whole(ctx, &from_seed(&seed)?, shape)
    })
    .heavy())
}

/// The function that draws integers over the whole range of this type.
pub(crate) fn whole_of(setup: &Setup<'_>, dtype: DType) -> Result<super::draw::Fill> {
    for_types!(setup, dtype, [i32, i64, u32, u64], T => Ok(whole::<T>))
}

fn whole<T: Element + DrawInteger>(ctx: &Ctx<'_>, stream: &Philox, shape: Shape) -> Result<Tensor> {
    let mut out = Tensor::scratch::<T>(shape)?;
    philox::whole_integers(ctx.pool(), stream, out.values_mut::<T>()?);
    Ok(out)
}
