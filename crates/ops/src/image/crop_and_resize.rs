//! Crops images at boxes and resizes the crops to one size, with derivatives by images and boxes.

use super::pixel::{Pixel, Summed};
use crate::nn::{copied, shape_of};
use graph::{Node, Output};
use op::shapes::shape_from_input;
use op::{Ctx, Grad, Grads, Inputs, Kernel, NoGradient, Op, Outputs, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid, out_of_range};
use std::ops::AddAssign;
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CropAndResize(image: T, boxes: float, box_ind: int32, crop_size: int32) -> crops: float; \
              T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; \
              method: {\"bilinear\", \"nearest\"} = \"bilinear\"; extrapolation_value: float = 0.0",
        shape: forward_shape,
        grad: Grad::Rule(rule),
        kernel: forward_kernel,
        facts: PLAIN,
    },
    Op {
        def: "CropAndResizeGradImage(grads: float, boxes: float, box_ind: int32, image_size: int32) -> output: T; \
              T: {float, half, double}; method: {\"bilinear\", \"nearest\"} = \"bilinear\"",
        shape: grad_image_shape,
        grad: Grad::Unknown,
        kernel: grad_image_kernel,
        facts: PLAIN,
    },
    Op {
        def: "CropAndResizeGradBoxes(grads: float, image: T, boxes: float, box_ind: int32) -> output: float; \
              T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; \
              method: {\"bilinear\"} = \"bilinear\"",
        shape: grad_boxes_shape,
        grad: Grad::Unknown,
        kernel: grad_boxes_kernel,
        facts: PLAIN,
    },
];

/// Crops at `[y1, x1, y2, x2]` boxes in parts of the image, each of image `box_ind`, resized linearly.
pub fn crop_and_resize(image: &Output, boxes: &Output, box_ind: &Output, crop_size: &Output) -> Output {
    image.scope().op("CropAndResize").input(image).input(boxes).input(box_ind).input(crop_size).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [image, boxes, box_ind, _] = op.inputs()?;
    let differentiable = matches!(image.dtype(), DType::F16 | DType::F32 | DType::F64);
    let by_image = differentiable.then(|| {
        let builder = dy.scope().op("CropAndResizeGradImage").input(dy).input(&boxes).input(&box_ind);
        copied(builder.input(&shape_of(&image)), op, &["T", "method"]).map(|builder| builder.output())
    });
    let builder = dy.scope().op("CropAndResizeGradBoxes").input(dy).input(&image).input(&boxes).input(&box_ind);
    Ok(grads![by_image.transpose()?, builder.output(), NoGradient, NoGradient])
}

fn forward_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let dim =
        |input: usize, axis: usize| query.inputs[input].dims().and_then(|dims| dims.get(axis).copied()).unwrap_or(-1);
    let size = query.constants.get(3).and_then(Option::as_ref).map(op::shapes::integers).transpose()?;
    let [rows, cols] = match size.as_deref() {
        Some(&[rows, cols]) => [rows, cols],
        _ => [-1, -1],
    };
    Ok(vec![PartialShape::new(&[dim(1, 0), rows, cols, dim(0, 3)])])
}

fn grad_image_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![shape_from_input(query, 3).merge(&PartialShape::of_rank(4))?])
}

fn grad_boxes_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[2].clone()])
}

/// Boxes and the image of each.
struct Boxes {
    boxes: Tensor,
    images: Tensor,
}

impl Boxes {
    fn new(boxes: Tensor, images: Tensor, batch: usize) -> Result<Boxes> {
        if boxes.elements() == 0 && images.elements() == 0 {
            return Ok(Boxes { boxes: Tensor::zeros::<f32>([0, 4])?, images: Tensor::zeros::<i32>([0])? });
        }
        let &[count, columns] = boxes.shape().dims() else {
            return Err(invalid!("boxes must be 2-D{}", boxes.shape()));
        };
        if columns != 4 {
            return Err(invalid!("boxes must have 4 columns"));
        }
        if images.shape().rank() != 1 {
            return Err(invalid!("box_index must be 1-D{}", images.shape()));
        }
        if images.elements() != count {
            return Err(invalid!("box_index has incompatible shape"));
        }
        if images.values::<i32>()?.iter().any(|&image| image < 0 || image as usize >= batch) {
            return Err(out_of_range!("box_index has values outside [0, batch_size)"));
        }
        Ok(Boxes { boxes, images })
    }

