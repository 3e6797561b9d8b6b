//! Shared by all resizing ops: checks, scales, and taps, the weights by which pixels of the input contribute to the
//! output.

use op::{Setup, ShapeQuery};
use status::{Result, exhausted, invalid};
use std::ops::AddAssign;
use tensor::{Element, PartialShape, Shape, Tensor};

/// How the coordinates of a resized image map to those of the original.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    /// Aligns the centers of the corner pixels of input and output.
    pub align_corners: bool,
    /// Pixels have their centres at halves.
    pub half_pixel_centers: bool,
}

impl Mapping {
    /// Reads the attributes of a node.
    pub fn of(setup: &Setup<'_>) -> Result<Mapping> {
        let half_pixel_centers = setup.bool("half_pixel_centers").unwrap_or(false);
        let align_corners = setup.bool("align_corners")?;
        if half_pixel_centers && align_corners {
            return Err(invalid!("If half_pixel_centers is True, align_corners must be False."));
        }
        Ok(Mapping { align_corners, half_pixel_centers })
    }

    /// The size of a resized pixel in pixels of the original.
    pub fn scale(&self, original: usize, resized: usize) -> f32 {
        if self.align_corners && original > 1 && resized > 1 {
            (original - 1) as f32 / (resized - 1) as f32
        } else {
            original as f32 / resized as f32
        }
    }

    /// The position of a resized pixel in the original.
    pub fn place(&self, at: usize, scale: f32) -> f32 {
        if self.half_pixel_centers { (at as f32 + 0.5) * scale - 0.5 } else { at as f32 * scale }
    }
}

/// Bytes of the taps of a row or a column.
const TAPS: usize = 4 * size_of::<Tap>();

/// The sizes of a batch of images before and after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The number of images.
    pub batch: usize,
    /// Height and width of the original.
    pub original: [usize; 2],
    /// Height and width after resizing.
    pub resized: [usize; 2],
    /// The number of channels.
    pub channels: usize,
}

impl Sizes {
    /// Reads images and a tensor of two sizes.
    pub fn new(images: &Tensor, size: &Tensor) -> Result<Sizes> {
        let &[batch, height, width, channels] = images.shape().dims() else {
            return Err(invalid!("input must be 4-dimensional{}", images.shape()));
        };
        if channels == 0 {
            return Err(invalid!("image must have at least one channel"));
        }
        if height == 0 || width == 0 {
            return Err(invalid!("input image must be of non-zero size"));
        }
        if height > i32::MAX as usize || width > i32::MAX as usize {
            return Err(invalid!("input sizes must be between 0 and max int32"));
        }
        let [rows, cols] = two_sizes(size)?;
        if rows <= 0 || cols <= 0 {
            return Err(invalid!("output dimensions must be positive"));
        }
        let resized = [rows as usize, cols as usize];
        let shape = Shape::checked(&[batch as i64, rows, cols, channels as i64])?;
        // The taps of rows and columns are made before the result, so memory for them is asked for first.
        Tensor::scratch::<u8>([(resized[0] + resized[1]) * TAPS])
            .map_err(|_| exhausted!("OOM when allocating tensor with shape{shape} and type float"))?;
        Ok(Sizes { batch, original: [height, width], resized, channels })
    }

    /// Reads gradients of a resized image and the original.
    pub fn of_grad(grads: &Tensor, original: &Tensor) -> Result<Sizes> {
        let &[batch, rows, cols, channels] = grads.shape().dims() else {
            return Err(invalid!("input_grad must be 4-dimensional{}", grads.shape()));
        };
        if rows == 0 || cols == 0 {
            return Err(invalid!("resized dimensions must be positive"));
        }
        let &[_, height, width, _] = original.shape().dims() else {
            return Err(invalid!("original_image must be 4-dimensional{}", original.shape()));
        };
        if height == 0 || width == 0 {
            return Err(invalid!("original dimensions must be positive"));
        }
        Shape::checked(&[batch, height, width, channels].map(|size| size as i64))?;
        Ok(Sizes { batch, original: [height, width], resized: [rows, cols], channels })
    }

    /// The shape of the resized images.
    pub fn resized_shape(&self) -> Shape {
        Shape::from([self.batch, self.resized[0], self.resized[1], self.channels])
    }

