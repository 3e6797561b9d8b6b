//! Images: resizing, cropping, colours, boxes, and file formats.

use op::{Ctx, Op};
use pixel::Summed;
use status::Result;
use tensor::{Element, Shape, Tensor};

pub(crate) mod area;
pub(crate) mod bicubic;
pub(crate) mod bilinear;
mod bmp;
pub(crate) mod colors;
pub(crate) mod combined_nms;
pub(crate) mod crop_and_resize;
pub(crate) mod decode;
pub(crate) mod distorted_box;
pub(crate) mod draw_boxes;
pub(crate) mod encode;
pub(crate) mod glimpse;
pub(crate) mod nearest;
pub(crate) mod nms;
mod pixel;
pub(crate) mod projective;
pub(crate) mod random_crop;
pub(crate) mod resizing;
pub(crate) mod scale_and_translate;
mod webp;

pub use self::area::resize_area;
pub use self::bicubic::resize_bicubic;
pub use self::bilinear::resize_bilinear;
pub use self::colors::{hsv_to_rgb, rgb_to_hsv};
pub use self::crop_and_resize::crop_and_resize;
pub use self::nearest::resize_nearest_neighbor;
pub use self::projective::image_projective_transform;
pub use self::scale_and_translate::scale_and_translate;

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
