//! Random crops of an image that contain enough of some object.

use math::philox::Philox;
use op::shapes::integers;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use parking_lot::Mutex;
use status::{Result, invalid};
use std::hash::{BuildHasher, RandomState};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SampleDistortedBoundingBox(image_size: T, bounding_boxes: float) -> begin: T, size: T, bboxes: float; \
              T: {uint8, int8, int16, int32, int64}; seed: int = 0; seed2: int = 0; min_object_covered: float = 0.1; \
              aspect_ratio_range: list(float) = [0.75, 1.33]; area_range: list(float) = [0.05, 1.0]; \
              max_attempts: int = 100; use_image_if_no_bounding_boxes: bool = false; stateful",
        shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "SampleDistortedBoundingBoxV2(image_size: T, bounding_boxes: float, min_object_covered: float) -> \
              begin: T, size: T, bboxes: float; T: {uint8, int8, int16, int32, int64}; seed: int = 0; \
              seed2: int = 0; aspect_ratio_range: list(float) = [0.75, 1.33]; \
              area_range: list(float) = [0.05, 1.0]; max_attempts: int = 100; \
              use_image_if_no_bounding_boxes: bool = false; stateful",
        shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "StatelessSampleDistortedBoundingBox(image_size: T, bounding_boxes: float, min_object_covered: float, \
              seed: Tseed) -> begin: T, size: T, bboxes: float; T: {uint8, int8, int16, int32, int64}; \
              Tseed: {int32, int64}; aspect_ratio_range: list(float) = [0.75, 1.33]; \
              area_range: list(float) = [0.05, 1.0]; max_attempts: int = 100; \
              use_image_if_no_bounding_boxes: bool = false",
        shape,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
];

fn shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[3]), PartialShape::new(&[3]), PartialShape::new(&[1, 1, 4])])
}

/// Reads the attributes of a node.
#[derive(Clone)]
struct Config {
    covered: Option<f32>,
    aspects: [f32; 2],
    areas: [f32; 2],
    attempts: u64,
    image_if_none: bool,
    dtype: DType,
}

fn config(setup: &Setup<'_>) -> Result<Config> {
    let pair = |name: &str, what: &str| -> Result<[f32; 2]> {
        let floats = setup.list(name)?.floats.clone();
        floats.try_into().map_err(|_| invalid!("{what} range field must specify 2 dimensions"))
    };
    let covered = setup.float("min_object_covered").ok();
    if covered.is_some_and(|covered| covered.is_nan() || covered < 0.0) {
        return Err(invalid!("Min object covered must be non-negative: {}", covered.unwrap_or(0.0)));
    }
    let (aspects, areas) = (pair("aspect_ratio_range", "Aspect ratio")?, pair("area_range", "Area")?);
    for (what, [low, high]) in [("Aspect ratio", aspects), ("Area", areas)] {
        if !(low > 0.0 && high > 0.0) {
            return Err(invalid!("{what} range must be non-negative: [{low}, {high}]"));
        }
    }
    if areas.iter().any(|&area| area > 1.0) {
        return Err(invalid!("Area range must be less then or equal to 1.0: [{}, {}]", areas[0], areas[1]));
    }
    let attempts = setup.int("max_attempts")?;
    if attempts <= 0 {
        return Err(invalid!("Max attempts must be non-negative: {attempts}"));
    }
    let image_if_none = setup.bool("use_image_if_no_bounding_boxes")?;
    Ok(Config { covered, aspects, areas, attempts: attempts as u64, image_if_none, dtype: setup.dtype("T")? })
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let config = config(setup)?;
    if setup.def().op.starts_with("Stateless") {
        return Ok(many(move |_, mut inputs| {
            let seed = inputs.tensor(3)?;
            let (&[2], &[a, b]) = (seed.shape().dims(), &integers(&seed)?[..]) else {
                return Err(invalid!("seed must have shape [2], not {}", seed.shape()));
            };
            run(&config, Philox::stateless([a as u64, b as u64]), inputs)
        }));
    }
    let (seed, seed2) = match (setup.int("seed")?, setup.int("seed2")?) {
        (0, 0) => (entropy(), entropy()),
        (seed, seed2) => (seed as u64, seed2 as u64),
    };
    let stream = Mutex::new(Philox::from_seeds(seed, seed2));
    Ok(many(move |_, inputs| {
        let part = {
            let mut stream = stream.lock();
            let part = *stream;
            stream.skip(config.attempts);
            part
        };
        run(&config, part, inputs)
    }))
}

