//! Einsum on strided operands. Where possible it runs one batch of matrix products without copying the operands.

use super::einsum::{Equation, Subscripts};
use math::function::Number;
use math::gemm::{self, Matrix, matmul_batch};
use op::Ctx;
use status::{Result, invalid};
use std::borrow::Cow;
use tensor::{Element, Shape, Tensor};

/// An axis by name: a letter, or a place among the dots counted from their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Letter(u8),
    Dots(usize),
}

/// An axis of an operand. A repeated letter is one axis along the diagonal.
#[derive(Clone, Copy, Debug)]
struct Axis {
    label: Label,
    size: usize,
    stride: usize,
}

/// Computes an equation of one or two operands.
pub(super) fn run<T>(ctx: &Ctx<'_>, equation: &Equation, inputs: &[Tensor]) -> Result<Tensor>
where
    T: Element + Number + gemm::Element,
{
    let operands = operands(equation, inputs)?;
    let labels = output_labels(equation, &operands)?;
    let size = |label: Label| {
        let axes = operands.iter().flatten().filter(|axis| axis.label == label);
        axes.map(|axis| axis.size).fold(1, |size, other| if size == 1 { other } else { size })
    };
    check_dots(&operands, &labels, size)?;
    let shape: Shape = labels.iter().map(|&label| size(label)).collect();
    shape.checked_elements()?;
    let mut unique: Vec<Label> = Vec::new();
    labels.iter().for_each(|&label| {
        if !unique.contains(&label) {
            unique.push(label)
        }
    });
    let result = match (&operands[..], inputs) {
        ([axes], [x]) => {
            let out: Vec<Axis> = unique.iter().map(|&label| find(axes, label, size(label))).collect();
            let rest: Vec<Axis> = axes.iter().filter(|axis| !unique.contains(&axis.label)).copied().collect();
            summed(x.values::<T>()?, &out, &rest).into_owned()
        }
        _ => product::<T>(ctx, [&operands[0], &operands[1]], inputs, &unique, &size)?,
    };
    if unique.len() == labels.len() {
        return Tensor::from_slice(shape, &result);
    }
    on_diagonals(&result, &labels, &unique, shape)
}

/// The axes of all operands; sizes of one letter agree.
fn operands(equation: &Equation, inputs: &[Tensor]) -> Result<Vec<Vec<Axis>>> {
    let mut sizes: Vec<(u8, usize)> = Vec::new();
    let mut all = Vec::new();
    for (number, (subscripts, input)) in equation.inputs.iter().zip(inputs).enumerate() {
        let labels = labels(subscripts, input.shape().rank(), number)?;
        let strides = input.shape().strides();
        let mut axes: Vec<Axis> = Vec::new();
        for (at, &label) in labels.iter().enumerate() {
            let (size, stride) = (input.shape()[at], strides[at]);
            if let Label::Letter(letter) = label {
                match sizes.iter().find(|(other, _)| *other == letter) {
                    Some(&(_, known)) if known != size => {
                        return Err(invalid!(
                            "Expected dimension {known} at axis {at} of the input shaped {} but got dimension {size}",
                            input.shape()
                        ));
                    }
                    Some(_) => {}
                    None => sizes.push((letter, size)),
                }
            }
            match axes.iter_mut().find(|axis| axis.label == label) {
                Some(axis) => axis.stride += stride,
                None => axes.push(Axis { label, size, stride }),
            }
        }
        all.push(axes);
    }
    Ok(all)
}

fn labels(subscripts: &Subscripts, rank: usize, number: usize) -> Result<Vec<Label>> {
    let letters = |letters: &[u8]| letters.iter().map(|&letter| Label::Letter(letter)).collect::<Vec<_>>();
    let named = subscripts.letters().count();
    let Some(after) = &subscripts.after else {
        if rank != named {
            return Err(invalid!("Expected input {number} to have rank {named} but got: {rank}"));
        }
        return Ok(letters(&subscripts.before));
    };
    let Some(dots) = rank.checked_sub(named) else {
        return Err(invalid!("Expected input {number} to have rank at least {named} but got: {rank}"));
    };
    let dots: Vec<Label> = (0..dots).rev().map(Label::Dots).collect();
    Ok([letters(&subscripts.before), dots, letters(after)].concat())
}

fn output_labels(equation: &Equation, operands: &[Vec<Axis>]) -> Result<Vec<Label>> {
    let is_dots = |axis: &&Axis| matches!(axis.label, Label::Dots(_));
    let dots = operands.iter().map(|axes| axes.iter().filter(is_dots).count()).max().unwrap_or(0);
    let output = &equation.output;
    if output.after.is_none() && dots > 0 {
        return Err(invalid!(
            "Output contains {dots} broadcasting dimension(s) but no ellipsis (...) was found in the output subscripts."
        ));
    }
    let letters = |letters: &[u8]| letters.iter().map(|&letter| Label::Letter(letter)).collect::<Vec<_>>();
    let middle: Vec<Label> = (0..dots).rev().map(Label::Dots).collect();
    Ok([letters(&output.before), middle, output.after.as_deref().map(letters).unwrap_or_default()].concat())
}

/// Axes under the dots are equal, or one.
fn check_dots(operands: &[Vec<Axis>], output: &[Label], size: impl Fn(Label) -> usize) -> Result<()> {
    let fits = |axis: &Axis| axis.size == 1 || axis.size == size(axis.label) || matches!(axis.label, Label::Letter(_));
    match operands {
        [lhs, rhs] if !lhs.iter().chain(rhs).all(fits) => Err(invalid!(
            "Invalid broadcasting dimensions: {} vs. {}",
            laid_out(lhs, rhs, output),
            laid_out(rhs, lhs, output)
        )),
        _ => Ok(()),
    }
}

/// The shape in which TensorFlow multiplies an operand: broadcast and batch axes as they are, then the kept axes and
/// the contracted axes merged into one axis each; in the opposite order if the operand is stored like that.
fn laid_out(axes: &[Axis], other: &[Axis], output: &[Label]) -> Shape {
    let kind = |axis: &&Axis| {
        let shared = other.iter().any(|other| other.label == axis.label);
        match (axis.label, output.contains(&axis.label), shared) {
            (Label::Dots(_), ..) => 0,
            (_, true, true) => 1,
            (_, false, true) => 2,
            (_, true, false) => 3,
            (_, false, false) => 4,
        }
    };
    let of = |wanted: usize| axes.iter().filter(move |axis| kind(axis) == wanted).map(|axis| axis.size);
    let (contracted, free) = (of(2).product(), of(3).product());
    let last = if axes.iter().is_sorted_by_key(|axis| kind(&axis)) { [contracted, free] } else { [free, contracted] };
    of(0).chain(of(1)).chain(last).collect()
}

/// The axis with this label; a missing or repeated one has stride zero.
fn find(axes: &[Axis], label: Label, size: usize) -> Axis {
    match axes.iter().find(|axis| axis.label == label) {
        Some(axis) if axis.size == size => *axis,
        _ => Axis { label, size, stride: 0 },
    }
}

fn product<T>(
    ctx: &Ctx<'_>,
    [left, right]: [&Vec<Axis>; 2],
    inputs: &[Tensor],
    output: &[Label],
    size: &impl Fn(Label) -> usize,
) -> Result<Vec<T>>
where
    T: Element + Number + gemm::Element,
{
    let has = |axes: &[Axis], label: Label| axes.iter().any(|axis| axis.label == label);
    let kept = |label: &Label| output.contains(label);
    let both = |axis: &&Axis| has(right, axis.label);
    let of = |axes: &[Axis], labels: &[Label]| {
        labels.iter().map(|&label| find(axes, label, size(label))).collect::<Vec<_>>()
    };
    let inner: Vec<Label> = left.iter().filter(both).map(|axis| axis.label).filter(|label| !kept(label)).collect();
    let batch: Vec<Label> = output.iter().copied().filter(|&label| has(left, label) && has(right, label)).collect();
    let rows: Vec<Label> = output.iter().copied().filter(|&label| has(left, label) && !has(right, label)).collect();
    let cols: Vec<Label> = output.iter().copied().filter(|&label| !has(left, label)).collect();
    let (left_only, right_only) = (alone(left, right, output), alone(right, left, output));
    let x = Side::new(inputs[0].values::<T>()?, [of(left, &batch), of(left, &rows), of(left, &inner)], left_only);
    let y = Side::new(inputs[1].values::<T>()?, [of(right, &batch), of(right, &inner), of(right, &cols)], right_only);
    let count = batch.iter().map(|&label| size(label)).product::<usize>() * x.rows.0 * y.cols.0;
    let mut result = vec![T::default(); Shape::from([count]).checked_elements()?];
    // A product over nothing is zero; an empty operand has no places to start at.
    if count > 0 && !x.values.is_empty() && !y.values.is_empty() {
        let offsets: Vec<(usize, usize)> = places(&x.batch).into_iter().zip(places(&y.batch)).collect();
        matmul_batch(ctx.pool(), x.matrix(), y.matrix(), &offsets, &mut result);
    }
    let order: Vec<Label> = [batch, rows, cols].concat();
    if order == output {
        return Ok(result);
    }
    let dims: Vec<usize> = order.iter().map(|&label| size(label)).collect();
    let strides = Shape::new(&dims).strides();
    let axes: Vec<Axis> =
        order.iter().zip(strides).map(|(&label, stride)| Axis { label, size: size(label), stride }).collect();
    Ok(summed(&result, &of(&axes, output), &[]).into_owned())
}

/// Axes that only one operand has, and that the output does not have: they are summed beforehand.
fn alone(axes: &[Axis], others: &[Axis], output: &[Label]) -> Vec<Axis> {
    let stays = |axis: &&Axis| !output.contains(&axis.label) && !others.iter().any(|other| other.label == axis.label);
    axes.iter().filter(stays).copied().collect()
}

/// One factor: a batch of strided matrices.
struct Side<'a, T: Element> {
    values: Cow<'a, [T]>,
    batch: Vec<Axis>,
    rows: (usize, usize),
    cols: (usize, usize),
}