    fn len(&self) -> usize {
        self.images.elements()
    }

    /// Box `i` as `[y1, x1, y2, x2]`, and its image.
    fn get(&self, i: usize) -> Result<([f32; 4], usize)> {
        let sides = &self.boxes.values::<f32>()?[i * 4..][..4];
        Ok(([sides[0], sides[1], sides[2], sides[3]], self.images.values::<i32>()?[i] as usize))
    }
}

/// The positions of the pixels of a crop along one axis of the image; none if outside.
fn places(start: f32, end: f32, original: usize, crop: usize) -> Vec<Option<f32>> {
    let last = (original - 1) as f32;
    let scale = if crop > 1 { (end - start) * last / (crop - 1) as f32 } else { 0.0 };
    let place = |at: usize| match crop {
        1 => 0.5 * (start + end) * last,
        _ => start * last + at as f32 * scale,
    };
    (0..crop).map(place).map(|place| (0.0..=last).contains(&place).then_some(place)).collect()
}

fn forward_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let nearest = setup.string("method")? == "nearest";
    let outside = setup.float("extrapolation_value")?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(many(move |ctx, inputs| run_forward::<T>(ctx, inputs, nearest, outside)).heavy())
    })
}

fn run_forward<T: Pixel>(ctx: &Ctx<'_>, mut inputs: Inputs, nearest: bool, outside: f32) -> Result<Outputs> {
    let (image, boxes, images) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let &[batch, height, width, depth] = image.shape().dims() else {
        return Err(invalid!("input image must be 4-D{}", image.shape()));
    };
    if height == 0 || width == 0 {
        return Err(invalid!("image dimensions must be positive"));
    }
    if boxes.shape().rank() != 2 {
        return Err(invalid!("boxes must be 2-D, got: {}", boxes.shape()));
    }
    if images.shape().rank() != 1 {
        return Err(invalid!("box_indices must be rank 1 but is shape {}", images.shape()));
    }
    let boxes = Boxes::new(boxes, images, batch)?;
    let [rows, cols] = crop_size(&inputs.tensor(3)?)?;
    if boxes.boxes.values::<f32>()?.iter().any(|side| !side.is_finite()) {
        return Err(invalid!("Boxes contains at least one element that is not finite"));
    }
    let shape = Shape::checked(&[boxes.len(), rows, cols, depth].map(|size| size as i64))?;
    let mut out = Tensor::scratch::<f32>(shape)?;
    let values = image.values::<T>()?;
    let all = (0..boxes.len()).map(|i| boxes.get(i)).collect::<Result<Vec<_>>>()?;
    let crop = rows * cols * depth;
    math::parallel::split_rows_mut(
        ctx.pool(),
        4.0 * crop as f32,
        out.values_mut::<f32>()?,
        crop.max(1),
        |first, out| {
            for (i, out) in out.chunks_exact_mut(crop).enumerate() {
                let ([y1, x1, y2, x2], number) = all[first + i];
                let image = &values[number * height * width * depth..][..height * width * depth];
                let (ys, xs) = (places(y1, y2, height, rows), places(x1, x2, width, cols));
                for (point, out) in out.chunks_exact_mut(depth).enumerate() {
                    match (ys[point / cols], xs[point % cols]) {
                        (Some(y), Some(x)) => sample(image, width, depth, nearest, (y, x), out),
                        _ => out.fill(outside),
                    }
                }
            }
        },
    );
    Ok(outputs![out])
}

