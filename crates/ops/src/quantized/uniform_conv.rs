//! UniformQuantizedConvolution and UniformQuantizedConvolutionHybrid.

use super::dimension_numbers::{DimensionNumbers, Fields, parse};
use super::uniform_dot::{Quantized, channels, check_scalars};
use super::uniform_scale::{Limits, Scales, check_positive, check_shapes};
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UniformQuantizedConvolution(lhs: Tin, rhs: Tin, lhs_scales: float, lhs_zero_points: int32, \
              rhs_scales: float, rhs_zero_points: int32, output_scales: float, output_zero_points: int32) -> \
              output: Tout; Tin: {qint8}; Tout: {qint32}; window_strides: list(int) = []; padding: string; \
              explicit_padding: list(int) = []; lhs_dilation: list(int) = []; rhs_dilation: list(int) = []; \
              batch_group_count: int = 1; feature_group_count: int = 1; dimension_numbers: string = \"\"; \
              lhs_quantization_axis: int = -1; lhs_quantization_min_val: int; lhs_quantization_max_val: int; \
              rhs_quantization_axis: int = -1; rhs_quantization_min_val: int; rhs_quantization_max_val: int; \
              output_quantization_axis: int = -1; output_quantization_min_val: int; \
              output_quantization_max_val: int",
        shape,
        grad: Grad::Unknown,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "UniformQuantizedConvolutionHybrid(lhs: Tlhs, rhs: Trhs, rhs_scales: float, rhs_zero_points: int32) -> \
              output: Tout; Tlhs: {float}; Trhs: {qint8}; Tout: {float}; window_strides: list(int) = []; \
              padding: string; explicit_padding: list(int) = []; lhs_dilation: list(int) = []; \
              rhs_dilation: list(int) = []; batch_group_count: int = 1; feature_group_count: int = 1; \
              dimension_numbers: string = \"\"; rhs_quantization_axis: int = -1; rhs_quantization_min_val: int; \
              rhs_quantization_max_val: int",
        shape,
        grad: Grad::Unknown,
        kernel: hybrid_kernel,
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let rank = query.inputs[0].rank().or(query.inputs[1].rank());
    Ok(vec![rank.map_or(PartialShape::unknown(), PartialShape::of_rank)])
}

/// The attributes of a convolution.
struct Attributes {
    strides: Vec<i64>,
    lhs_dilation: Vec<i64>,
    rhs_dilation: Vec<i64>,
    padding: String,
    explicit: Vec<i64>,
    batch_groups: i64,
    feature_groups: i64,
    fields: Fields,
    rhs_axis: i64,
}

impl Attributes {
    fn of(setup: &Setup<'_>) -> Result<Attributes> {
        let (padding, explicit) = (setup.string("padding")?, setup.ints("explicit_padding")?);
        if !["EXPLICIT", "SAME", "VALID"].contains(&padding.as_str()) {
            return Err(invalid!("padding Attr must be one of [EXPLICIT | SAME | VALID], but given: {padding}"));
        }
        if padding != "EXPLICIT" && !explicit.is_empty() {
            return Err(invalid!(
                "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. Given padding {padding} and \
                 explicit_padding of size {}",
                explicit.len()
            ));
        }
        Ok(Attributes {
            strides: setup.ints("window_strides")?,
            lhs_dilation: setup.ints("lhs_dilation")?,
            rhs_dilation: setup.ints("rhs_dilation")?,
            padding,
            explicit,
            batch_groups: setup.int("batch_group_count")?,
            feature_groups: setup.int("feature_group_count")?,
            fields: parse(&setup.bytes("dimension_numbers")?)?,
            rhs_axis: setup.int("rhs_quantization_axis")?,
        })
    }