pub(super) fn entropy() -> u64 {
    RandomState::new().hash_one(0u64)
}

/// A part of an image, in pixels.
#[derive(Clone, Copy)]
struct Rectangle {
    top: i64,
    left: i64,
    bottom: i64,
    right: i64,
}

impl Rectangle {
    fn area(&self) -> f32 {
        ((self.right - self.left) * (self.bottom - self.top)) as f32
    }

    fn common(&self, other: &Rectangle) -> f32 {
        let (top, left) = (self.top.max(other.top), self.left.max(other.left));
        let (bottom, right) = (self.bottom.min(other.bottom), self.right.min(other.right));
        if left > right || top > bottom { 0.0 } else { Rectangle { top, left, bottom, right }.area() }
    }
}

fn run(config: &Config, stream: Philox, mut inputs: Inputs) -> Result<Outputs> {
    let (size, boxes) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let [height, width] = image_size(&size)?;
    let covered = match config.covered {
        Some(covered) => covered,
        None => min_covered(&inputs.tensor(2)?)?,
    };
    let image = Rectangle { top: 0, left: 0, bottom: height, right: width };
    let objects = objects(config, &boxes, image)?;
    let mut words = stream.words(0);
    let mut random = || words.next().unwrap_or_default();
    let [low, high] = config.aspects;
    let crop = (0..config.attempts).find_map(|_| {
        let aspect = uniform(random()) * (high - low) + low;
        let crop = random_crop(config, height, width, aspect, &mut random)?;
        let enough = |object: &Rectangle| object.area() >= 1.0 && crop.common(object) / object.area() >= covered;
        (crop.area() >= 1.0 && objects.iter().any(enough)).then_some(crop)
    });
    let crop = crop.unwrap_or(image);
    let begin = vector(config.dtype, &[crop.top, crop.left, 0])?;
    let extent = vector(config.dtype, &[crop.bottom - crop.top, crop.right - crop.left, -1])?;
    let part = |at: i64, of: i64| at as f32 / of as f32;
    let sides = [part(crop.top, height), part(crop.left, width), part(crop.bottom, height), part(crop.right, width)];
    Ok(outputs![begin, extent, Tensor::from_slice([1, 1, 4], &sides)?])
}

fn image_size(size: &Tensor) -> Result<[i64; 2]> {
    if size.shape().rank() != 1 {
        return Err(invalid!("image_size must be 1-dimensional{}", size.shape()));
    }
    let &[height, width, _] = &integers(size)?[..] else {
        return Err(invalid!("image_size must contain 3 elements{}", size.shape()));
    };
    for (name, size) in [("height", height), ("width", width)] {
        if !(0..i64::from(i32::MAX)).contains(&size) {
            return Err(invalid!("image {name} cannot be >= int32 max"));
        }
    }
    Ok([height, width])
}

fn min_covered(tensor: &Tensor) -> Result<f32> {
    if tensor.shape().rank() != 0 {
        return Err(invalid!("min_object_covered must be 0-D, got shape {}", tensor.shape()));
    }
    match tensor.to_scalar::<f32>()? {
        covered if covered >= 0.0 => Ok(covered),
        covered => Err(invalid!("Min object covered must be non-negative: {covered}")),
    }
}

