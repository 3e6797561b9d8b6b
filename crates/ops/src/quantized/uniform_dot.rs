//! UniformQuantizedDot and UniformQuantizedDotHybrid.

use super::uniform_scale::{Limits, Multiplier, Requantizer, Scales, check_positive, check_shapes};
use op::{Grad, Kernel, Op, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UniformQuantizedDot(lhs: Tin, rhs: Tin, lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, \
              rhs_zero_points: int32, output_scales: float, output_zero_points: int32) -> output: Tout; \
              Tin: {qint8}; Tout: {qint32}; lhs_quantization_axis: int = -1; lhs_quantization_min_val: int; \
              lhs_quantization_max_val: int; rhs_quantization_axis: int = -1; rhs_quantization_min_val: int; \
              rhs_quantization_max_val: int; output_quantization_axis: int = -1; output_quantization_min_val: int; \
              output_quantization_max_val: int",
        shape,
        grad: Grad::Unknown,
        kernel: dot_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UniformQuantizedDotHybrid(lhs: Tlhs, rhs: Trhs, rhs_scales: float, rhs_zero_points: int32) -> \
              output: Tout; Tlhs: {float}; Trhs: {qint8}; Tout: {float}; rhs_quantization_axis: int = -1; \
              rhs_quantization_min_val: int; rhs_quantization_max_val: int",
        shape,
        grad: Grad::Unknown,
        kernel: hybrid_kernel,
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let side = |input: usize| query.inputs[input].merge(&PartialShape::of_rank(2));
    let (lhs, rhs) = (side(0)?, side(1)?);
    let dim = |shape: &PartialShape, axis: usize| shape.dim(axis).map_or(-1, |dim| dim as i64);
    Ok(vec![PartialShape::new(&[dim(&lhs, 0), dim(&rhs, 1)])])
}

fn check_axes(setup: &Setup<'_>, names: &[&str]) -> Result<()> {
    for name in names {
        let axis = setup.int(&format!("{name}_quantization_axis"))?;
        if axis != 1 && axis != -1 {
            return Err(invalid!("{name}_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor)."));
        }
    }
    Ok(())
}

fn dot_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if setup.int("lhs_quantization_axis")? != -1 {
        return Err(invalid!("lhs_quantization_axis Attr must be -1 (per-tensor)."));
    }
    check_axes(setup, &["rhs", "output"])?;
    let limits = Limits::of(setup, "output_")?;
    Ok(many(move |_, mut inputs| {
        let (lhs, rhs) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let parameters = inputs.tensors_from(2)?;
        let [lhs_scales, lhs_zeros, rhs_scales, rhs_zeros, scales, zeros] = parameters.as_slice() else {
            return Err(invalid!("Expected 8 inputs"));
        };
        for (name, scales) in [("lhs", lhs_scales), ("rhs", rhs_scales), ("output", scales)] {
            check_positive(name, &[scales])?;
        }
        let sizes = Sizes::of(lhs.shape(), rhs.shape())?;
        check_scalars(lhs_scales, lhs_zeros)?;
        check_channels(rhs.shape(), rhs_scales, rhs_zeros)?;
        check_channels(&sizes.output(), scales, zeros)?;
        if rhs_scales.shape().rank() == 0 && scales.shape().rank() > 0 {
            return Err(invalid!(
                "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given rhs scales and \
                 zero_points of shape {} but given output scales and zero_points of shape {}",
                rhs_scales.shape(),
                scales.shape()
            ));
        }
        let (lhs_scale, lhs_zero) = (lhs_scales.to_scalar::<f32>()?, lhs_zeros.to_scalar::<i32>()?);
        let (of_rhs, of_output) = (Scales::of(rhs_scales, rhs_zeros)?, Scales::of(scales, zeros)?);
        let channels = channels(lhs_scale, of_rhs, of_output, limits, sizes.cols)?;
        let rhs_zeros: Vec<i32> = (0..sizes.cols).map(|col| of_rhs.channel(col).1).collect();
        let sums = sizes.sums(lhs.values()?, rhs.values()?, |_| lhs_zero, &rhs_zeros);
        let mut out = Tensor::scratch_of(DType::QI32, sizes.output())?;
        for (i, (out, sum)) in out.values_mut::<i32>()?.iter_mut().zip(sums).enumerate() {
            *out = channels[i % sizes.cols].apply(sum);
        }
        Ok(outputs![out])
    })
    .heavy())
}

/// What moves the sums of products to the scale of the result, for each channel.
pub(crate) fn channels(
    lhs_scale: f32,
    of_rhs: Scales<'_>,
    of_output: Scales<'_>,
    limits: Limits,
    count: usize,
) -> Result<Vec<Requantizer>> {
    let channel = |index: usize| {
        let ((rhs_scale, _), (scale, to)) = (of_rhs.channel(index), of_output.channel(index));
        let quotient = f64::from(lhs_scale) * f64::from(rhs_scale) / f64::from(scale);
        Ok(Requantizer { multiplier: Multiplier::of(quotient)?, from: 0, to, limits })
    };
    (0..count).map(channel).collect()
}

