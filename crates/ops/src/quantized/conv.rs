//! QuantizedConv2D.

use super::args::{ranged, with_range};
use super::level::Range;
use crate::nn::conv::static_forward;
use crate::nn::geometry::Attrs;
use graph::ShapeQuery;
use math::conv::Axis;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedConv2D(input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, \
          max_filter: float) -> output: out_type, min_output: float, max_output: float; \
          Tinput: {qint8, quint8, qint32, qint16, quint16}; Tfilter: {qint8, quint8, qint32, qint16, quint16}; \
          out_type: {qint8, quint8, qint32, qint16, quint16} = qint32; strides: list(int); \
          padding: {\"SAME\", \"VALID\"}; dilations: list(int) = [1, 1, 1, 1]",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    stride(query)?;
    Ok(ranged(static_forward(query, 2)?.swap_remove(0)))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let types = (setup.dtype("Tinput")?, setup.dtype("Tfilter")?, setup.dtype("out_type")?);
    if types != (DType::QU8, DType::QU8, DType::QI32) {
        return Err(setup.no_kernel());
    }
    let (stride, same) = (stride(setup)?, setup.string("padding")? == "SAME");
    Ok(many(move |_, mut inputs| {
        let (of_input, of_filter) = checked_ranges(&inputs)?;
        let (input, filter) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let sizes = Sizes::of(input.shape(), filter.shape(), stride, same)?;
        let zeros = [of_input, of_filter].map(|range| range.unclamped::<u8>(0.0) as i32);
        let mut out = Tensor::scratch_of(DType::QI32, sizes.output_shape())?;
        sizes.convolve(input.values()?, filter.values()?, zeros, out.values_mut()?);
        Ok(with_range(out, Range::of_products::<u8, u8, i32>(of_input, of_filter)))
    })
    .heavy())
}

/// The one stride of both axes of the image.
fn stride(attrs: &dyn Attrs) -> Result<i64> {
    let (strides, dilations) = (attrs.integers("strides")?, attrs.integers("dilations")?);
    let &[batch, stride, across, depth] = strides.as_slice() else {
        return Err(invalid!("Sliding window strides field must specify 4 dimensions"));
    };
    if stride != across {
        return Err(invalid!(
            "Current implementation only supports equal length strides in the row and column dimensions."
        ));
    }
    if batch != 1 || depth != 1 {
        return Err(invalid!("Current implementation does not yet support strides in the batch and depth dimensions."));
    }
    let &[batch, rows, cols, depth] = dilations.as_slice() else {
        return Err(invalid!("Dilations field must specify 4 dimensions"));
    };
    if (rows, cols) != (1, 1) {
        return Err(invalid!(
            "Current implementation only supports dilated rate as 1 in the row and column dimensions."
        ));
    }
    if (batch, depth) != (1, 1) {
        return Err(invalid!(
            "Current implementation does not yet support dilations in the batch and depth dimensions."
        ));
    }
    Ok(stride)
}

fn checked_ranges(inputs: &Inputs) -> Result<(Range, Range)> {
    let (input, filter) = (inputs.look(0)?.shape(), inputs.look(1)?.shape());
    if input.contains(&0) {
        return Err(invalid!("Invalid input: Shapes dimension cannot be 0."));
    }
    for (name, shape) in [("input", input), ("filter", filter)] {
        if shape.rank() != 4 {
            return Err(invalid!("{name} must be rank 4 but is rank {}", shape.rank()));
        }
    }
    let bound = |index: usize, name: &str| -> Result<f32> {
        let tensor = inputs.look(index)?;
        match tensor.shape().rank() {
            0 => tensor.to_scalar(),
            rank => Err(invalid!("{name} must be rank 0 but is rank {rank}")),
        }
    };
    let of_input = Range { min: bound(2, "min_input")?, max: bound(3, "max_input")? };
    Ok((of_input, Range { min: bound(4, "min_filter")?, max: bound(5, "max_filter")? }))
}

/// The sizes of a convolution.
struct Sizes {
    batch: usize,
    axes: [Window; 2],
    depth: usize,
    filters: usize,
}

