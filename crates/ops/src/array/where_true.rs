//! Where: the coordinates of all elements that are not zero.

use graph::Output;
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, unary};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Where(input: T) -> index: int64; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, \
          qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
    shape: where_shape,
    grad: Grad::Stop,
    kernel: where_kernel,
    facts: PLAIN,
}];

/// The places of all elements of `input` that are not zero, one row of coordinates for each, in order.
pub fn where_true(input: &Output) -> Output {
    input.scope().op("Where").input(input).output()
}

fn where_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[-1, query.inputs[0].rank().map_or(-1, |rank| rank as i64)])])
}

fn where_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_plain!(setup, setup.dtype("T")?, T => Ok(unary(|_, input| run::<T>(&input))))
}

fn run<T: Element>(input: &Tensor) -> Result<Tensor> {
    if input.shape().rank() == 0 {
        return Err(invalid!("WhereOp : Unhandled input dimensions: 0"));
    }
    let values = input.values::<T>()?;
    let zero = T::default();
    let count = values.iter().map(|&value| usize::from(value != zero)).sum();
    let mut output = Tensor::scratch::<i64>([count, input.shape().rank()])?;
    let places = output.values_mut::<i64>()?;
    if input.shape().rank() == 1 {
        let found = values.iter().enumerate().filter(|(_, value)| **value != zero);
        places.iter_mut().zip(found).for_each(|(to, (place, _))| *to = place as i64);
        return Ok(output);
    }
    let rows = places.chunks_exact_mut(input.shape().rank().max(1));
    let found = values.iter().enumerate().filter(|(_, value)| **value != zero);
    rows.zip(found).for_each(|(row, (flat, _))| coordinates(input.shape(), flat, row));
    Ok(output)
}

/// The coordinates of element `flat`.
fn coordinates(shape: &Shape, mut flat: usize, row: &mut [i64]) {
    for (coordinate, &dim) in row.iter_mut().zip(shape.iter()).rev() {
        *coordinate = (flat % dim) as i64;
        flat /= dim;
    }
}
