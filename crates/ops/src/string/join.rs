//! Concatenation of strings: StringJoin, ReduceJoin, UnsortedSegmentJoin, StringFormat.

use super::summary::rows;
use crate::array::args::to_axis;
use graph::{AttrValue, Output, Scope, ShapeQuery};
use op::shapes::{integers, scalar};
use op::{Grad, Kernel, Op, PLAIN, Setup, binary, many, outputs};
use status::{Result, invalid, out_of_range};
use tensor::{Bytes, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StringJoin(inputs: N * string) -> output: string; N: int >= 0; separator: string = \"\"",
        shape: join_shape,
        grad: Grad::Stop,
        kernel: join_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ReduceJoin(inputs: string, reduction_indices: int32) -> output: string; keep_dims: bool = false; \
              separator: string = \"\"",
        shape: reduce_join_shape,
        grad: Grad::Stop,
        kernel: reduce_join_kernel,
        facts: PLAIN,
    },
    Op {
        def: "UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: Tnumsegments) -> \
              output: string; separator: string = \"\"; Tindices: {int32, int64}; \
              Tnumsegments: {int32, int64} = int32",
        shape: segment_join_shape,
        grad: Grad::Stop,
        kernel: segment_join_kernel,
        facts: PLAIN,
    },
    Op {
        def: "StringFormat(inputs: [T]) -> output: string; T: list(type) >= 0; template: string = \"%s\"; \
              placeholder: string = \"%s\"; summarize: int = 3",
        shape: scalar,
        grad: Grad::Stop,
        kernel: format_kernel,
        facts: PLAIN,
    },
];

/// Strings of all inputs one after the other, element by element; scalars go with every element.
pub fn string_join(scope: &Scope, inputs: &[Output], separator: &str) -> Output {
    scope.op("StringJoin").inputs(inputs).attr("separator", separator).output()
}

/// Strings along these axes one after the other.
pub fn reduce_join(inputs: &Output, axes: &[i32], separator: &str) -> Output {
    let axes = crate::array::constant::constant(inputs.scope(), Tensor::vector(axes));
    inputs.scope().op("ReduceJoin").input(inputs).input(&axes).attr("separator", separator).output()
}

fn join_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    if query.inputs.iter().any(|shape| shape.rank().is_none()) {
        return Ok(vec![PartialShape::unknown()]);
    }
    let mut merged = None::<PartialShape>;
    for shape in query.inputs.iter().filter(|shape| shape.rank() != Some(0)) {
        merged = Some(match merged {
            Some(merged) => merged.merge(shape)?,
            None => shape.clone(),
        });
    }
    Ok(vec![merged.unwrap_or(PartialShape::scalar())])
}

fn reduce_join_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let axes = query.constants[1].as_ref().map(integers).transpose()?;
    let (Some(dims), Some(axes)) = (query.inputs[0].dims(), axes) else { return Ok(vec![PartialShape::unknown()]) };
    let reduced = reduced_axes(&axes, dims.len())?;
    let keep = matches!(query.attr("keep_dims")?, AttrValue::Bool(true));
    let left = dims.iter().zip(&reduced).filter(|(_, reduced)| keep || !**reduced);
    Ok(vec![PartialShape::new(&left.map(|(&dim, &reduced)| if reduced { 1 } else { dim }).collect::<Vec<_>>())])
}

fn segment_join_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let (Some(dims), Some(ids)) = (query.inputs[0].dims(), query.inputs[1].rank()) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let count = query.constants[2].as_ref().and_then(|count| integers(count).ok()?.first().copied()).unwrap_or(-1);
    let mut out = vec![count];
    out.extend(dims.get(ids..).unwrap_or_default());
    Ok(vec![PartialShape::new(&out)])
}

/// Strings with a separator between them.
fn joined<'a>(strings: impl Iterator<Item = &'a Bytes>, separator: &[u8]) -> Bytes {
    let mut out = Vec::new();
    for (index, string) in strings.enumerate() {
        if index > 0 {
            out.extend_from_slice(separator);
        }
        out.extend_from_slice(string);
    }
    out.into()
}

fn join_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let separator = setup.bytes("separator")?;
    Ok(many(move |_, mut inputs| {
        let inputs = inputs.tensors_from(0)?;
        let shaped: Vec<&Shape> = inputs.iter().map(Tensor::shape).filter(|shape| shape.rank() > 0).collect();
        let shape = shaped.first().map_or(Shape::scalar(), |shape| (*shape).clone());
        if let Some(other) = shaped.iter().find(|other| ***other != shape) {
            return Err(invalid!("Input shapes do not match: {shape} vs. {other}"));
        }
        let columns = inputs.iter().map(Tensor::strings).collect::<Result<Vec<_>>>()?;
        let scalars: Vec<bool> = inputs.iter().map(|input| input.shape().rank() == 0).collect();
        let row = |at: usize| {
            let parts = columns.iter().zip(&scalars).map(|(strings, &scalar)| &strings[if scalar { 0 } else { at }]);
            joined(parts, &separator)
        };
        let strings = (0..shape.elements()).map(row).collect();
        Ok(outputs![Tensor::from_strings(shape, strings)?])
    }))
}

