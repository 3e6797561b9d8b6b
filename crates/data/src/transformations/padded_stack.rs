//! Stacks elements of one rank along a new first dimension, each padded at the end of its dimensions.

use crate::Element;
use status::{Code, Error, Result, exhausted, internal, invalid};
use tensor::{Bytes, PartialShape, Shape, Tensor};

/// The shape to which a component is padded, where unknown dimensions are as long as in the largest element, and the value.
#[derive(Clone)]
pub(crate) struct Padding {
    pub shape: PartialShape,
    pub value: Tensor,
}

/// Component `index` of all elements.
pub(crate) fn padded_stack(elements: &[Element], index: usize, padding: &Padding) -> Result<Tensor> {
    let parts: Vec<&Tensor> = elements.iter().map(|element| component(element, index)).collect::<Result<_>>()?;
    if let Some(part) = parts.iter().find(|part| part.dtype() != padding.value.dtype()) {
        return Err(invalid!("Component {index} has type {}, not {}", part.dtype(), padding.value.dtype()));
    }
    let row = row_shape(&parts, index, padding)?;
    let shape: Shape = std::iter::once(parts.len()).chain(row.iter().copied()).collect();
    match padding.value.strings() {
        Ok([value]) => stacked_strings(&parts, value, &row, shape),
        _ => stacked_plain(&parts, &padding.value, &row, shape),
    }
}

fn component(element: &Element, index: usize) -> Result<&Tensor> {
    element.get(index).ok_or_else(|| invalid!("An element of the batch has no component {index}"))
}

/// The common shape of the parts.
fn row_shape(parts: &[&Tensor], index: usize, padding: &Padding) -> Result<Shape> {
    let given = padding.shape.dims().unwrap_or_default();
    let mut dims: Vec<usize> = given.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect();
    for part in parts {
        if part.shape().rank() != given.len() {
            return Err(invalid!(
                "All elements in a batch must have the same rank as the padded shape for component{index}: expected \
                 rank {} but got element with rank {}",
                given.len(),
                part.shape().rank()
            ));
        }
        for ((dim, &given), &found) in dims.iter_mut().zip(given).zip(part.shape().iter()) {
            if given >= 0 && found > *dim {
                let message = "Attempted to pad to a smaller size than the input element.";
                return Err(Error::new(Code::DataLoss, message));
            }
            *dim = found.max(*dim);
        }
    }
    Ok(dims.into_iter().collect())
}

fn stacked_strings(parts: &[&Tensor], value: &Bytes, row: &Shape, shape: Shape) -> Result<Tensor> {
    let count = shape.checked_elements()?;
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| exhausted!("OOM when allocating tensor with shape{shape}"))?;
    all.resize(count, value.clone());
    let width = row.elements();
    for (place, part) in parts.iter().enumerate() {
        let strings = part.strings()?;
        for_each_run(part.shape(), row, |from, to, len| {
            let to = place * width + to;
            all[to..to + len].clone_from_slice(&strings[from..from + len]);
        });
    }
    Tensor::from_strings(shape, all)
}

fn stacked_plain(parts: &[&Tensor], value: &Tensor, row: &Shape, shape: Shape) -> Result<Tensor> {
    let no_bytes = || internal!("tensors of type {} cannot be padded", value.dtype());
    let value_bytes = value.buffer().ok_or_else(no_bytes)?.bytes();
    let size = value_bytes.len().max(1);
    let needs_padding = parts.iter().any(|part| part.shape() != row);
    let is_zero = value_bytes.iter().all(|&byte| byte == 0);
    let mut batch = match needs_padding && is_zero {
        true => Tensor::zeros_of(value.dtype(), shape)?,
        false => Tensor::scratch_of(value.dtype(), shape)?,
    };
    let width = row.elements() * size;
    let all = batch.bytes_mut()?;
    if needs_padding && !is_zero {
        all.chunks_exact_mut(size).for_each(|element| element.copy_from_slice(value_bytes));
    }
    if width == 0 {
        return Ok(batch);
    }
    for (slot, part) in all.chunks_exact_mut(width).zip(parts) {
        let bytes = part.buffer().ok_or_else(no_bytes)?.bytes();
        for_each_run(part.shape(), row, |from, to, len| {
            slot[to * size..(to + len) * size].copy_from_slice(&bytes[from * size..(from + len) * size]);
        });
    }
    Ok(batch)
}

/// Calls a function for each run of elements that is contiguous both in an array and in the corner of a larger one: with
/// the position in each, and the length.
fn for_each_run(small: &Shape, large: &Shape, mut copy: impl FnMut(usize, usize, usize)) {
    let total = small.elements();
    if total == 0 {
        return;
    }
    let rank = small.rank();
    // The dimensions from `inner` on are equal, so that they and the one before them are contiguous.
    let equal = (0..rank).rev().take_while(|&axis| small[axis] == large[axis]).count();
    let inner = (rank - equal).saturating_sub(1);
    let run: usize = small.iter().skip(inner).product();
    let strides: Vec<usize> = (0..inner).map(|axis| large.iter().skip(axis + 1).product()).collect();
    let mut place = vec![0usize; inner];
    for from in (0..total).step_by(run) {
        copy(from, place.iter().zip(&strides).map(|(at, stride)| at * stride).sum(), run);
        for axis in (0..inner).rev() {
            place[axis] += 1;
            if place[axis] < small[axis] {
                break;
            }
            place[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Padding, padded_stack};
    use crate::Element;
    use tensor::{PartialShape, Shape, Tensor};

    fn row_by_element(small: &Shape, large: &Shape, values: &[i32], pad: i32) -> Vec<i32> {
        let mut all = vec![pad; large.elements()];
        for (index, &value) in values.iter().enumerate() {
            let (mut rest, mut to, mut stride) = (index, 0, 1);
            for axis in (0..small.rank()).rev() {
                to += rest % small[axis] * stride;
                rest /= small[axis];
                stride *= large[axis];
            }
            all[to] = value;
        }
        all
    }

    #[test]
    fn rows_are_padded_at_the_end_of_each_dimension() {
        let shapes: [([usize; 3], [usize; 3]); 6] = [
            ([2, 3, 4], [2, 3, 4]),
            ([2, 3, 4], [5, 3, 4]),
            ([2, 3, 4], [2, 4, 4]),
            ([2, 3, 4], [3, 4, 7]),
            ([1, 1, 1], [2, 1, 3]),
            ([0, 3, 4], [1, 3, 4]),
        ];
        for (small, large) in shapes {
            let (small, large) = (Shape::new(&small), Shape::new(&large));
            let values: Vec<i32> = (1..=small.elements() as i32).collect();
            let element = Element::from_elem(Tensor::from_slice(small.clone(), &values).unwrap(), 1);
            let dims: Vec<i64> = large.iter().map(|&dim| dim as i64).collect();
            for pad in [0, -1] {
                let padding = Padding { shape: PartialShape::new(&dims), value: Tensor::scalar(pad) };
                let batch = padded_stack(&[element.clone(), element.clone()], 0, &padding).unwrap();
                let expected = row_by_element(&small, &large, &values, pad);
                assert_eq!(batch.values::<i32>().unwrap(), [expected.clone(), expected].concat());
            }
        }
    }
}
