//! Drawing boxes on images.

use super::pixel::Pixel;
use op::shapes::unchanged;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{Tensor, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DrawBoundingBoxes(images: T, boxes: float) -> output: T; T: {float, half} = float",
        shape: unchanged,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "DrawBoundingBoxesV2(images: T, boxes: float, colors: float) -> output: T; T: {float, half} = float",
        shape: unchanged,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
];

/// The colours boxes get in turn, unless others are given.
const COLORS: [[f32; 4]; 10] = [
    [1.0, 1.0, 0.0, 1.0],
    [0.0, 0.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0, 1.0],
    [0.5, 0.0, 0.5, 1.0],
    [0.5, 0.5, 0.0, 1.0],
    [0.5, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.5, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_types!(setup, setup.dtype("T")?, [f32, f16], T => Ok(many(|_, inputs| run::<T>(inputs))))
}

fn run<T: Pixel>(mut inputs: Inputs) -> Result<Outputs> {
    let (mut images, boxes) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let &[batch, height, width, depth] = images.shape().dims() else {
        return Err(invalid!("The rank of the images should be 4"));
    };
    let &[boxes_batch, count, sides] = boxes.shape().dims() else {
        return Err(invalid!("The rank of the boxes tensor should be 3"));
    };
    if batch != boxes_batch {
        return Err(invalid!("The batch sizes should be the same"));
    }
    if ![1, 3, 4].contains(&depth) {
        return Err(invalid!("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)"));
    }
    if sides != 4 {
        return Err(invalid!("The size of the third dimension of the box must be 4. Received: {sides}"));
    }
    let colors = match inputs.len() {
        3 => given_colors(&inputs.tensor(2)?, depth)?,
        _ => Vec::new(),
    };
    let colors = if colors.is_empty() { default_colors(depth) } else { colors };
    let canvas = images.values_mut::<T>()?;
    for (i, sides) in boxes.values::<f32>()?.chunks_exact(4).enumerate() {
        let image = &mut canvas[i / count * height * width * depth..][..height * width * depth];
        let color: Vec<T> = colors[i % count % colors.len()].iter().map(|&x| T::from_f32(x)).collect();
        draw(image, height, width, [sides[0], sides[1], sides[2], sides[3]], &color);
    }
    Ok(outputs![images])
}

fn default_colors(depth: usize) -> Vec<Vec<f32>> {
    match depth {
        1 => vec![vec![1.0]],
        _ => COLORS.iter().map(|color| color[..depth].to_vec()).collect(),
    }
}

fn given_colors(colors: &Tensor, depth: usize) -> Result<Vec<Vec<f32>>> {
    let &[_, channels] = colors.shape().dims() else {
        return Err(invalid!("colors must be a 2-D matrix{}", colors.shape()));
    };
    if channels < depth {
        return Err(invalid!("colors must have equal or more channels than the image provided: {}", colors.shape()));
    }
    Ok(colors.values::<f32>()?.chunks_exact(channels).map(|color| color[..depth].to_vec()).collect())
}

/// Draws the sides of a box that are inside of the image.
fn draw<T: Pixel>(image: &mut [T], height: usize, width: usize, [top, left, bottom, right]: [f32; 4], color: &[T]) {
    if height == 0 || width == 0 {
        return;
    }
    let at = |part: f32, size: usize| (part * (size - 1) as f32) as i64;
    let (top, bottom) = (at(top, height), at(bottom, height));
    let (left, right) = (at(left, width), at(right, width));
    let (rows, cols) = (height as i64, width as i64);
    if top > bottom || left > right || top >= rows || bottom < 0 || left >= cols || right < 0 {
        return;
    }
    let mut dot = |y: i64, x: i64| {
        let pixel = (y as usize * width + x as usize) * color.len();
        image[pixel..pixel + color.len()].copy_from_slice(color);
    };
    for y in [top, bottom].into_iter().filter(|y| (0..rows).contains(y)) {
        (left.max(0)..=right.min(cols - 1)).for_each(|x| dot(y, x));
    }
    for x in [left, right].into_iter().filter(|x| (0..cols).contains(x)) {
        (top.max(0)..=bottom.min(rows - 1)).for_each(|y| dot(y, x));
    }
}
