//! SobolSample: points that fill a cube evenly (Joe and Kuo, 2008).

use graph::{Output, ShapeQuery};
use math::parallel::split_rows_mut;
use op::shapes::integers;
use op::{Ctx, Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SobolSample(dim: int32, num_results: int32, skip: int32) -> samples: dtype; dtype: {float, double} = float",
    shape,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

/// For each dimension from the second on: the inner coefficients of its primitive polynomial as bits, and its first
/// direction numbers, as many as the polynomial has degrees. All polynomials up to degree 13, by degree and value.
const TABLE: &str = include_str!("sobol.txt");
/// The dimensions for which there is a polynomial. TensorFlow has a table of 21200.
const MOST_DIMENSIONS: i32 = 1111;
/// Binary digits of a coordinate.
const DIGITS: usize = 32;

/// `num_results` points of `dim` coordinates between 0 and 1, from point `skip` of the sequence on.
pub fn sobol_sample(dim: &Output, num_results: &Output, skip: &Output) -> Output {
    dim.scope().op("SobolSample").input(dim).input(num_results).input(skip).output()
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    for shape in query.inputs {
        shape.merge(&PartialShape::scalar())?;
    }
    let known = |input: usize| match query.constants.get(input).and_then(Option::as_ref) {
        Some(tensor) => integers(tensor).map(|values| values.first().copied().unwrap_or(-1)),
        None => Ok(-1),
    };
    Ok(vec![PartialShape::new(&[known(1)?, known(0)?])])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("dtype")?, [f32, f64], T => Ok(kernel_of::<T>(|value| value as T)))
}

fn kernel_of<T: Element>(convert: fn(f64) -> T) -> Kernel {
    many(move |ctx, mut inputs| {
        let scalar = |tensor: Tensor, name: &str| match tensor.shape().rank() {
            0 => tensor.to_scalar::<i32>(),
            _ => Err(invalid!("{name} must be a scalar")),
        };
        let dim = scalar(inputs.tensor(0)?, "dim")?;
        let count = scalar(inputs.tensor(1)?, "num_results")?;
        let skip = scalar(inputs.tensor(2)?, "skip")?;
        check(dim, count, skip)?;
        Ok(outputs![sample(ctx, dim as usize, count as usize, skip as u32, convert)?])
    })
    .heavy()
}

fn check(dim: i32, count: i32, skip: i32) -> Result<()> {
    match () {
        _ if dim < 1 => Err(invalid!("dim must be at least one")),
        _ if count < 1 => Err(invalid!("num_results must be at least one")),
        _ if skip < 0 => Err(invalid!("skip must be non-negative")),
        _ if count >= i32::MAX - skip => Err(invalid!("num_results+skip must be less than {}", i32::MAX)),
        _ if count >= i32::MAX / dim => Err(invalid!("num_results*dim must be less than {}", i32::MAX)),
        _ if dim > MOST_DIMENSIONS => Err(invalid!("dim must be at most {MOST_DIMENSIONS}")),
        _ => Ok(()),
    }
}

fn sample<T: Element>(ctx: &Ctx<'_>, dim: usize, count: usize, skip: u32, convert: fn(f64) -> T) -> Result<Tensor> {
    let mut tensor = Tensor::scratch::<T>([count, dim])?;
    let directions = directions(dim);
    split_rows_mut(ctx.pool(), dim as f32 * 2.0, tensor.values_mut::<T>()?, dim, |first, chunk| {
        let first = skip + first as u32 + 1;
        let mut point = point(&directions, first);
        for (number, to) in (first..).zip(chunk.chunks_exact_mut(dim)) {
            if number > first {
                // The Gray code of a number differs from the one before in one digit.
                step(&mut point, &directions, number.trailing_zeros());
            }
            for (to, &coordinate) in to.iter_mut().zip(&point) {
                *to = convert(f64::from(coordinate) / (1u64 << DIGITS) as f64);
            }
        }
    });
    Ok(tensor)
}

/// The coordinates of a point, as fractions of 32 binary digits.
fn point(directions: &[[u32; DIGITS]], number: u32) -> Vec<u32> {
    let mut point = vec![0; directions.len()];
    let gray = number ^ number >> 1;
    (0..DIGITS as u32).filter(|digit| gray >> digit & 1 == 1).for_each(|digit| step(&mut point, directions, digit));
    point
}

fn step(point: &mut [u32], directions: &[[u32; DIGITS]], digit: u32) {
    for (coordinate, directions) in point.iter_mut().zip(directions) {
        *coordinate ^= directions[digit as usize];
    }
}

/// The direction numbers of each dimension, as fractions of 32 binary digits.
fn directions(dim: usize) -> Vec<[u32; DIGITS]> {
    let first = std::array::from_fn(|digit| 1 << (DIGITS - 1 - digit));
    std::iter::once(first).chain(TABLE.lines().map(continued)).take(dim).collect()
}

/// The direction numbers that follow from a line of the table by the recurrence of its polynomial.
fn continued(line: &str) -> [u32; DIGITS] {
    let mut numbers = line.split(' ').map_while(|number| number.parse::<u32>().ok());
    let coefficients = numbers.next().unwrap_or_default();
    let mut directions = [0; DIGITS];
    let mut degree = 0;
    for (direction, number) in directions.iter_mut().zip(numbers) {
        *direction = number << (DIGITS - 1 - degree);
        degree += 1;
    }
    for digit in degree..DIGITS {
        let old = directions[digit - degree];
        let terms = (1..degree).filter(|term| coefficients >> (degree - 1 - term) & 1 == 1);
        directions[digit] = terms.fold(old ^ old >> degree, |sum, term| sum ^ directions[digit - term]);
    }
    directions
}