    /// The shape of the original images.
    pub fn original_shape(&self) -> Shape {
        Shape::from([self.batch, self.original[0], self.original[1], self.channels])
    }
}

/// Height and width out of a tensor.
pub(crate) fn two_sizes(size: &Tensor) -> Result<[i64; 2]> {
    if size.shape().rank() != 1 {
        return Err(invalid!("shape_t must be 1-dimensional{}", size.shape()));
    }
    match *size.values::<i32>()? {
        [rows, cols] => Ok([rows.into(), cols.into()]),
        _ => Err(invalid!("shape_t must have two elements{}", size.shape())),
    }
}

/// A pixel of an axis that contributes to a resized pixel, and its weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tap {
    /// The position in the original.
    pub at: usize,
    /// How much of it.
    pub weight: f32,
}

/// Resized images of float, out of the taps of each row and column: `N` for each pixel.
pub(crate) fn by_taps<T: super::pixel::Pixel, const N: usize>(
    pool: &math::Pool,
    sizes: &Sizes,
    rows: &[[Tap; N]],
    cols: &[[Tap; N]],
    images: &[T],
    out: &mut [f32],
) {
    let [height, width] = sizes.original;
    let (channels, resized) = (sizes.channels, sizes.resized[0]);
    let line = cols.len() * channels;
    let cost = (line * N * N) as f32;
    math::parallel::split_rows_mut(pool, cost, out, line, |first, out| {
        for (i, out) in out.chunks_exact_mut(line).enumerate() {
            let (image, row) = ((first + i) / resized, (first + i) % resized);
            let lines =
                rows[row].map(|tap| &images[(image * height + tap.at) * width * channels..][..width * channels]);
            for (out, taps) in out.chunks_exact_mut(channels).zip(cols) {
                for (c, out) in out.iter_mut().enumerate() {
                    let mut sum = 0.0;
                    for (line, tap) in lines.iter().zip(&rows[row]) {
                        let inner =
                            taps.iter().fold(0.0, |sum, tap| sum + line[tap.at * channels + c].to_f32() * tap.weight);
                        sum += inner * tap.weight;
                    }
                    *out = sum;
                }
            }
        }
    });
}

/// The derivative of `by_taps` by the images: every gradient goes back along its taps, and `share` is what arrives of
/// it by the weights of a row and a column. Adds to `out`.
pub(crate) fn grad_by_taps<S: Element + AddAssign, const N: usize>(
    pool: &math::Pool,
    sizes: &Sizes,
    rows: &[[Tap; N]],
    cols: &[[Tap; N]],
    grads: &[f32],
    share: impl Fn(f32, f32, f32) -> S + Sync,
    out: &mut [S],
) {
    let [height, width] = sizes.original;
    let channels = sizes.channels;
    let (image, each) = (height * width * channels, rows.len() * cols.len() * channels);
    math::parallel::split_rows_mut(pool, (each * N * N) as f32, out, image.max(1), |first, out| {
        for (i, out) in out.chunks_exact_mut(image).enumerate() {
            let grads = &grads[(first + i) * each..][..each];
            for (point, grad) in grads.chunks_exact(channels).enumerate() {
                for row in &rows[point / cols.len()] {
                    for col in &cols[point % cols.len()] {
                        let out = &mut out[(row.at * width + col.at) * channels..][..channels];
                        let pairs = out.iter_mut().zip(grad);
                        pairs.for_each(|(out, &grad)| *out += share(grad, row.weight, col.weight));
                    }
                }
            }
        }
    });
}

/// The static shape of resized images; their size is input 1.
pub(crate) fn resized_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    sized_shape(query, 1)
}

/// The static shape of images whose new height and width are the input `size`.
pub(crate) fn sized_shape(query: &ShapeQuery<'_>, size: usize) -> Result<Vec<PartialShape>> {
    let images = query.inputs[0].merge(&PartialShape::of_rank(4))?;
    let dims = images.dims().unwrap_or(&[-1; 4]);
    let size = query.constants.get(size).and_then(Option::as_ref).map(op::shapes::integers).transpose()?;
    let [rows, cols] = match size.as_deref() {
        Some(&[rows, cols]) => [rows, cols],
        _ => [-1, -1],
    };
    Ok(vec![PartialShape::new(&[dims[0], rows, cols, dims[3]])])
}

/// The static shape of the gradient by original images, which are input 1.
pub(crate) fn grad_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].clone()])
}