/// For each axis whether it is reduced.
fn reduced_axes(axes: &[i64], rank: usize) -> Result<Vec<bool>> {
    let mut reduced = vec![false; rank];
    for &number in axes {
        let axis = to_axis(number, rank)
            .ok_or_else(|| out_of_range!("Invalid reduction dimension {number} for input with {rank} dimension(s)"))?;
        if std::mem::replace(&mut reduced[axis], true) {
            return Err(invalid!("Duplicate reduction dimension {number}"));
        }
    }
    Ok(reduced)
}

fn reduce_join_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (keep, separator) = (setup.bool("keep_dims")?, setup.bytes("separator")?);
    Ok(binary(move |_, input, axes| {
        let rank = input.shape().rank();
        let numbers = integers(&axes)?;
        let reduced = reduced_axes(&numbers, rank)?;
        // Of the axes in the order of the attribute, the first changes fastest.
        let inner: Vec<usize> = numbers.iter().rev().filter_map(|&number| to_axis(number, rank)).collect();
        let outer: Vec<usize> = (0..rank).filter(|&axis| !reduced[axis]).collect();
        let (groups, members) = (offsets(input.shape(), &outer), offsets(input.shape(), &inner));
        let strings = input.strings()?;
        let group = |&start: &usize| joined(members.iter().map(|&member| &strings[start + member]), &separator);
        let strings = groups.iter().map(group).collect();
        let left = (0..rank).filter(|&axis| keep || !reduced[axis]);
        let shape: Shape = left.map(|axis| if reduced[axis] { 1 } else { input.shape()[axis] }).collect();
        Tensor::from_strings(shape, strings)
    }))
}

/// The position of each index of these axes, in row-major order of the axes as listed.
fn offsets(shape: &Shape, axes: &[usize]) -> Vec<usize> {
    let strides = shape.strides();
    axes.iter().fold(vec![0], |offsets, &axis| {
        let steps = |&offset: &usize| (0..shape[axis]).map(move |step| (offset, step));
        offsets.iter().flat_map(steps).map(|(offset, step)| offset + step * strides[axis]).collect()
    })
}

fn segment_join_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let separator = setup.bytes("separator")?;
    Ok(many(move |_, mut inputs| {
        let (input, ids, count) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![run_segment_join(&input, &ids, &count, &separator)?])
    }))
}

fn run_segment_join(input: &Tensor, ids: &Tensor, count: &Tensor, separator: &[u8]) -> Result<Tensor> {
    if count.elements() == 0 {
        return Err(invalid!("Number of segments cannot be empty."));
    }
    if count.shape().rank() != 0 {
        return Err(invalid!("Number of segments must be a scalar"));
    }
    let count = integers(count)?[0];
    if count < 0 {
        return Err(invalid!("Number of segments must be non-negative but got {count}"));
    }
    let (rank, id_rank) = (input.shape().rank(), ids.shape().rank());
    if id_rank == 0 {
        return Err(invalid!("Segment_id cannot have rank 0"));
    }
    if id_rank > rank {
        return Err(out_of_range!("Invalid segment_id rank {id_rank} for input with {rank} dimension(s)"));
    }
    if let Some(axis) = (0..id_rank).find(|&axis| ids.shape()[axis] != input.shape()[axis]) {
        let found = ids.shape()[axis];
        return Err(invalid!("Segment dimension is {found} while input dimension is {rank} in rank {axis}"));
    }
    let ids = integers(ids)?;
    if ids.iter().any(|id| !(0..count).contains(id)) {
        return Err(invalid!("segment_ids are not allowed to exceed num_segments or to have negative values."));
    }
    let mut dims = vec![count];
    dims.extend(input.shape()[id_rank..].iter().map(|&dim| dim as i64));
    let shape = Shape::checked(&dims)?;
    let width: usize = input.shape()[id_rank..].iter().product();
    let mut texts = Tensor::zeros_of(tensor::DType::STRING, &shape)?;
    let mut joined: Vec<Vec<u8>> = vec![Vec::new(); texts.elements()];
    for (row, &id) in input.strings()?.chunks(width.max(1)).zip(&ids) {
        for (column, string) in row.iter().enumerate() {
            let text = &mut joined[id as usize * width + column];
            if !text.is_empty() {
                text.extend_from_slice(separator);
            }
            text.extend_from_slice(string);
        }
    }
    for (slot, text) in texts.strings_mut()?.iter_mut().zip(joined) {
        *slot = text.into();
    }
    Ok(texts)
}

fn format_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (template, placeholder) = (setup.string("template")?, setup.string("placeholder")?);
    let most = setup.int("summarize")?;
    let parts: Vec<String> = match placeholder.as_str() {
        "" => template.chars().map(String::from).collect(),
        mark => template.split(mark).map(str::to_string).collect(),
    };
    let (places, count) = (parts.len().saturating_sub(1), setup.input_types().len());
    if places != count {
        return Err(invalid!("num placeholders in template and num inputs must match: {places} vs. {count}"));
    }
    Ok(many(move |_, mut inputs| {
        let mut text = parts.first().cloned().unwrap_or_default();
        for (input, part) in inputs.tensors_from(0)?.iter().zip(parts.iter().skip(1)) {
            text.push_str(&rows(input, most)?);
            text.push_str(part);
        }
        Ok(outputs![Tensor::string(text)])
    }))
}
