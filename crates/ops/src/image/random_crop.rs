//! Random parts of images.

use super::distorted_box::entropy;
use math::philox::Philox;
use op::shapes::integers;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use parking_lot::Mutex;
use status::{Result, failed_precondition, invalid};
use tensor::{Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RandomCrop(image: T, size: int64) -> output: T; T: {uint8, int8, int16, int32, int64, float, double}; \
          seed: int = 0; seed2: int = 0; stateful",
    shape: crop_shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN.removed_in(8, "Random crop is now pure Python"),
}];

fn crop_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let image = query.inputs[0].merge(&PartialShape::of_rank(3))?;
    query.inputs[1].merge(&PartialShape::new(&[2]))?;
    let channels = image.dims().map_or(-1, |dims| dims[2]);
    let size = query.constants.get(1).and_then(Option::as_ref).map(integers).transpose()?;
    Ok(vec![match size.as_deref() {
        Some(&[height, width]) => PartialShape::new(&[height, width, channels]),
        _ => PartialShape::new(&[-1, -1, channels]),
    }])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (seed, seed2) = match (setup.int("seed")?, setup.int("seed2")?) {
        (0, 0) => (entropy(), entropy()),
        (seed, seed2) => (seed as u64, seed2 as u64),
    };
    let stream = Mutex::new(Philox::from_seeds(seed, seed2));
    for_types!(setup, setup.dtype("T")?, [u8, i8, i16, i32, i64, f32, f64], T => {
        Ok(many(move |_, inputs| Ok(outputs![run::<T>(&stream, inputs)?])))
    })
}

fn run<T: Element>(stream: &Mutex<Philox>, mut inputs: Inputs) -> Result<Tensor> {
    let (image, size) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let &[height, width, channels] = image.shape().dims() else {
        return Err(invalid!("input must be 3-dimensional{}", image.shape()));
    };
    let wanted = wanted_size(&size)?;
    Shape::checked(&[wanted[0], wanted[1], channels as i64])?;
    let rows = room("height", height, wanted[0]);
    let (cols, rows) = (room("width", width, wanted[1])?, rows?);
    let words = {
        let mut stream = stream.lock();
        let part = *stream;
        stream.skip(1);
        part
    };
    let mut words = words.words(0);
    let mut offset = |room: usize| match room {
        0 => 0,
        room => words.next().unwrap_or_default() as usize % (room + 1),
    };
    let left = offset(cols);
    let top = offset(rows);
    part::<T>(&image, [top, left], wanted.map(|size| size as usize))
}

fn wanted_size(size: &Tensor) -> Result<[i64; 2]> {
    if size.shape().rank() != 1 {
        return Err(invalid!("shape_t must be 1-dimensional{}", size.shape()));
    }
    match *size.values::<i64>()? {
        [height, width] => Ok([height, width]),
        _ => Err(invalid!("shape_t must have two elements{}", size.shape())),
    }
}

/// By how much an image is larger than its part.
fn room(what: &str, size: usize, wanted: i64) -> Result<usize> {
    let room = usize::try_from(wanted).ok().and_then(|wanted| size.checked_sub(wanted));
    room.ok_or_else(|| {
        failed_precondition!("{what} must be >= target_{what}: {what} = {size}, target_{what} = {wanted}")
    })
}

fn part<T: Element>(image: &Tensor, [top, left]: [usize; 2], [height, width]: [usize; 2]) -> Result<Tensor> {
    let (line, channels) = (image.shape()[1] * image.shape()[2], image.shape()[2]);
    let mut out = Tensor::scratch::<T>(Shape::from([height, width, channels]))?;
    let values = image.values::<T>()?;
    let length = width * channels;
    if out.elements() > 0 {
        for (y, row) in out.values_mut::<T>()?.chunks_exact_mut(length).enumerate() {
            row.clone_from_slice(&values[(top + y) * line + left * channels..][..length]);
        }
    }
    Ok(out)
}