    fn check_rhs_axis(&self, plan: &Plan) -> Result<()> {
        if self.rhs_axis == -1 || self.rhs_axis == plan.numbers.kernel.outer as i64 {
            return Ok(());
        }
        Err(invalid!(
            "rhs_quantization_axis Attr must be -1 (per-tensor) or \
             dimension_numbers.kernel_output_feature_dimension (per-channel)."
        ))
    }
}

/// One number for each axis of the image, ones if there are none.
fn per_axis(name: &str, values: &[i64], spatial: usize) -> Result<Vec<usize>> {
    if values.is_empty() {
        return Ok(vec![1; spatial]);
    }
    if values.len() != spatial {
        return Err(invalid!("Size of {name} Attr must be dims - 2."));
    }
    if values.iter().any(|&value| value < 1) {
        let values: Vec<String> = values.iter().map(i64::to_string).collect();
        return Err(invalid!("All elements of {name} must be >= 1. Given {}", values.join(", ")));
    }
    Ok(values.iter().map(|&value| value as usize).collect())
}

/// An axis of the image.
#[derive(Clone, Copy)]
struct Axis {
    input: usize,
    filter: usize,
    output: usize,
    stride: usize,
    lhs_dilation: usize,
    rhs_dilation: usize,
    before: usize,
}

impl Axis {
    /// The place in the input that an element of the filter meets; none where padding or a gap is.
    fn at(&self, output: usize, filter: usize) -> Option<usize> {
        let at = output.checked_mul(self.stride)?.checked_add(filter.checked_mul(self.rhs_dilation)?)?;
        let at = at.checked_sub(self.before)?;
        (at.is_multiple_of(self.lhs_dilation) && at / self.lhs_dilation < self.input).then_some(at / self.lhs_dilation)
    }
}

/// The size with gaps between the elements.
fn dilated(size: usize, dilation: usize) -> i128 {
    if size == 0 { 0 } else { (size as i128 - 1) * dilation as i128 + 1 }
}

/// A convolution of tensors of given shapes, whose axes are in order: outer, channels, image.
struct Plan {
    numbers: DimensionNumbers,
    axes: Vec<Axis>,
    /// Images of the input, and of the output.
    batch: [usize; 2],
    /// Channels of the input, of a filter, and of the output.
    features: [usize; 3],
    batch_groups: usize,
    feature_groups: usize,
    output: Shape,
}

impl Plan {
    fn of(attributes: &Attributes, lhs: &Shape, rhs: &Shape) -> Result<Plan> {
        if lhs.rank() != rhs.rank() {
            return Err(invalid!("lhs and rhs must have same dims. Given lhs and rhs of shapes: {lhs}{rhs}"));
        }
        let rank = lhs.rank();
        if rank <= 2 {
            return Err(invalid!("lhs and rhs shape dims must be at least 3. Given: {rank}"));
        }
        let strides = per_axis("window_strides", &attributes.strides, rank - 2)?;
        let lhs_dilation = per_axis("lhs_dilation", &attributes.lhs_dilation, rank - 2)?;
        let rhs_dilation = per_axis("rhs_dilation", &attributes.rhs_dilation, rank - 2)?;
        let numbers = DimensionNumbers::of(&attributes.fields, rank)?;
        let features = [lhs[numbers.input.feature], rhs[numbers.kernel.feature], rhs[numbers.kernel.outer]];
        let batch = lhs[numbers.input.outer];
        let (batch_groups, feature_groups) = groups(attributes, batch, features)?;
        let mut axes = Vec::with_capacity(rank - 2);
        for i in 0..rank - 2 {
            let axis = Axis {
                input: lhs[numbers.input.spatial[i]],
                filter: rhs[numbers.kernel.spatial[i]],
                output: 0,
                stride: strides[i],
                lhs_dilation: lhs_dilation[i],
                rhs_dilation: rhs_dilation[i],
                before: 0,
            };
            axes.push(padded(attributes, axis, i, rank)?);
        }
        let mut dims = vec![0; rank];
        dims[numbers.output.outer] = (batch / batch_groups) as i64;
        dims[numbers.output.feature] = features[2] as i64;
        for (axis, &place) in axes.iter().zip(&numbers.output.spatial) {
            dims[place] = axis.output as i64;
        }
        let output = Shape::checked(&dims)?;
        Ok(Plan { numbers, axes, batch: [batch, batch / batch_groups], features, batch_groups, feature_groups, output })
    }
}