/// An error unless the scales of the left operand are scalars.
pub(crate) fn check_scalars(scales: &Tensor, zeros: &Tensor) -> Result<()> {
    match (scales.shape().rank(), zeros.shape().rank()) {
        (0, 0) => Ok(()),
        _ => Err(invalid!(
            "lhs scales/zero_points must be all scalar tensors. Given: {}{}",
            scales.shape(),
            zeros.shape()
        )),
    }
}

fn check_channels(data: &Shape, scales: &Tensor, zeros: &Tensor) -> Result<()> {
    check_shapes(data, scales, zeros, if scales.shape().rank() == 0 { -1 } else { 1 })
}

fn hybrid_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    check_axes(setup, &["rhs"])?;
    Ok(many(|_, mut inputs| {
        let (lhs, rhs) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let (scales, zeros) = (inputs.tensor(2)?, inputs.tensor(3)?);
        let sizes = Sizes::of(lhs.shape(), rhs.shape())?;
        check_channels(rhs.shape(), &scales, &zeros)?;
        check_positive("rhs", &[&scales])?;
        let of_rhs = Scales::of(&scales, &zeros)?;
        let rhs_zeros: Vec<i32> = (0..sizes.cols).map(|col| of_rhs.channel(col).1).collect();
        let rows = Quantized::rows(lhs.values()?, sizes.rows, sizes.inner);
        let sums = sizes.sums(&rows.values, rhs.values()?, |row| rows.scales[row].1, &rhs_zeros);
        let mut out = Tensor::scratch::<f32>(sizes.output())?;
        for (i, (out, sum)) in out.values_mut::<f32>()?.iter_mut().zip(sums).enumerate() {
            let (row, col) = (i / sizes.cols, i % sizes.cols);
            *out = sum as f32 * rows.scales[row].0 * of_rhs.channel(col).0;
        }
        Ok(outputs![out])
    })
    .heavy())
}

/// The sizes of a product.
struct Sizes {
    rows: usize,
    inner: usize,
    cols: usize,
}

impl Sizes {
    fn of(lhs: &Shape, rhs: &Shape) -> Result<Sizes> {
        let &[rows, inner] = lhs.dims() else { return Err(invalid!("lhs rank must be 2, but given lhs shape {lhs}")) };
        let &[found, cols] = rhs.dims() else { return Err(invalid!("rhs rank must be 2, but given rhs shape {rhs}")) };
        match inner == found {
            true => Ok(Sizes { rows, inner, cols }),
            false => Err(invalid!(
                "lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape {lhs} and rhs shape {rhs}"
            )),
        }
    }

    fn output(&self) -> Shape {
        Shape::from([self.rows, self.cols])
    }

    /// The products after the integers of zero are subtracted; sums wrap around.
    fn sums(&self, lhs: &[i8], rhs: &[i8], lhs_zero: impl Fn(usize) -> i32, rhs_zeros: &[i32]) -> Vec<i32> {
        let mut sums = vec![0_i32; self.rows.saturating_mul(self.cols)];
        for (row, sums) in sums.chunks_exact_mut(self.cols.max(1)).enumerate() {
            for i in 0..self.inner {
                let left = i32::from(lhs[row * self.inner + i]).wrapping_sub(lhs_zero(row));
                let right = &rhs[i * self.cols..][..self.cols];
                for ((sum, &right), &zero) in sums.iter_mut().zip(right).zip(rhs_zeros) {
                    *sum = sum.wrapping_add(left.wrapping_mul(i32::from(right).wrapping_sub(zero)));
                }
            }
        }
        sums
    }
}

/// Floats quantized to 8 bits, each row with a scale of its own.
pub(crate) struct Quantized {
    /// The integers of all rows.
    pub values: Vec<i8>,
    /// The scale and the zero point of each row.
    pub scales: Vec<(f32, i32)>,
}

impl Quantized {
    /// Quantizes `count` rows between their smallest and largest element and zero.
    pub fn rows(values: &[f32], count: usize, size: usize) -> Quantized {
        let mut quantized = Quantized { values: Vec::with_capacity(values.len()), scales: Vec::with_capacity(count) };
        for row in 0..count {
            quantized.push(&values[row * size..][..size]);
        }
        quantized
    }

    fn push(&mut self, row: &[f32]) {
        let lowest = f64::from(row.iter().fold(0.0_f32, |min, &value| if value < min { value } else { min }));
        let highest = f64::from(row.iter().fold(0.0_f32, |max, &value| if value > max { value } else { max }));
        let scale = ((highest - lowest) / 255.0) as f32;
        let inverse = if highest - lowest != 0.0 { (255.0 / (highest - lowest)) as f32 } else { 0.0 };
        if scale == 0.0 || !inverse.is_finite() {
            self.values.extend(row.iter().map(|_| 0));
            return self.scales.push((1.0, 0));
        }
        let zero_point = zero_point(lowest / f64::from(scale), highest / f64::from(scale));
        let limits = Limits::BYTE;
        self.values.extend(row.iter().map(|&value| limits.quantized(value, inverse, zero_point) as i8));
        self.scales.push((scale, zero_point));
    }
}

/// The integer of zero, from the end of the range where the error is smaller.
fn zero_point(lowest: f64, highest: f64) -> i32 {
    let (min, max) = (-128.0, 127.0_f64);
    let from_min_is_closer = 128.0 + lowest.abs() < max + highest.abs();
    let point = if from_min_is_closer { min - lowest } else { max - highest };
    point.clamp(min, max).round() as i32
}
