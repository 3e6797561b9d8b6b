//! QuantizedAdd and QuantizedMul.

use super::args::with_range;
use super::level::{Range, Widening};
use graph::ShapeQuery;
use op::shapes::broadcast_shapes;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many};
use status::{Error, Result, invalid, unimplemented_op};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "QuantizedAdd(x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float) -> z: Toutput, \
              min_z: float, max_z: float; T1: {qint8, quint8, qint32, qint16, quint16}; \
              T2: {qint8, quint8, qint32, qint16, quint16}; \
              Toutput: {qint8, quint8, qint32, qint16, quint16} = qint32",
        shape,
        grad: Grad::Unknown,
        kernel: add_kernel,
        facts: PLAIN,
    },
    Op {
        def: "QuantizedMul(x: T1, y: T2, min_x: float, max_x: float, min_y: float, max_y: float) -> z: Toutput, \
              min_z: float, max_z: float; T1: {qint8, quint8, qint32, qint16, quint16}; \
              T2: {qint8, quint8, qint32, qint16, quint16}; \
              Toutput: {qint8, quint8, qint32, qint16, quint16} = qint32",
        shape,
        grad: Grad::Unknown,
        kernel: mul_kernel,
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(super::args::ranged(broadcast_shapes(&query.inputs[0], &query.inputs[1])?))
}

fn check_types(setup: &Setup<'_>) -> Result<()> {
    let types = (setup.dtype("T1")?, setup.dtype("T2")?, setup.dtype("Toutput")?);
    if types == (DType::QU8, DType::QU8, DType::QI32) { Ok(()) } else { Err(setup.no_kernel()) }
}

fn add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    check_types(setup)?;
    Ok(many(|_, mut inputs| {
        let rank = |name: &str, rank: usize| invalid!("`{name}` must be rank 0 but is rank {rank}");
        let (x, y) = ranges(&inputs, rank)?;
        let operands = Operands::of(&mut inputs)?;
        check_range(x, "max_x must be larger than min_x.")?;
        check_range(y, "max_y must be larger than min_y.")?;
        let largest = x.min.min(y.min).abs().max(x.max.max(y.max).abs());
        let to = Range::symmetric(largest * (1 << 14) as f32);
        let widen = [x, y].map(|from| Widening::new(from, to));
        // TensorFlow computes a single element in another precision than the elements of vectors.
        let single = operands.single();
        let integer = |side: usize, value: u8| match single {
            Some(single) if single == side => to.quantized::<i32>([x, y][side].real(value)),
            _ => widen[side].widen(value),
        };
        let empty = || invalid!("Must have some elements to add");
        let sums = operands.combined(empty, |x, y| integer(0, x).wrapping_add(integer(1, y)))?;
        Ok(with_range(sums, to))
    }))
}

fn mul_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    check_types(setup)?;
    Ok(many(|_, mut inputs| {
        let (x, y) = ranges(&inputs, |name, _| invalid!("{name} must be a scalar"))?;
        let operands = Operands::of(&mut inputs)?;
        check_range(x, "max_x must be larger than min_a.")?;
        check_range(y, "max_x must be larger than min_b.")?;
        let [zero_x, zero_y] = [x, y].map(|range| range.unclamped::<u8>(0.0) as i32);
        let empty = || invalid!("vector must have at least 1 element");
        let products = operands.combined(empty, |x, y| {
            i32::from(x).wrapping_sub(zero_x).wrapping_mul(i32::from(y).wrapping_sub(zero_y))
        })?;
        Ok(with_range(products, Range::of_products::<u8, u8, i32>(x, y)))
    }))
}

fn ranges(inputs: &Inputs, error: impl Fn(&str, usize) -> Error) -> Result<(Range, Range)> {
    let scalar = |index: usize, name: &str| -> Result<f32> {
        let tensor = inputs.look(index)?;
        match tensor.shape().rank() {
            0 => tensor.to_scalar(),
            rank => Err(error(name, rank)),
        }
    };
    let x = Range { min: scalar(2, "min_x")?, max: scalar(3, "max_x")? };
    Ok((x, Range { min: scalar(4, "min_y")?, max: scalar(5, "max_y")? }))
}

fn check_range(range: Range, error: &str) -> Result<()> {
    if range.max > range.min { Ok(()) } else { Err(invalid!("{error}")) }
}

/// Two tensors, and the shape of the result.
struct Operands {
    x: Tensor,
    y: Tensor,
    joined: Joined,
}

impl Operands {
    fn of(inputs: &mut Inputs) -> Result<Operands> {
        let (x, y) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let joined = Joined::of(x.shape(), y.shape())
            .ok_or_else(|| invalid!("Incompatible shapes: {} vs. {}", x.shape(), y.shape()))?;
        Ok(Operands { x, y, joined })
    }

    /// The operand that is a single element combined with all elements of the other.
    fn single(&self) -> Option<usize> {
        if self.joined.axes > 1 {
            return None;
        }
        [&self.x, &self.y].into_iter().position(|operand| operand.elements() == 1)
    }

    /// Combines the elements. The smaller operand is repeated, whatever the axes are along which it is broadcast:
    /// TensorFlow supports only vectors that are combined with the rows of a matrix, and does not check that.
    fn combined(&self, empty: impl FnOnce() -> Error, f: impl Fn(u8, u8) -> i32) -> Result<Tensor> {
        let (x, y) = (self.x.values::<u8>()?, self.y.values::<u8>()?);
        if self.joined.axes > 2 {
            return Err(unimplemented_op!(
                "Broadcast between {} and {} is not supported yet.",
                self.x.shape(),
                self.y.shape()
            ));
        }
        if self.joined.axes == 2 && (x.is_empty() || y.is_empty()) {
            return Err(empty());
        }
        let mut out = Tensor::zeros_of(DType::QI32, &self.joined.shape)?;
        let pairs = match self.joined.axes {
            2 => x.len().max(y.len()),
            _ => out.elements(),
        };
        for (i, out) in out.values_mut::<i32>()?.iter_mut().take(pairs).enumerate() {
            *out = f(x[i % x.len()], y[i % y.len()]);
        }
        Ok(out)
    }
}

/// The shape of two operands that are broadcast against each other.
struct Joined {
    shape: Shape,
    /// How many axes are left when neighbouring axes that are broadcast in the same way are joined.
    axes: usize,
}

impl Joined {
    fn of(x: &Shape, y: &Shape) -> Option<Joined> {
        let rank = x.rank().max(y.rank());
        let at = |shape: &Shape, axis: usize| (axis + shape.rank()).checked_sub(rank).map_or(1, |place| shape[place]);
        let (mut dims, mut axes, mut last) = (Vec::with_capacity(rank), 0, None);
        for axis in 0..rank {
            let (a, b) = (at(x, axis), at(y, axis));
            if a != b && a != 1 && b != 1 {
                return None;
            }
            dims.push(if a == 1 { b } else { a });
            let repeated = (a != b && a == 1, a != b && b == 1);
            if a == 1 && b == 1 {
                continue;
            }
            axes += usize::from(last != Some(repeated));
            last = Some(repeated);
        }
        Some(Joined { shape: Shape::from(dims), axes })
    }
}
