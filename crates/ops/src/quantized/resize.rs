//! QuantizedResizeBilinear.

use super::args::{ranged, with_range};
use super::level::{Level, Range};
use crate::image::resizing::{Mapping, Sizes, resized_shape};
use graph::ShapeQuery;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedResizeBilinear(images: T, size: int32, min: float, max: float) -> resized_images: T, \
          out_min: float, out_max: float; T: {quint8, qint32, float}; align_corners: bool = false; \
          half_pixel_centers: bool = false",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(ranged(resized_shape(query)?.swap_remove(0)))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let align_corners = setup.bool("align_corners")?;
    let mapping = Mapping { align_corners, half_pixel_centers: setup.bool("half_pixel_centers")? };
    match setup.dtype("T")? {
        DType::QU8 => Ok(resizing::<u8>(mapping)),
        DType::QI32 => Ok(resizing::<i32>(mapping)),
        DType::F32 => Ok(resizing::<f32>(mapping)),
        _ => Err(setup.no_kernel()),
    }
}

fn resizing<T: Blended>(mapping: Mapping) -> Kernel {
    many(move |_, mut inputs| {
        let range = Range { min: bound(&inputs, 2, "min")?, max: bound(&inputs, 3, "max")? };
        let (images, size) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let sizes = Sizes::new(&images, &size)?;
        if sizes.original == sizes.resized {
            return Ok(with_range(images, range));
        }
        let mut out = Tensor::scratch_of(images.dtype(), sizes.resized_shape())?;
        resize::<T>(&sizes, mapping, images.values()?, out.values_mut()?);
        Ok(with_range(out, range))
    })
}

fn bound(inputs: &Inputs, index: usize, name: &str) -> Result<f32> {
    let tensor = inputs.look(index)?;
    match tensor.shape().rank() {
        0 => tensor.to_scalar(),
        _ => Err(invalid!("{name} must be a scalar")),
    }
}

/// A resized pixel of one axis: two neighbours in the original, and how far it is from the first.
struct Place<W> {
    lower: usize,
    upper: usize,
    weight: W,
}

fn places<T: Blended>(mapping: Mapping, original: usize, resized: usize) -> Vec<Place<T::Weight>> {
    let scale = mapping.scale(original, resized);
    let place = |at: usize| {
        let at = mapping.place(at, scale);
        let upper = (at.ceil().max(0.0) as usize).min(original - 1);
        Place { lower: (at.floor().max(0.0) as usize).min(upper), upper, weight: T::weight(at - at.floor()) }
    };
    (0..resized).map(place).collect()
}

fn resize<T: Blended>(sizes: &Sizes, mapping: Mapping, images: &[T], out: &mut [T]) {
    let [height, width] = sizes.original;
    let rows = places::<T>(mapping, height, sizes.resized[0]);
    let cols = places::<T>(mapping, width, sizes.resized[1]);
    let (channels, line) = (sizes.channels, width * sizes.channels);
    for (i, out) in out.chunks_exact_mut(cols.len() * channels).enumerate() {
        let (image, row) = (i / rows.len(), &rows[i % rows.len()]);
        let [top, bottom] = [row.lower, row.upper].map(|y| &images[(image * height + y) * line..][..line]);
        for (out, col) in out.chunks_exact_mut(channels).zip(&cols) {
            for (c, out) in out.iter_mut().enumerate() {
                let [left, right] = [col.lower, col.upper].map(|x| x * channels + c);
                *out = T::blend([top[left], top[right], bottom[left], bottom[right]], col.weight, row.weight);
            }
        }
    }
}

/// A number of which pixels are made.
trait Blended: Element {
    /// How much of a neighbour a pixel consists of.
    type Weight: Copy;

    /// The weight of a distance from 0 to 1.
    fn weight(distance: f32) -> Self::Weight;

    /// The mean of four neighbours: top left, top right, bottom left, bottom right.
    fn blend(corners: [Self; 4], x: Self::Weight, y: Self::Weight) -> Self;
}

impl Blended for f32 {
    type Weight = f32;

    fn weight(distance: f32) -> f32 {
        distance
    }

    fn blend([top_left, top_right, bottom_left, bottom_right]: [f32; 4], x: f32, y: f32) -> f32 {
        let top = top_left + (top_right - top_left) * x;
        let bottom = bottom_left + (bottom_right - bottom_left) * x;
        top + (bottom - top) * y
    }
}

/// The blend in fixed-point arithmetic, with `one` for the weight 1; divisions round towards zero.
fn blend_integers(corners: [i64; 4], x: i64, y: i64, one: i64) -> i64 {
    let [top_left, top_right, bottom_left, bottom_right] = corners;
    let top = top_left * one + (top_right - top_left) * x;
    let bottom = bottom_left * one + (bottom_right - bottom_left) * x;
    let sum = top.wrapping_add((bottom.wrapping_sub(top) / one).wrapping_mul(y));
    sum.wrapping_add(one / 2) / one
}

impl Blended for u8 {
    type Weight = i64;

    fn weight(distance: f32) -> i64 {
        (distance * 128.0) as i64
    }

    fn blend(corners: [u8; 4], x: i64, y: i64) -> u8 {
        blend_integers(corners.map(i64::from), x, y, 1 << 7) as u8
    }
}

impl Blended for i32 {
    type Weight = i64;

    fn weight(distance: f32) -> i64 {
        (distance * (1 << 30) as f32) as i64
    }

    fn blend(corners: [i32; 4], x: i64, y: i64) -> i32 {
        blend_integers(corners.map(|corner| corner.float() as i64), x, y, 1 << 30) as i32
    }
}
