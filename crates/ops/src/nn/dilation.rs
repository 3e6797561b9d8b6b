//! Grey-scale dilation: the largest sum of image and filter in each window, and its derivatives.

use super::geometry::{Attrs, Geometry, Layout, Padding};
use super::rules::copied;
use graph::{Node, Output};
use math::conv::Axis;
use math::function::Ordered;
use math::pooling::Pooled;
use op::shapes::unchanged;
use op::{Ctx, Grad, Grads, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, binary, grads, many, outputs};
use status::{Result, invalid, unimplemented_op};
use tensor::{Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Dilation2D(input: T, filter: T) -> output: T; T: realnumbertype; strides: list(int) >= 4; \
              rates: list(int) >= 4; padding: {\"SAME\", \"VALID\"}",
        shape,
        grad: Grad::Rule(rule),
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "Dilation2DBackpropInput(input: T, filter: T, out_backprop: T) -> in_backprop: T; T: realnumbertype; \
              strides: list(int) >= 4; rates: list(int) >= 4; padding: {\"SAME\", \"VALID\"}",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: backprop_input_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Dilation2DBackpropFilter(input: T, filter: T, out_backprop: T) -> filter_backprop: T; \
              T: realnumbertype; strides: list(int) >= 4; rates: list(int) >= 4; padding: {\"SAME\", \"VALID\"}",
        shape: as_filter,
        grad: Grad::Unknown,
        kernel: backprop_filter_kernel,
        facts: PLAIN,
    },
];

/// The largest `input + filter` of each window; strides and rates are those of all four axes.
pub fn dilation2d(input: &Output, filter: &Output, strides: [i64; 4], rates: [i64; 4], padding: &str) -> Output {
    let builder = input.scope().op("Dilation2D").input(input).input(filter).attr("strides", strides.to_vec());
    builder.attr("rates", rates.to_vec()).attr("padding", padding).output()
}

fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let [input, filter] = op.inputs()?;
    let by = |name: &str| -> Result<Output> {
        let builder = dy.scope().op(name).input(&input).input(&filter).input(dy);
        Ok(copied(builder, op, &["strides", "rates", "padding"])?.output())
    };
    Ok(grads![by("Dilation2DBackpropInput")?, by("Dilation2DBackpropFilter")?])
}

fn as_filter(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![query.inputs[1].clone()])
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let geometry = geometry(query)?;
    let input = query.inputs[0].merge(&PartialShape::of_rank(4))?;
    let filter = query.inputs[1].merge(&PartialShape::of_rank(3))?;
    let (Some(input), Some(filter)) = (input.dims(), filter.dims()) else { return op::shapes::unknown(query) };
    let depth = PartialShape::new(&input[3..]).merge(&PartialShape::new(&filter[2..]))?;
    Ok(vec![PartialShape::new(&[
        input[0],
        geometry.static_output(1, input[1], filter[0])?,
        geometry.static_output(2, input[2], filter[1])?,
        depth.dim(0).map_or(-1, |depth| depth as i64),
    ])])
}

fn geometry(attrs: &dyn Attrs) -> Result<Geometry> {
    let (strides, rates) = (attrs.integers("strides")?, attrs.integers("rates")?);
    let (&[stride_n, stride_h, stride_w, stride_c], &[rate_n, rate_h, rate_w, rate_c]) = (&strides[..], &rates[..])
    else {
        return Err(match strides.len() {
            4 => invalid!("Input stride (atrous rate) field must specify 4 dimensions"),
            _ => invalid!("Sliding window stride field must specify 4 dimensions"),
        });
    };
    if stride_n != 1 || stride_c != 1 {
        return Err(unimplemented_op!("Stride is only supported across spatial dimensions."));
    }
    if rate_n != 1 || rate_c != 1 {
        return Err(unimplemented_op!("Rate is only supported across spatial dimensions."));
    }
    for (name, size) in [("Stride", stride_h), ("Stride", stride_w), ("Rate", rate_h), ("Rate", rate_w)] {
        if size <= 0 {
            return Err(invalid!("{name} must be > 0, but got {size}"));
        }
    }
    let padding = if attrs.text("padding") == "SAME" { Padding::Same } else { Padding::Valid };
    Ok(Geometry {
        layout: Layout { channels_first: false, spatial: 2 },
        strides: [1, stride_h as usize, stride_w as usize],
        dilations: [1, rate_h as usize, rate_w as usize],
        padding,
    })
}

/// The sizes of a dilation.
struct Sizes {
    batch: usize,
    rows: Axis,
    cols: Axis,
    depth: usize,
    output: Shape,
}

fn sizes(geometry: &Geometry, input: &Shape, filter: &Shape) -> Result<Sizes> {
    let &[batch, height, width, depth] = input.dims() else {
        return Err(invalid!("input must be 4-dimensional{input}"));
    };
    let &[filter_rows, filter_cols, filter_depth] = filter.dims() else {
        return Err(invalid!("filter must be 3-dimensional: {filter}"));
    };
    if depth != filter_depth {
        return Err(invalid!("input and filter must have the same depth: {depth} vs {filter_depth}"));
    }
    if filter_rows == 0 || filter_cols == 0 {
        return Err(invalid!("filter must not have zero rows or columns: {filter}"));
    }
    let [_, rows, cols] = geometry.axes([1, height, width], [1, filter_rows, filter_cols])?;
    let (out_rows, out_cols) = (rows.output().unwrap_or(0), cols.output().unwrap_or(0));
    let output = [batch, out_rows, out_cols, depth].map(|size| size as i64);
    Ok(Sizes { batch, rows, cols, depth, output: Shape::checked(&output)? })
}

