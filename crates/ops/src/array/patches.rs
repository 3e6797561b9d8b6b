//! Windows of an image or a volume as channels: ExtractImagePatches, ExtractVolumePatches.

use super::constant::constant;
use super::reshape::{reshape, reshape_to};
use super::transpose::transpose;
use super::units::Unit;
use graph::{AttrValue, Node, Output, ShapeQuery};
use math::Pool;
use math::parallel::split_rows_mut;
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, grads, unary};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ExtractImagePatches(images: T) -> patches: T; ksizes: list(int) >= 4; strides: list(int) >= 4; \
              rates: list(int) >= 4; T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, \
              uint32, uint64, complex64, complex128, bool}; padding: {\"SAME\", \"VALID\"}",
        shape: patches_shape,
        grad: Grad::Rule(image_patches_rule),
        kernel: patches_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExtractVolumePatches(input: T) -> patches: T; ksizes: list(int) >= 5; strides: list(int) >= 5; \
              T: realnumbertype; padding: {\"SAME\", \"VALID\"}",
        shape: patches_shape,
        grad: Grad::Unknown,
        kernel: patches_kernel,
        facts: PLAIN,
    },
];

/// Windows of `ksizes` pixels, `strides` apart, with `rates` from one pixel of a window to the next.
pub fn extract_image_patches(images: &Output, ksizes: &[i64], strides: &[i64], rates: &[i64], padding: &str) -> Output {
    let node = images.scope().op("ExtractImagePatches").input(images).attr("ksizes", ksizes);
    node.attr("strides", strides).attr("rates", rates).attr("padding", padding).output()
}

/// Every pixel gets the sum of the gradients of its copies. To find the copies, the rule extracts the patches of an
/// image that holds the pixel numbers; they start at one, because the border is zero.
fn image_patches_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let (scope, images) = (dy.scope(), op.input(0));
    let shape = super::shape::shape_as(&images, DType::I64);
    let dims = super::pack::unpack(&shape, 4, 0);
    let one = constant(scope, Tensor::scalar(1_i64));
    let end = &dims[1] * &dims[2] + &one;
    let numbers = super::range::range(&one, &end, &one);
    let image = super::pack::pack(scope, &[one.clone(), dims[1].clone(), dims[2].clone(), one], 0);
    let node = scope.op("ExtractImagePatches").input(&reshape(&numbers, &image));
    let names = ["ksizes", "strides", "rates", "padding"];
    let node = names.into_iter().try_fold(node, |node, name| op.attr(name).map(|value| node.attr(name, value)))?;
    let pixels = reshape_to(&node.output(), &[-1]);
    let rest = constant(scope, Tensor::scalar(-1_i64));
    let copies = reshape(dy, &super::pack::pack(scope, &[dims[0].clone(), rest, dims[3].clone()], 0));
    let swapped = constant(scope, Tensor::vector(&[1_i32, 0, 2]));
    let copies = transpose(&copies, &swapped);
    let sums = scope.op("UnsortedSegmentSum").input(&copies).input(&pixels).input(&end).output();
    let vector = |values: [i32; 3]| constant(scope, Tensor::vector(&values));
    let inside = super::slice::slice(&sums, &vector([1, 0, 0]), &vector([-1; 3]));
    Ok(grads![reshape(&transpose(&inside, &swapped), &shape)])
}

/// A window on each spatial axis.
#[derive(Clone, Debug)]
struct Windows {
    sizes: Vec<usize>,
    strides: Vec<usize>,
    rates: Vec<usize>,
    same: bool,
}

impl Windows {
    /// Reads an attribute of a node; the first and last entries, for batch and channels, must be one.
    fn read(list: impl Fn(&str) -> Result<Vec<i64>>, dilated: bool, rank: usize, same: bool) -> Result<Windows> {
        let spatial = |name: &str| {
            let values = list(name)?;
            if values.len() != rank {
                return Err(invalid!("The length of {name} must be {rank}, got {}", values.len()));
            }
            if values[0] != 1 || values[rank - 1] != 1 {
                return Err(invalid!("Only support {name} across space: the first and last must be 1, got {values:?}"));
            }
            if values.iter().any(|&value| !(1..=i64::from(i32::MAX)).contains(&value)) {
                return Err(invalid!("{name} must be positive, got {values:?}"));
            }
            Ok(values[1..rank - 1].iter().map(|&value| value as usize).collect::<Vec<_>>())
        };
        let rates = if dilated { spatial("rates")? } else { vec![1; rank - 2] };
        Ok(Windows { sizes: spatial("ksizes")?, strides: spatial("strides")?, rates, same })
    }