/// The image at a place between pixels.
fn sample<T: Pixel>(image: &[T], width: usize, depth: usize, nearest: bool, (y, x): (f32, f32), out: &mut [f32]) {
    let pixel = |y: usize, x: usize| &image[(y * width + x) * depth..][..depth];
    if nearest {
        let pixel = pixel(y.round() as usize, x.round() as usize);
        return out.iter_mut().zip(pixel).for_each(|(out, pixel)| *out = pixel.to_f32());
    }
    let (top, left) = (y.floor(), x.floor());
    let (down, across) = (y - top, x - left);
    let corner = |y: f32, x: f32| pixel(y as usize, x as usize);
    let corners = [corner(top, left), corner(top, x.ceil()), corner(y.ceil(), left), corner(y.ceil(), x.ceil())];
    for (d, out) in out.iter_mut().enumerate() {
        let [top_left, top_right, bottom_left, bottom_right] = corners.map(|pixel| pixel[d].to_f32());
        let top = top_left + (top_right - top_left) * across;
        let bottom = bottom_left + (bottom_right - bottom_left) * across;
        *out = top + (bottom - top) * down;
    }
}

fn crop_size(size: &Tensor) -> Result<[usize; 2]> {
    if size.shape().rank() != 1 {
        return Err(invalid!("crop_size must be 1-D{}", size.shape()));
    }
    match *size.values::<i32>()? {
        [rows, cols] if rows > 0 && cols > 0 => Ok([rows as usize, cols as usize]),
        [_, _] => Err(invalid!("crop dimensions must be positive")),
        _ => Err(invalid!("crop_size must have two elements{}", size.shape())),
    }
}

fn grad_image_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let nearest = setup.string("method")? == "nearest";
    for_types!(setup, setup.dtype("T")?, [f32, f64, tensor::f16], T => {
        Ok(many(move |ctx, inputs| run_grad_image::<T>(ctx, inputs, nearest)).heavy())
    })
}

fn run_grad_image<T: Summed>(ctx: &Ctx<'_>, mut inputs: Inputs, nearest: bool) -> Result<Outputs> {
    let (grads, boxes, images, size) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?, inputs.tensor(3)?);
    let [count, rows, cols, depth] = checked_grads(&grads)?;
    if size.shape().rank() != 1 {
        return Err(invalid!("image_size must be 1-D{}", size.shape()));
    }
    let &[batch, height, width, channels] = size.values::<i32>()? else {
        return Err(invalid!("image_size must have 4 elements{}", size.shape()));
    };
    if height <= 0 || width <= 0 {
        return Err(invalid!("image dimensions must be positive"));
    }
    if channels < 0 || channels as usize != depth {
        return Err(invalid!("image_size and grads are incompatible"));
    }
    let shape = Shape::checked(&[batch, height, width, channels].map(i64::from))?;
    let boxes = Boxes::new(boxes, images, shape[0])?;
    if boxes.len() != count {
        return Err(invalid!("boxes and grads have incompatible shape"));
    }
    let (height, width) = (shape[1], shape[2]);
    let values = grads.values::<f32>()?;
    let out = super::narrowed::<T>(ctx, shape, |out| {
        for i in 0..count {
            let ([y1, x1, y2, x2], number) = boxes.get(i)?;
            let image = &mut out[number * height * width * depth..][..height * width * depth];
            let (ys, xs) = (places(y1, y2, height, rows), places(x1, x2, width, cols));
            let grads = values[i * rows * cols * depth..][..rows * cols * depth].chunks_exact(depth.max(1));
            for (point, grad) in grads.enumerate() {
                if let (Some(y), Some(x)) = (ys[point / cols], xs[point % cols]) {
                    scatter(image, width, depth, nearest, (y, x), grad);
                }
            }
        }
        Ok(())
    })?;
    Ok(outputs![out])
}

fn checked_grads(grads: &Tensor) -> Result<[usize; 4]> {
    let &[count, rows, cols, depth] = grads.shape().dims() else {
        return Err(invalid!("grads image must be 4-D{}", grads.shape()));
    };
    if rows == 0 || cols == 0 {
        return Err(invalid!("grads dimensions must be positive"));
    }
    Ok([count, rows, cols, depth])
}

