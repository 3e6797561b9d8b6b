//! Images: resizing, cropping, colours, boxes, and file formats.

use op::{Ctx, Op};
use pixel::Pixel;
use status::Result;
use tensor::{Element, Shape, Tensor};

pub mod area;
pub mod bicubic;
pub mod bilinear;
mod bmp;
pub mod colors;
pub mod combined_nms;
pub mod crop_and_resize;
pub mod decode;
pub mod distorted_box;
pub mod draw_boxes;
pub mod encode;
pub mod glimpse;
pub mod nearest;
pub mod nms;
mod pixel;
mod resizing;

/// The tables of this family.
#[rustfmt::skip] // one per line
pub(crate) const TABLES: &[&[Op]] = &[
    area::OPS,
    bicubic::OPS,
    bilinear::OPS,
    colors::OPS,
    combined_nms::OPS,
    crop_and_resize::OPS,
    decode::OPS,
    distorted_box::OPS,
    draw_boxes::OPS,
    encode::OPS,
    glimpse::OPS,
    nearest::OPS,
    nms::OPS,
];

/// A tensor that `body` writes as float, in its own type in the end.
fn narrowed<T: Pixel>(ctx: &Ctx<'_>, shape: Shape, body: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<Tensor> {
    let mut wide = Tensor::scratch::<f32>(&shape)?;
    body(wide.values_mut()?)?;
    if T::DTYPE == f32::DTYPE {
        return Ok(wide);
    }
    let mut out = Tensor::scratch::<T>(shape)?;
    let cost = math::elementwise::cost::SIMPLE;
    math::elementwise::map(ctx.pool(), cost, wide.values::<f32>()?, out.values_mut()?, T::from_f32);
    Ok(out)
}