fn objects(config: &Config, boxes: &Tensor, image: Rectangle) -> Result<Vec<Rectangle>> {
    let &[_, _, sides] = boxes.shape().dims() else {
        return Err(invalid!("input boxes must be 3-dimensional [batch, num_boxes, coords]: {}", boxes.shape()));
    };
    if sides != 4 {
        return Err(invalid!("bounding boxes must have shape [4] or [*, 4], got {}", boxes.shape()));
    }
    let values = boxes.values::<f32>()?;
    if let Some(wrong) = values.iter().find(|x| !(0.0..=1.0).contains(*x)) {
        return Err(invalid!("All bounding box coordinates must be in [0.0, 1.0]: {wrong}"));
    }
    let place = |part: f32, size: i64| (part * size as f32) as i64;
    let objects: Vec<Rectangle> = values
        .chunks_exact(4)
        .map(|sides| Rectangle {
            top: place(sides[0], image.bottom),
            left: place(sides[1], image.right),
            bottom: place(sides[2], image.bottom),
            right: place(sides[3], image.right),
        })
        .collect();
    match (objects.is_empty(), config.image_if_none) {
        (false, _) => Ok(objects),
        (true, true) => Ok(vec![image]),
        (true, false) => Err(invalid!(
            "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if you wish to not \
             provide any bounding boxes."
        )),
    }
}

/// A random rectangle of this ratio of width to height, with an area in the range; none if there is no such rectangle.
fn random_crop(
    config: &Config,
    height: i64,
    width: i64,
    aspect: f32,
    random: &mut impl FnMut() -> u32,
) -> Option<Rectangle> {
    let [low, high] = config.areas;
    if width <= 0 || height <= 0 || low > high {
        return None;
    }
    let pixels = |part: f32| part * width as f32 * height as f32;
    let (least, most) = (pixels(low), pixels(high));
    let round = |x: f32| x.round_ties_even() as i64;
    let wide = |rows: i64| round(rows as f32 * aspect);
    let mut rows = round((least / aspect).sqrt());
    let mut highest = round((most / aspect).sqrt());
    if wide(highest) > width {
        // The greatest height whose width still fits.
        highest = ((width as f64 + 0.5 - f64::from(1e-7f32)) / f64::from(aspect)) as i64;
        if wide(highest) > width {
            highest -= 1;
        }
    }
    highest = highest.min(height);
    rows = rows.min(highest);
    if rows < highest {
        rows += i64::from(below(random, (highest - rows + 1) as u32));
    }
    // Rounding may have brought the area just out of range.
    let area = |rows: i64| (wide(rows) * rows) as f32;
    if area(rows) < least {
        rows += 1;
    }
    if area(rows) > most {
        rows -= 1;
    }
    let cols = wide(rows);
    if area(rows) < least || area(rows) > most || cols > width || rows > height || cols <= 0 || rows <= 0 {
        return None;
    }
    let top = if rows < height { i64::from(below(random, (height - rows) as u32)) } else { 0 };
    let left = if cols < width { i64::from(below(random, (width - cols) as u32)) } else { 0 };
    Some(Rectangle { top, left, bottom: top + rows, right: left + cols })
}

/// A number from zero to below one.
fn uniform(word: u32) -> f32 {
    f32::from_bits(0x3f80_0000 | (word & 0x7f_ffff)) - 1.0
}

/// A whole number below `n`, all equally probable: words that would favour some are passed over.
fn below(random: &mut impl FnMut() -> u32, n: u32) -> u32 {
    if n.is_power_of_two() {
        return random() & (n - 1);
    }
    let rest = u32::MAX % n.max(1) + 1;
    loop {
        let word = random();
        if word >= rest {
            return word % n.max(1);
        }
    }
}

fn vector(dtype: DType, values: &[i64]) -> Result<Tensor> {
    Ok(match dtype {
        DType::U8 => Tensor::vector(&values.iter().map(|&x| x as u8).collect::<Vec<_>>()),
        DType::I8 => Tensor::vector(&values.iter().map(|&x| x as i8).collect::<Vec<_>>()),
        DType::I16 => Tensor::vector(&values.iter().map(|&x| x as i16).collect::<Vec<_>>()),
        DType::I32 => Tensor::vector(&values.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        _ => Tensor::vector(values),
    })
}