/// Adds a gradient to the pixels around a place.
fn scatter<S>(image: &mut [S], width: usize, depth: usize, nearest: bool, (y, x): (f32, f32), grad: &[f32])
where
    S: AddAssign + From<f32>,
{
    let mut add = |y: f32, x: f32, row: f32, col: f32| {
        let pixel = &mut image[(y as usize * width + x as usize) * depth..][..depth];
        pixel.iter_mut().zip(grad).for_each(|(pixel, grad)| *pixel += S::from(col * (row * grad)));
    };
    if nearest {
        return add(y.round(), x.round(), 1.0, 1.0);
    }
    let (top, left) = (y.floor(), x.floor());
    let (down, across) = (y - top, x - left);
    add(top, left, 1.0 - down, 1.0 - across);
    add(top, x.ceil(), 1.0 - down, across);
    add(y.ceil(), left, down, 1.0 - across);
    add(y.ceil(), x.ceil(), down, across);
}

fn grad_boxes_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(|_, inputs| run_grad_boxes::<T>(inputs)).heavy()))
}

fn run_grad_boxes<T: Pixel>(mut inputs: Inputs) -> Result<Outputs> {
    let (grads, image) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let [count, rows, cols, depth] = checked_grads(&grads)?;
    let &[batch, height, width, channels] = image.shape().dims() else {
        return Err(invalid!("input image must be 4-D{}", image.shape()));
    };
    if height == 0 || width == 0 {
        return Err(invalid!("image dimensions must be positive"));
    }
    if channels != depth {
        return Err(invalid!("image, grads depth differ"));
    }
    let boxes = Boxes::new(inputs.tensor(2)?, inputs.tensor(3)?, batch)?;
    if boxes.len() != count {
        return Err(invalid!("boxes and grads have incompatible shape"));
    }
    let (values, grads) = (image.values::<T>()?, grads.values::<f32>()?);
    let mut out = Tensor::zeros::<f32>([count, 4])?;
    for (i, out) in out.values_mut::<f32>()?.chunks_exact_mut(4).enumerate() {
        let ([y1, x1, y2, x2], number) = boxes.get(i)?;
        let image = &values[number * height * width * depth..][..height * width * depth];
        let (ys, xs) = (places(y1, y2, height, rows), places(x1, x2, width, cols));
        let grads = grads[i * rows * cols * depth..][..rows * cols * depth].chunks_exact(depth.max(1));
        for (point, grad) in grads.enumerate() {
            let (Some(y), Some(x)) = (ys[point / cols], xs[point % cols]) else { continue };
            let [by_y, by_x] = slopes(image, width, depth, (y, x), grad);
            let [near, far] = shares(point / cols, rows, height);
            out[0] += by_y * near;
            out[2] += by_y * far;
            let [near, far] = shares(point % cols, cols, width);
            out[1] += by_x * near;
            out[3] += by_x * far;
        }
    }
    Ok(outputs![out])
}

/// How the image changes along both axes at a place, weighted by the gradient.
fn slopes<T: Pixel>(image: &[T], width: usize, depth: usize, (y, x): (f32, f32), grad: &[f32]) -> [f32; 2] {
    let (top, left) = (y.floor(), x.floor());
    let (down, across) = (y - top, x - left);
    let corner = |y: f32, x: f32| &image[(y as usize * width + x as usize) * depth..][..depth];
    let corners = [corner(top, left), corner(top, x.ceil()), corner(y.ceil(), left), corner(y.ceil(), x.ceil())];
    let mut slopes = [0.0; 2];
    for (d, grad) in grad.iter().enumerate() {
        let [top_left, top_right, bottom_left, bottom_right] = corners.map(|pixel| pixel[d].to_f32());
        slopes[0] += grad * ((1.0 - across) * (bottom_left - top_left) + across * (bottom_right - top_right));
        slopes[1] += grad * ((1.0 - down) * (top_right - top_left) + down * (bottom_right - bottom_left));
    }
    slopes
}

/// The derivative of a position by the near or the far side of its box.
fn shares(at: usize, crop: usize, original: usize) -> [f32; 2] {
    let last = (original - 1) as f32;
    if crop == 1 {
        return [0.5 * last, 0.5 * last];
    }
    let far = at as f32 * (last / (crop - 1) as f32);
    [last - far, far]
}
