//! Shapes and sizes of tensors: Shape, ShapeN, Rank, Size.

use graph::{Output, ShapeQuery, StaticValue};
use op::shapes::scalar;
use op::{Grad, Kernel, Op, PLAIN, Setup, Value, many, unary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Shape(input: T) -> output: out_type; T: type; out_type: {int32, int64} = int32",
        shape: ranks,
        grad: Grad::Stop,
        kernel: shape_kernel,
        facts: PLAIN.static_value(StaticValue::InputShape).reads_shape_only(),
    },
    Op {
        def: "ShapeN(input: N * T) -> output: N * out_type; N: int >= 1; T: type; out_type: {int32, int64} = int32",
        shape: ranks,
        grad: Grad::Stop,
        kernel: shape_n_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Rank(input: T) -> output: int32; T: type",
        shape: scalar,
        grad: Grad::Stop,
        kernel: rank_kernel,
        facts: PLAIN.reads_shape_only(),
    },
    Op {
        def: "Size(input: T) -> output: out_type; T: type; out_type: {int32, int64} = int32",
        shape: scalar,
        grad: Grad::Stop,
        kernel: size_kernel,
        facts: PLAIN.reads_shape_only(),
    },
];

/// The dimensions of `input`, int32.
pub fn shape(input: &Output) -> Output {
    input.scope().op("Shape").input(input).output()
}

/// The dimensions of `input` as `dtype`, int32 or int64.
pub fn shape_as(input: &Output, dtype: DType) -> Output {
    input.scope().op("Shape").input(input).attr("out_type", dtype).output()
}

/// The dimensions of each of `inputs`, int32.
pub fn shape_n(inputs: &[Output]) -> Vec<Output> {
    match inputs.first() {
        Some(first) => first.scope().op("ShapeN").inputs(inputs).node().outputs(),
        None => Vec::new(),
    }
}

/// How many dimensions `input` has.
pub fn rank(input: &Output) -> Output {
    input.scope().op("Rank").input(input).output()
}

/// How many elements `input` has, int32.
pub fn size(input: &Output) -> Output {
    input.scope().op("Size").input(input).output()
}

/// Each output is a vector as long as its input has dimensions.
fn ranks(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let vector = |shape: &PartialShape| PartialShape::new(&[shape.rank().map_or(-1, |rank| rank as i64)]);
    Ok(query.inputs.iter().map(vector).collect())
}

fn shape_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("out_type")? == DType::I64;
    let too_long = |axis, dim| invalid!("Shape output type is 32-bit  but dim {axis} is {dim}");
    Ok(unary(move |_, input| dims(input.shape(), wide, too_long)).free())
}

fn shape_n_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("out_type")? == DType::I64;
    let run = move |(index, input): (usize, Tensor)| {
        let too_long = |axis, dim| invalid!("ShapeN output type is 32-bit but shape {index} dim {axis} is {dim}");
        dims(input.shape(), wide, too_long).map(Value::Tensor)
    };
    Ok(many(move |_, mut inputs| inputs.tensors_from(0)?.into_iter().enumerate().map(run).collect()).free())
}

fn rank_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| Ok(Tensor::scalar(input.shape().rank() as i32))).free())
}

fn size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("out_type")? == DType::I64;
    let count = move |input: Tensor| match (wide, i32::try_from(input.elements())) {
        (true, _) => Ok(Tensor::scalar(input.elements() as i64)),
        (false, Ok(count)) => Ok(Tensor::scalar(count)),
        (false, Err(_)) => Err(invalid!("Number of elements was larger than representable by 32-bit output type")),
    };
    Ok(unary(move |_, input| count(input)).free())
}

/// The dimensions as a vector of int64 or int32.
fn dims(shape: &Shape, wide: bool, too_long: impl Fn(usize, usize) -> status::Error) -> Result<Tensor> {
    if wide {
        return Ok(Tensor::vector::<i64>(&shape.to_i64()));
    }
    let mut dims = Tensor::scratch::<i32>([shape.rank()])?;
    for (axis, (out, &dim)) in dims.values_mut::<i32>()?.iter_mut().zip(shape.iter()).enumerate() {
        // TensorFlow draws the line one below the largest int32.
        *out = i32::try_from(dim).ok().filter(|&dim| dim < i32::MAX).ok_or_else(|| too_long(axis, dim))?;
    }
    Ok(dims)
}