impl<'a, T: Element + Number> Side<'a, T> {
    /// `groups` are the axes of the batch, of rows and of columns. If the axes of a group cannot be merged into one
    /// axis, the operand is copied.
    fn new(values: &'a [T], groups: [Vec<Axis>; 3], alone: Vec<Axis>) -> Side<'a, T> {
        if let (true, Some(rows), Some(cols)) = (alone.is_empty(), single(&groups[1]), single(&groups[2])) {
            let [batch, ..] = groups;
            return Side { values: Cow::Borrowed(values), batch, rows, cols };
        }
        let sizes = |axes: &[Axis]| axes.iter().map(|axis| axis.size).product::<usize>();
        let (height, width) = (sizes(&groups[1]), sizes(&groups[2]));
        let mut stride = height * width;
        let mut batch = groups[0].clone();
        let laid_out = summed(values, &groups.concat(), &alone).into_owned();
        for axis in batch.iter_mut().rev() {
            axis.stride = stride;
            stride *= axis.size;
        }
        Side { values: Cow::Owned(laid_out), batch, rows: (height, width), cols: (width, 1) }
    }

    fn matrix(&self) -> Matrix<'_, T> {
        Matrix {
            values: &self.values,
            rows: self.rows.0,
            cols: self.cols.0,
            row_stride: self.rows.1,
            col_stride: self.cols.1,
        }
    }
}