fn groups(attributes: &Attributes, batch: usize, [input, filter, output]: [usize; 3]) -> Result<(usize, usize)> {
    let groups = attributes.feature_groups;
    let Ok(feature_groups @ 1..) = usize::try_from(groups) else {
        return Err(invalid!("feature_group_count must be a positive integer, given: {groups}"));
    };
    if !input.is_multiple_of(feature_groups) {
        return Err(invalid!(
            "feature_group_count must divide lhs feature dimension size, but {groups} does not divide {input}"
        ));
    }
    if filter == 0 || !input.is_multiple_of(filter) {
        return Err(invalid!(
            "rhs input feature dimension must divide lhs feature dimension size, but {filter} does not divide {input}"
        ));
    }
    if input / feature_groups != filter {
        return Err(invalid!(
            "lhs feature dimension size divided by feature_group_count must equal the rhs input feature dimension \
             size, but {input} / {groups} != {filter}"
        ));
    }
    if !output.is_multiple_of(feature_groups) {
        return Err(invalid!(
            "rhs output dimension size must be a multiple of feature_group_count, but {output} is not a multiple of \
             {groups}"
        ));
    }
    let groups = attributes.batch_groups;
    let Ok(batch_groups @ 1..) = usize::try_from(groups) else {
        return Err(invalid!("batch_group_count Attr must be a positive integer. Given: {groups}"));
    };
    if !batch.is_multiple_of(batch_groups) {
        return Err(invalid!(
            "batch_group_count must divide lhs batch dimension size, but {groups} does not divide {batch}"
        ));
    }
    match output.is_multiple_of(batch_groups) {
        true => Ok((batch_groups, feature_groups)),
        false => Err(invalid!(
            "rhs output dimension size must be a multiple of batch_group_count, but {output} is not a multiple of \
             {groups}"
        )),
    }
}

/// The axis with its padding and the size of the output.
fn padded(attributes: &Attributes, axis: Axis, index: usize, rank: usize) -> Result<Axis> {
    let (input, filter) = (dilated(axis.input, axis.lhs_dilation), dilated(axis.filter, axis.rhs_dilation));
    let stride = axis.stride as i128;
    let (before, after) = match attributes.padding.as_str() {
        "EXPLICIT" => explicit(&attributes.explicit, index, rank)?,
        "VALID" => (0, 0),
        _ => {
            let total = (((input + stride - 1) / stride - 1) * stride + filter - input).max(0);
            (total / 2, total - total / 2)
        }
    };
    let output = (input + before + after - filter + 1 + stride - 1).div_euclid(stride);
    match (usize::try_from(output), usize::try_from(before)) {
        (Ok(output), Ok(before)) => Ok(Axis { output, before, ..axis }),
        _ => Err(invalid!("Expected shape dimensions to be non-negative, got {output}")),
    }
}

fn explicit(paddings: &[i64], index: usize, rank: usize) -> Result<(i128, i128)> {
    if paddings.len() != 2 * (rank - 2) {
        return Err(invalid!(
            "Size of explicit_padding Attr must be 2 * (rank - 2). Given rank {rank} and explicit_padding of size {}",
            paddings.len()
        ));
    }
    if paddings.iter().any(|&padding| padding < 0) {
        let all: Vec<String> = paddings.iter().map(i64::to_string).collect();
        return Err(invalid!("All explicit_padding elems must be >= 0, Given {}", all.join(", ")));
    }
    Ok((paddings[2 * index].into(), paddings[2 * index + 1].into()))
}