/// The positions in the image and in the filter of the largest sum of a window, and that sum.
struct Found<T> {
    image: (usize, usize),
    filter: (usize, usize),
    value: T,
}

impl Sizes {
    /// The largest sum of one channel of one window; of equal ones the first.
    fn find<T: Ordered + Pooled>(&self, input: &[T], filter: &[T], b: usize, at: (usize, usize), d: usize) -> Found<T> {
        let (top, left) = (at.0 * self.rows.stride, at.1 * self.cols.stride);
        let first = (top.saturating_sub(self.rows.pad.0), left.saturating_sub(self.cols.pad.0));
        let mut found = Found { image: first, filter: (0, 0), value: <T as Pooled>::LOWEST };
        for h in 0..self.rows.filter {
            let Some(y) = inside(&self.rows, top, h) else { continue };
            for w in 0..self.cols.filter {
                let Some(x) = inside(&self.cols, left, w) else { continue };
                let pixel = input[((b * self.rows.input + y) * self.cols.input + x) * self.depth + d];
                let value = pixel.add(filter[(h * self.cols.filter + w) * self.depth + d]);
                if value > found.value {
                    found = Found { image: (y, x), filter: (h, w), value };
                }
            }
        }
        found
    }

    /// Calls `body` with the position of every output and of the input that it was computed from.
    fn each<T: Ordered + Pooled>(
        &self,
        input: &[T],
        filter: &[T],
        b: usize,
        mut body: impl FnMut(usize, usize, Found<T>),
    ) {
        let (height, width) = (self.output[1], self.output[2]);
        for point in 0..height * width {
            for d in 0..self.depth {
                let found = self.find(input, filter, b, (point / width, point % width), d);
                body(point * self.depth + d, d, found);
            }
        }
    }
}

fn inside(axis: &Axis, start: usize, tap: usize) -> Option<usize> {
    (start + tap * axis.dilation).checked_sub(axis.pad.0).filter(|&place| place < axis.input)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = geometry(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(move |ctx, input, filter| run::<T>(ctx, &geometry, input, filter)).heavy())
    })
}

fn run<T: Element + Ordered + Pooled>(
    ctx: &Ctx<'_>,
    geometry: &Geometry,
    input: Tensor,
    filter: Tensor,
) -> Result<Tensor> {
    let sizes = sizes(geometry, input.shape(), filter.shape())?;
    let mut out = Tensor::scratch::<T>(&sizes.output)?;
    let (input, filter) = (input.values::<T>()?, filter.values::<T>()?);
    let image = out.elements() / sizes.batch.max(1);
    let cost = (image * sizes.rows.filter * sizes.cols.filter) as f32;
    math::parallel::split_rows_mut(ctx.pool(), cost, out.values_mut::<T>()?, image.max(1), |first, out| {
        for (i, out) in out.chunks_exact_mut(image).enumerate() {
            sizes.each(input, filter, first + i, |at, _, found| out[at] = found.value);
        }
    });
    Ok(out)
}

/// Inputs of a derivative, their sizes checked.
fn backprop_inputs(geometry: &Geometry, inputs: &mut Inputs) -> Result<(Sizes, Tensor, Tensor, Tensor)> {
    let (input, filter, grad) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let sizes = sizes(geometry, input.shape(), filter.shape())?;
    if grad.shape() != &sizes.output {
        return Err(invalid!("out_backprop has incompatible size."));
    }
    Ok((sizes, input, filter, grad))
}

fn backprop_input_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = geometry(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |_, mut inputs| {
        let (sizes, input, filter, grad) = backprop_inputs(&geometry, &mut inputs)?;
        let mut out = Tensor::zeros::<T>(input.shape())?;
        let (input, filter, grad) = (input.values::<T>()?, filter.values::<T>()?, grad.values::<T>()?);
        let values = out.values_mut::<T>()?;
        let image = grad.len() / sizes.batch.max(1);
        for b in 0..sizes.batch {
            sizes.each(input, filter, b, |at, d, Found { image: (y, x), .. }| {
                let place = ((b * sizes.rows.input + y) * sizes.cols.input + x) * sizes.depth + d;
                values[place] = values[place].plus(grad[b * image + at]);
            });
        }
        Ok(outputs![out])
    })
    .heavy()))
}

fn backprop_filter_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let geometry = geometry(setup)?;
    for_reals!(setup, setup.dtype("T")?, T => Ok(many(move |_, mut inputs| {
        let (sizes, input, filter, grad) = backprop_inputs(&geometry, &mut inputs)?;
        let mut out = Tensor::zeros::<T>(filter.shape())?;
        let (input, filter, grad) = (input.values::<T>()?, filter.values::<T>()?, grad.values::<T>()?);
        let values = out.values_mut::<T>()?;
        let image = grad.len() / sizes.batch.max(1);
        for b in 0..sizes.batch {
            sizes.each(input, filter, b, |at, d, Found { filter: (h, w), .. }| {
                let place = (h * sizes.cols.filter + w) * sizes.depth + d;
                values[place] = values[place].plus(grad[b * image + at]);
            });
        }
        Ok(outputs![out])
    })
    .heavy()))
}
