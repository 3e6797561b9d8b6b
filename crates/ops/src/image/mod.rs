//! Images: resizing, cropping, colours, boxes, and file formats.

use op::{Ctx, Op};
use pixel::Summed;
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
pub mod projective;
pub mod random_crop;
pub(crate) mod resizing;
pub mod scale_and_translate;
mod webp;

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
    projective::OPS,
    random_crop::OPS,
    scale_and_translate::OPS,
];

/// A tensor of sums that `body` adds to, in its own type in the end.
fn narrowed<T: Summed>(ctx: &Ctx<'_>, shape: Shape, body: impl FnOnce(&mut [T::Sum]) -> Result<()>) -> Result<Tensor> {
    let mut wide = Tensor::zeros::<T::Sum>(&shape)?;
    body(wide.values_mut()?)?;
    if T::DTYPE == T::Sum::DTYPE {
        return Ok(wide);
    }
    let mut out = Tensor::scratch::<T>(shape)?;
    let cost = math::elementwise::cost::SIMPLE;
    math::elementwise::map(ctx.pool(), cost, wide.values::<T::Sum>()?, out.values_mut()?, T::of_sum);
    Ok(out)
}