/// The values with their axes in the given order.
fn ordered<T: Element>(tensor: &Tensor, order: &[usize]) -> Result<Vec<T>> {
    let (shape, values) = (tensor.shape(), tensor.values::<T>()?);
    let strides = shape.strides();
    Ok((0..values.len()).map(|index| values[place(index, order, shape, &strides)]).collect())
}

/// The place of an element in the order of memory, of one in the given order of axes.
fn place(mut index: usize, order: &[usize], shape: &Shape, strides: &[usize]) -> usize {
    let mut place = 0;
    for &axis in order.iter().rev() {
        place += index % shape[axis] * strides[axis];
        index /= shape[axis];
    }
    place
}

/// The operands, their axes in order, with the integers of zero.
struct Operands<'a> {
    lhs: &'a [i8],
    lhs_zero: &'a dyn Fn(usize) -> i32,
    rhs: &'a [i8],
    rhs_zero: &'a dyn Fn(usize) -> i32,
}

impl Plan {
    /// The output, whose elements are made of the image of the input, the channel of the output, and the sum, which
    /// wraps around.
    fn convolve<T: Element>(
        &self,
        dtype: DType,
        operands: &Operands<'_>,
        result: impl Fn(usize, usize, i32) -> T,
    ) -> Result<Tensor> {
        let mut out = Tensor::scratch_of(dtype, &self.output)?;
        if out.elements() == 0 {
            return Ok(out);
        }
        let (order, strides) = (self.numbers.output.order(), self.output.strides());
        let values = out.values_mut::<T>()?;
        let points: usize = self.axes.iter().map(|axis| axis.output).product();
        for point in 0..points {
            let meetings = self.meetings(point);
            for number in 0..self.batch[1] * self.features[2] {
                let (image, filter) = (number / self.features[2], number % self.features[2]);
                let image = filter / (self.features[2] / self.batch_groups) * self.batch[1] + image;
                let sum = self.sum(operands, image, filter, &meetings);
                values[place(number * points + point, &order, &self.output, &strides)] = result(image, filter, sum);
            }
        }
        Ok(out)
    }

    /// The sum of the products at one point.
    fn sum(&self, operands: &Operands<'_>, image: usize, filter: usize, meetings: &[(usize, usize)]) -> i32 {
        let [channels, depth, filters] = self.features;
        let pixels: usize = self.axes.iter().map(|axis| axis.input).product();
        let taps: usize = self.axes.iter().map(|axis| axis.filter).product();
        let first = filter / (filters / self.feature_groups) * depth;
        let (lhs_zero, rhs_zero) = ((operands.lhs_zero)(image), (operands.rhs_zero)(filter));
        let mut sum = 0_i32;
        for channel in 0..depth {
            let lhs = &operands.lhs[(image * channels + first + channel) * pixels..][..pixels];
            let rhs = &operands.rhs[(filter * depth + channel) * taps..][..taps];
            for &(pixel, tap) in meetings {
                let left = i32::from(lhs[pixel]).wrapping_sub(lhs_zero);
                sum = sum.wrapping_add(left.wrapping_mul(i32::from(rhs[tap]).wrapping_sub(rhs_zero)));
            }
        }
        sum
    }