/// Size and stride of several axes that are as good as one.
fn single(axes: &[Axis]) -> Option<(usize, usize)> {
    let mut result: Option<(usize, usize)> = None;
    for axis in axes.iter().rev().filter(|axis| axis.size != 1) {
        result = match result {
            None => Some((axis.size, axis.stride)),
            Some((size, stride)) if axis.stride == size * stride => Some((size * axis.size, stride)),
            Some(_) => return None,
        };
    }
    Some(result.unwrap_or((1, 1)))
}

/// The offset of each member of a batch.
fn places(axes: &[Axis]) -> Vec<usize> {
    let mut places = vec![0];
    for axis in axes {
        places = places.iter().flat_map(|&place| (0..axis.size).map(move |at| place + at * axis.stride)).collect();
    }
    places
}

/// The operand laid out by `axes`, summed over `rest`.
fn summed<'a, T: Element + Number>(values: &'a [T], axes: &[Axis], rest: &[Axis]) -> Cow<'a, [T]> {
    let count: usize = axes.iter().map(|axis| axis.size).product();
    if rest.is_empty() && count == values.len() && single(axes).is_some_and(|(_, stride)| stride == 1) {
        return Cow::Borrowed(values);
    }
    if count == 0 || values.is_empty() {
        return Cow::Owned(vec![T::default(); count]);
    }
    let inside = places(rest);
    let (outer, inner) = match axes.split_last() {
        Some((inner, outer)) => (outer, *inner),
        None => (axes, Axis { label: Label::Dots(0), size: 1, stride: 1 }),
    };
    let mut result = Vec::with_capacity(count);
    for start in places(outer) {
        let each = (0..inner.size).map(|at| start + at * inner.stride);
        match rest.is_empty() {
            true => result.extend(each.map(|place| values[place])),
            false => result
                .extend(each.map(|place| inside.iter().fold(T::ZERO, |sum, &at| Number::add(sum, values[place + at])))),
        }
    }
    Cow::Owned(result)
}

/// A result with repeated letters: zero except on the diagonals.
fn on_diagonals<T: Element>(result: &[T], labels: &[Label], unique: &[Label], shape: Shape) -> Result<Tensor> {
    let strides = shape.strides();
    let axis = |&label: &Label| {
        let places = labels.iter().enumerate().filter(|(_, other)| **other == label);
        let stride = places.clone().map(|(at, _)| strides[at]).sum();
        let size = places.map(|(at, _)| shape[at]).next().unwrap_or(1);
        Axis { label, size, stride }
    };
    let targets = places(&unique.iter().map(axis).collect::<Vec<_>>());
    let mut output = Tensor::zeros::<T>(shape)?;
    let values = output.values_mut::<T>()?;
    targets.into_iter().zip(result).for_each(|(place, &value)| values[place] = value);
    Ok(output)
}
