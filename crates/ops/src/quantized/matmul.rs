//! QuantizedMatMul.

use super::args::{ranged, single, with_range};
use super::level::Range;
use graph::ShapeQuery;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "QuantizedMatMul(a: T1, b: T2, min_a: float, max_a: float, min_b: float, max_b: float) -> out: Toutput, \
          min_out: float, max_out: float; T1: {qint8, quint8, qint32, qint16, quint16}; \
          T2: {qint8, quint8, qint32, qint16, quint16}; \
          Toutput: {qint8, quint8, qint32, qint16, quint16} = qint32; transpose_a: bool = false; \
          transpose_b: bool = false; Tactivation: {qint8, quint8, qint32, qint16, quint16} = quint8",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let flag = |name: &str| Ok::<_, status::Error>(matches!(query.attr(name)?, graph::AttrValue::Bool(true)));
    let kept = |input: usize, axis: usize| query.inputs[input].dim(axis).map_or(-1, |dim| dim as i64);
    let (rows, cols) = (kept(0, flag("transpose_a")?.into()), kept(1, 1 - usize::from(flag("transpose_b")?)));
    Ok(ranged(PartialShape::new(&[rows, cols])))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if (setup.dtype("T1")?, setup.dtype("T2")?, setup.dtype("Toutput")?) != (DType::QU8, DType::QU8, DType::QI32) {
        return Err(setup.no_kernel());
    }
    let transposed = [setup.bool("transpose_a")?, setup.bool("transpose_b")?];
    Ok(many(move |_, mut inputs| {
        let [a_range, b_range] = ranges(&inputs)?;
        let (a, b) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let sizes = Sizes::of(a.shape(), b.shape(), transposed)?;
        let zeros = [a_range, b_range].map(|range| range.unclamped::<u8>(0.0) as i32);
        let mut out = Tensor::scratch_of(DType::QI32, Shape::from([sizes.rows, sizes.cols]))?;
        sizes.multiply(a.values()?, b.values()?, zeros, transposed, out.values_mut()?);
        Ok(with_range(out, Range::of_products::<u8, u8, i32>(a_range, b_range)))
    })
    .heavy())
}

fn ranges(inputs: &Inputs) -> Result<[Range; 2]> {
    let bound = |index: usize, name: &str| {
        single(inputs, index, |shape| invalid!("{name} must be a scalar, but got shape{shape}"))
    };
    let first = inputs.look(2)?.shape();
    if first.rank() != 0 {
        return Err(invalid!("min_a must be a scalar, but got shape{first}"));
    }
    let a = Range { min: bound(2, "min_a")?, max: bound(3, "max_a")? };
    let b = Range { min: bound(4, "min_b")?, max: bound(5, "max_b")? };
    for (name, range) in [("a", a), ("b", b)] {
        if !(range.max > range.min) {
            return Err(invalid!("max_{name} must be larger than min_{name}."));
        }
    }
    Ok([a, b])
}

/// The sizes of a product.
struct Sizes {
    rows: usize,
    inner: usize,
    cols: usize,
}

impl Sizes {
    fn of(a: &Shape, b: &Shape, [of_a, of_b]: [bool; 2]) -> Result<Sizes> {
        for (number, shape) in [a, b].into_iter().enumerate() {
            if shape.rank() != 2 {
                return Err(invalid!("In[{number}] is not a matrix"));
            }
        }
        let (rows, inner) = if of_a { (a[1], a[0]) } else { (a[0], a[1]) };
        let (found, cols) = if of_b { (b[1], b[0]) } else { (b[0], b[1]) };
        if inner != found {
            return Err(invalid!("Matrix size-incompatible: In[0]: {a}, In[1]: {b}"));
        }
        Ok(Sizes { rows, inner, cols })
    }

    /// The product of both matrices after the integers of zero are subtracted; sums wrap around.
    fn multiply(&self, a: &[u8], b: &[u8], zeros: [i32; 2], [of_a, of_b]: [bool; 2], out: &mut [i32]) {
        out.fill(0);
        for (row, out) in out.chunks_exact_mut(self.cols.max(1)).enumerate() {
            for i in 0..self.inner {
                let left = if of_a { a[i * self.rows + row] } else { a[row * self.inner + i] };
                let left = i32::from(left).wrapping_sub(zeros[0]);
                for (col, out) in out.iter_mut().enumerate() {
                    let right = if of_b { b[col * self.inner + i] } else { b[i * self.cols + col] };
                    *out = out.wrapping_add(left.wrapping_mul(i32::from(right).wrapping_sub(zeros[1])));
                }
            }
        }
    }
}