    /// The pixels of the input and the elements of the filter that meet at a point of the output.
    fn meetings(&self, point: usize) -> Vec<(usize, usize)> {
        let taps: usize = self.axes.iter().map(|axis| axis.filter).product();
        let pixel = |tap: usize| {
            let (mut point, mut rest, mut pixel, mut stride) = (point, tap, 0, 1);
            for axis in self.axes.iter().rev() {
                pixel += axis.at(point % axis.output, rest % axis.filter)? * stride;
                stride *= axis.input;
                point /= axis.output;
                rest /= axis.filter;
            }
            Some((pixel, tap))
        };
        (0..taps).filter_map(pixel).collect()
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let attributes = Attributes::of(setup)?;
    let limits = Limits::of(setup, "output_")?;
    if setup.int("lhs_quantization_axis")? != -1 {
        return Err(invalid!("lhs_quantization_axis Attr must be -1 (per-tensor)."));
    }
    let output_axis = setup.int("output_quantization_axis")?;
    Ok(many(move |_, mut inputs| {
        let (lhs, rhs) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let parameters = inputs.tensors_from(2)?;
        let [lhs_scales, lhs_zeros, rhs_scales, rhs_zeros, scales, zeros] = parameters.as_slice() else {
            return Err(invalid!("Expected 8 inputs"));
        };
        for (name, scales) in [("lhs", lhs_scales), ("rhs", rhs_scales), ("output", scales)] {
            check_positive(name, &[scales])?;
        }
        let plan = Plan::of(&attributes, lhs.shape(), rhs.shape())?;
        check_scalars(lhs_scales, lhs_zeros)?;
        attributes.check_rhs_axis(&plan)?;
        check_shapes(rhs.shape(), rhs_scales, rhs_zeros, attributes.rhs_axis)?;
        if output_axis != -1 && output_axis != plan.numbers.output.feature as i64 {
            return Err(invalid!(
                "output_quantization_axis Attr must be -1 (per-tensor) or dimension_numbers.output_feature_dimension \
                 (per-channel)."
            ));
        }
        check_shapes(&plan.output, scales, zeros, output_axis)?;
        if rhs_scales.shape().rank() == 0 && scales.shape().rank() > 0 {
            return Err(invalid!(
                "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given output \
                 scales/zero_points of rank {}",
                scales.shape().rank()
            ));
        }
        let (scale, zero) = (lhs_scales.to_scalar::<f32>()?, lhs_zeros.to_scalar::<i32>()?);
        let of_rhs = Scales::of(rhs_scales, rhs_zeros)?;
        let requantizers = channels(scale, of_rhs, Scales::of(scales, zeros)?, limits, plan.features[2])?;
        let (lhs, rhs) = (ordered(&lhs, &plan.numbers.input.order())?, ordered(&rhs, &plan.numbers.kernel.order())?);
        let rhs_zero = |filter: usize| of_rhs.channel(filter).1;
        let operands = Operands { lhs: &lhs, lhs_zero: &|_| zero, rhs: &rhs, rhs_zero: &rhs_zero };
        Ok(outputs![plan.convolve(DType::QI32, &operands, |_, filter, sum| requantizers[filter].apply(sum))?])
    })
    .heavy())
}

fn hybrid_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let attributes = Attributes::of(setup)?;
    Ok(many(move |_, mut inputs| {
        let (lhs, rhs) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let (scales, zeros) = (inputs.tensor(2)?, inputs.tensor(3)?);
        check_positive("rhs", &[&scales])?;
        let plan = Plan::of(&attributes, lhs.shape(), rhs.shape())?;
        attributes.check_rhs_axis(&plan)?;
        check_shapes(rhs.shape(), &scales, &zeros, attributes.rhs_axis)?;
        let of_rhs = Scales::of(&scales, &zeros)?;
        let (floats, rhs) =
            (ordered::<f32>(&lhs, &plan.numbers.input.order())?, ordered(&rhs, &plan.numbers.kernel.order())?);
        let images = Quantized::rows(&floats, plan.batch[0], floats.len() / plan.batch[0].max(1));
        let (lhs_zero, rhs_zero) = (|image: usize| images.scales[image].1, |filter: usize| of_rhs.channel(filter).1);
        let operands = Operands { lhs: &images.values, lhs_zero: &lhs_zero, rhs: &rhs, rhs_zero: &rhs_zero };
        let real = |image: usize, filter: usize, sum| sum as f32 * images.scales[image].0 * of_rhs.channel(filter).0;
        Ok(outputs![plan.convolve(DType::F32, &operands, real)?])
    })
    .heavy())
}