    /// How many windows fit on an axis, and how much border there is before it.
    fn fit(&self, axis: usize, dim: usize) -> (usize, usize) {
        let reach = (self.sizes[axis] - 1).saturating_mul(self.rates[axis]).saturating_add(1);
        let stride = self.strides[axis];
        if !self.same {
            return ((dim + stride).saturating_sub(reach) / stride, 0);
        }
        let count = dim.div_ceil(stride);
        let needed = (count.max(1) - 1).saturating_mul(stride).saturating_add(reach);
        (count, needed.saturating_sub(dim) / 2)
    }
}

fn patches_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rank = if query.def.op == "ExtractVolumePatches" { 5 } else { 4 };
    let Some(dims) = query.inputs[0].dims() else { return Ok(vec![PartialShape::of_rank(rank)]) };
    if dims.len() != rank {
        return Err(invalid!("Shape must be rank {rank} but is rank {}", dims.len()));
    }
    let list = |name: &str| match query.attr(name)? {
        AttrValue::List(list) => Ok(list.ints.clone()),
        _ => Err(invalid!("attr '{name}' is not a list")),
    };
    let same = matches!(query.attr("padding")?, AttrValue::String(text) if &text[..] == b"SAME");
    let windows = Windows::read(list, rank == 4, rank, same)?;
    let mut out = dims.to_vec();
    for axis in 0..rank - 2 {
        if dims[axis + 1] >= 0 {
            out[axis + 1] = windows.fit(axis, dims[axis + 1] as usize).0 as i64;
        }
    }
    if dims[rank - 1] >= 0 {
        out[rank - 1] = windows.sizes.iter().fold(dims[rank - 1], |depth, &size| depth.saturating_mul(size as i64));
    }
    Ok(vec![PartialShape::new(&out)])
}

fn patches_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let rank = if setup.def().op == "ExtractVolumePatches" { 5 } else { 4 };
    let same = setup.string("padding")? == "SAME";
    let windows = Windows::read(|name| setup.ints(name), rank == 4, rank, same)?;
    Ok(unary(move |ctx, images| run_patches(ctx.pool(), &images, &windows)).heavy())
}

fn run_patches(pool: &Pool, images: &Tensor, windows: &Windows) -> Result<Tensor> {
    let (from, rank) = (images.shape(), windows.sizes.len() + 2);
    if from.rank() != rank {
        return Err(invalid!("input must be {rank}-dimensional{from}"));
    }
    let fits: Vec<(usize, usize)> = (0..rank - 2).map(|axis| windows.fit(axis, from[axis + 1])).collect();
    let mut dims = from.to_i64();
    for (axis, fit) in fits.iter().enumerate() {
        dims[axis + 1] = fit.0 as i64;
    }
    dims[rank - 1] = windows.sizes.iter().fold(dims[rank - 1], |depth, &size| depth.saturating_mul(size as i64));
    let shape = Shape::checked(&dims)?;
    let mut out = Tensor::zeros_of(images.dtype(), &shape)?;
    if out.elements() > 0 {
        for_units!(images.dtype(), E => {
            let place = Place { windows, fits: &fits, from, depth: from[rank - 1] };
            place.lay_out(pool, E::of(images)?, E::of_mut(&mut out)?, shape[rank - 1]);
        });
    }
    Ok(out)
}

/// The positions of windows in an image.
struct Place<'a> {
    windows: &'a Windows,
    fits: &'a [(usize, usize)],
    from: &'a Shape,
    depth: usize,
}

impl Place<'_> {
    /// Writes all windows, one after the other. Elements outside the image are not written.
    fn lay_out<E: Unit>(&self, pool: &Pool, src: &[E], dst: &mut [E], width: usize) {
        let cost = width as f32 * 0.1 * size_of::<E>() as f32 + 5.0;
        split_rows_mut(pool, cost, dst, width, |first, chunk| {
            for (row, window) in chunk.chunks_mut(width).enumerate() {
                let mut index = first + row;
                let mut corner = vec![0_isize; self.fits.len()];
                for (axis, &(count, border)) in self.fits.iter().enumerate().rev() {
                    corner[axis] = (index % count * self.windows.strides[axis]) as isize - border as isize;
                    index /= count;
                }
                self.window(src, window, 0, index, &corner);
            }
        });
    }

    /// Writes the part of a window at one index of all axes before `axis`.
    fn window<E: Unit>(&self, src: &[E], dst: &mut [E], axis: usize, index: usize, corner: &[isize]) {
        if axis == corner.len() {
            return dst.clone_from_slice(&src[index * self.depth..][..self.depth]);
        }
        let (size, rate, dim) = (self.windows.sizes[axis], self.windows.rates[axis], self.from[axis + 1]);
        let part = dst.len() / size;
        for (step, dst) in dst.chunks_mut(part).enumerate() {
            let at = usize::try_from(corner[axis] + (step * rate) as isize);
            if let Ok(at) = at
                && at < dim
            {
                self.window(src, dst, axis + 1, index * dim + at, corner);
            }
        }
    }
}