/// How the filter moves along an axis.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// The size of the image.
    pub input: usize,
    /// The size of the filter.
    pub filter: usize,
    /// The size of the result.
    pub output: usize,
    /// The distance between two windows.
    pub stride: usize,
    /// How far before the image the first window begins; the windows are centered, even without padding.
    pub before: i64,
}

impl Window {
    /// The windows of a filter over an image.
    pub fn of(input: usize, filter: usize, stride: i64, same: bool) -> Result<Window> {
        if stride <= 0 {
            return Err(invalid!("Stride must be > 0, but got {stride}"));
        }
        let step = stride as usize;
        let axis = if same { Axis::same(input, filter, step, 1) } else { Some(Axis::valid(input, filter, step, 1)) };
        let Some(output) = axis.and_then(|axis| axis.output()) else {
            return Err(invalid!(
                "Computed output size would be negative: {} [input_size: {input}, effective_filter_size: {filter}, \
                 stride: {stride}]",
                (input as i128 - filter as i128 + i128::from(stride)) / i128::from(stride)
            ));
        };
        let reach = (output as i64 - 1).saturating_mul(stride).saturating_add(filter as i64 - input as i64);
        Ok(Window { input, filter, output, stride: step, before: (reach + i64::from(!same)) / 2 })
    }

    /// The place in the image that an element of the filter meets.
    fn at(&self, output: usize, filter: usize) -> Option<usize> {
        let at = (output * self.stride + filter) as i64 - self.before;
        usize::try_from(at).ok().filter(|&at| at < self.input)
    }
}

impl Sizes {
    fn of(input: &Shape, filter: &Shape, stride: i64, same: bool) -> Result<Sizes> {
        let (depth, filters) = (input[3], filter[3]);
        if depth != filter[2] {
            return Err(invalid!("input and filter must have the same depth: {depth} vs {}", filter[2]));
        }
        if filter[0] * filter[1] == 0 {
            return Err(invalid!("filter patch must contain at least one element"));
        }
        let axis = |axis: usize| Window::of(input[axis + 1], filter[axis], stride, same);
        let sizes = Sizes { batch: input[0], axes: [axis(0)?, axis(1)?], depth, filters };
        let [rows, cols] = sizes.axes;
        for (name, size) in [("output_width", cols.output), ("output_height", rows.output), ("filters", filters)] {
            if size == 0 {
                return Err(invalid!("{name} must be strictly positive"));
            }
        }
        Ok(sizes)
    }

    fn output_shape(&self) -> Shape {
        Shape::from([self.batch, self.axes[0].output, self.axes[1].output, self.filters])
    }

    /// Convolves after the integers of zero are subtracted. Points outside the image have the integer of zero, or the
    /// low bits of it if it does not fit.
    fn convolve(&self, input: &[u8], filter: &[u8], zeros: [i32; 2], out: &mut [i32]) {
        let outside = if zeros[0] < 0 { 0 } else { i32::from(zeros[0] as u8).wrapping_sub(zeros[0]) };
        let [rows, cols] = self.axes;
        out.fill(0);
        for (point, out) in out.chunks_exact_mut(self.filters).enumerate() {
            let (image, row, col) =
                (point / cols.output / rows.output, point / cols.output % rows.output, point % cols.output);
            for (i, weights) in filter.chunks_exact(self.filters).enumerate() {
                let (y, x) = (i / self.depth / cols.filter, i / self.depth % cols.filter);
                let value = match (rows.at(row, y), cols.at(col, x)) {
                    (Some(y), Some(x)) => {
                        let at = (image * rows.input + y) * cols.input + x;
                        i32::from(input[at * self.depth + i % self.depth]).wrapping_sub(zeros[0])
                    }
                    _ => outside,
                };
                for (out, &weight) in out.iter_mut().zip(weights) {
                    *out = out.wrapping_add(value.wrapping_mul(i32::from(weight).wrapping_sub(zeros[1])));
                }
            }
        }
    }
}
