//! RaggedTensorToTensor: pads a ragged tensor with a default value.

use crate::array::gather_nd::gather_nd;
use crate::array::index::{joined, product};
use crate::array::nodes;
use crate::array::units::Unit;
use crate::array::where_true::where_true;
use graph::{AttrValue, Node, Output};
use op::shapes::unknown;
use op::{Grad, Gradient, Grads, Inputs, Kernel, Op, Outputs, PLAIN, Setup, Slices, many, outputs};
use status::{Result, invalid};
use tensor::{Bytes, DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "RaggedTensorToTensor(shape: Tshape, values: T, default_value: T, \
          row_partition_tensors: num_row_partition_tensors * Tindex) -> result: T; T: type; Tindex: {int64, int32}; \
          Tshape: {int64, int32}; num_row_partition_tensors: int >= 1; row_partition_types: list(string)",
    shape: unknown,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// The rule transforms value numbers in the same way: they show which elements of the result are values, and which
/// values.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let inputs = op.all_inputs();
    let (values, default, partitions) = (&inputs[1], &inputs[2], &inputs[3..]);
    let types = op.attr("row_partition_types")?;
    let AttrValue::List(list) = &types else { return Err(invalid!("attr 'row_partition_types' must be a list")) };
    let depth = list.strings.iter().filter(|kind| &kind[..] != b"FIRST_DIM_SIZE").count() as i32;
    let scope = dy.scope();
    let dims = nodes::shape(values, DType::I32);
    let shape = nodes::part(&nodes::shape(dy, DType::I32), 0, Some(depth + 1));
    let numbers = nodes::range(&nodes::element(&dims, 0));
    let builder = scope.op("RaggedTensorToTensor").input(&shape).input(&numbers).input(&nodes::int(scope, -1));
    let places = builder.inputs(partitions).attr("row_partition_types", types.clone()).output();
    let found = nodes::pair("NotEqual", &places, &nodes::int(scope, -1));
    let filled = where_true(&found);
    let slices = Slices { indices: gather_nd(&places, &filled), values: gather_nd(dy, &filled), shape: Some(dims) };
    let rest = gather_nd(dy, &where_true(&nodes::one("LogicalNot", &found)));
    let axes = nodes::range(&(nodes::rank(&rest) - nodes::rank(default)));
    let rest = nodes::reshape(&nodes::sum(&rest, &axes, false), &nodes::shape(default, DType::I32));
    let mut grads: Grads = inputs.iter().map(|_| None).collect();
    grads[1] = Some(Gradient::Sparse(slices));
    grads[2] = Some(Gradient::Dense(rest));
    Ok(grads)
}

/// How a level of rows is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partition {
    FirstSize,
    RowIds,
    Splits,
}

impl Partition {
    fn of(text: &Bytes) -> Result<Partition> {
        match &text[..] {
            b"FIRST_DIM_SIZE" => Ok(Partition::FirstSize),
            b"VALUE_ROWIDS" => Ok(Partition::RowIds),
            b"ROW_SPLITS" => Ok(Partition::Splits),
            other => Err(invalid!("Unknown string for partition info type: {}", String::from_utf8_lossy(other))),
        }
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let kinds = setup.list("row_partition_types")?.strings.iter().map(Partition::of).collect::<Result<Vec<_>>>()?;
    if setup.int("num_row_partition_tensors")? as usize != kinds.len() {
        return Err(invalid!("{} row_partition_types given for another number of tensors", kinds.len()));
    }
    Ok(many(move |_, inputs| run(inputs, &kinds)).heavy())
}

/// The levels of rows between the first axis and the values.
struct Levels {
    first: i64,
    levels: Vec<(Partition, Vec<i64>)>,
}

impl Levels {
    fn new(kinds: &[Partition], tensors: &[Tensor]) -> Result<Levels> {
        let mut levels = Vec::new();
        for (&kind, tensor) in kinds.iter().zip(tensors) {
            levels.push((kind, op::shapes::integers(tensor)?));
        }
        let Some((kind, first)) = levels.first() else { return Err(invalid!("No row_partition_types given.")) };
        if first.is_empty() {
            return Err(invalid!("Invalid first partition input. Tensor requires at least one element."));
        }
        let first = match kind {
            Partition::FirstSize => first[0],
            Partition::RowIds => return Err(invalid!("VALUE_ROWIDS cannot be first")),
            Partition::Splits => first.len() as i64 - 1,
        };
        if *kind == Partition::FirstSize {
            levels.remove(0);
        }
        if levels.iter().any(|(kind, _)| *kind == Partition::FirstSize) {
            return Err(invalid!("Unsupported partition type:FIRST_DIM_SIZE"));
        }
        Ok(Levels { first, levels })
    }

    /// The longest row of a level.
    fn width(&self, level: usize) -> i64 {
        let (kind, numbers) = &self.levels[level];
        match kind {
            Partition::Splits => {
                numbers.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max().unwrap_or(0).max(0)
            }
            _ => numbers.chunk_by(|a, b| a == b).map(|run| run.len() as i64).max().unwrap_or(0),
        }
    }
}

fn run(mut inputs: Inputs, kinds: &[Partition]) -> Result<Outputs> {
    let (shape, values, default) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let levels = Levels::new(kinds, &inputs.tensors_from(3)?)?;
    check_default(default.shape(), values.shape())?;
    let dims = result_dims(&shape, &values, &levels)?;
    let result = Shape::checked(&dims)?;
    let depth = levels.levels.len();
    let mut output = Tensor::scratch_of(values.dtype(), result.clone())?;
    if result.elements() == 0 {
        return Ok(outputs![output]);
    }
    let places = places(&levels, &dims)?;
    if values.shape().first().is_none_or(|&count| count < places.len()) {
        return Err(invalid!("Row partitions name {} values, but there are {}", places.len(), values.shape()));
    }
    let element = &result[depth + 1..];
    for_units!(values.dtype(), E => fill(E::of(&values)?, &places, E::of(&default)?, (default.shape(), element), E::of_mut(&mut output)?));
    Ok(outputs![output])
}

fn check_default(default: &Shape, values: &Shape) -> Result<()> {
    if default.rank() >= values.rank() {
        return Err(invalid!(
            "default_value.shape={default} and rt_input.flat_values.shape={values} are incompatible: default_value.rank = {}  \
             must be less than rt_input.flat_values.rank = {}",
            default.rank(),
            values.rank()
        ));
    }
    for axis in 0..default.rank() {
        let (own, other) = (default[axis], values[axis + 1]);
        if own != 1 && own != other {
            let from_end = axis as i64 - default.rank() as i64;
            return Err(invalid!(
                "default_value.shape={default} and rt_input.flat_values.shape={values} are incompatible: \
                 default_value.shape[{from_end}] = {own} but rt_input.flat_values.shape[{from_end}] = {other}"
            ));
        }
    }
    Ok(())
}

/// The dimensions of the result: as asked for, else as large as needed.
fn result_dims(shape: &Tensor, values: &Tensor, levels: &Levels) -> Result<Vec<i64>> {
    let depth = levels.levels.len();
    let rank = depth + values.shape().rank();
    let asked = op::shapes::integers(shape)?;
    let unknown_rank = shape.shape().rank() == 0 && asked == [-1];
    if shape.shape().rank() == 0 && !unknown_rank {
        return Err(invalid!("shape must be a vector, or -1 if nothing is known of it"));
    }
    let mut dims = if unknown_rank { vec![-1; rank] } else { asked.clone() };
    let text =
        if unknown_rank { "<unknown>".to_string() } else { format!("[{}]", joined(&asked, ",").replace("-1", "?")) };
    if dims.len() != rank {
        return Err(invalid!(
            "rt_input.shape and shape={text} are incompatible: rt_input.rank = {rank} but shape.rank = {}",
            dims.len()
        ));
    }
    for axis in 1..values.shape().rank() {
        let (size, at) = (values.shape()[axis] as i64, depth + axis);
        if dims[at] >= 0 && dims[at] != size {
            return Err(invalid!(
                "rt_input.shape and shape={text} are incompatible: rt_input.shape[{at}] = {size} but shape[{at}] = {}",
                dims[at]
            ));
        }
        dims[at] = size;
    }
    if dims[0] < 0 {
        dims[0] = levels.first;
    }
    for level in 0..depth {
        if dims[level + 1] < 0 {
            dims[level + 1] = levels.width(level);
        }
    }
    Ok(dims)
}

/// The position of each value in the result, counted in values; none for values beyond the result.
fn places(levels: &Levels, dims: &[i64]) -> Result<Vec<Option<usize>>> {
    let size = |axis: usize| dims[axis] as usize;
    let depth = levels.levels.len();
    let stride = |axis: usize| (axis + 1..=depth).map(size).product::<usize>();
    let rows = Shape::checked(&[levels.first])?.elements();
    let mut places: Vec<Option<usize>> = (0..rows).map(|row| (row < size(0)).then(|| row * stride(0))).collect();
    for (level, (kind, numbers)) in levels.levels.iter().enumerate() {
        let (width, step) = (size(level + 1), stride(level + 1));
        let inside = |parent: Option<usize>, column: usize| {
            parent.filter(|_| column < width).map(|parent| parent + column * step)
        };
        places = match kind {
            Partition::Splits => by_splits(numbers, &places, inside)?,
            _ => by_row_ids(numbers, &places, inside)?,
        };
    }
    Ok(places)
}

fn by_splits(
    splits: &[i64],
    parents: &[Option<usize>],
    inside: impl Fn(Option<usize>, usize) -> Option<usize>,
) -> Result<Vec<Option<usize>>> {
    let inside = &inside;
    let rows = splits.len().saturating_sub(1);
    if rows > parents.len() {
        return Err(invalid!("Row partition size is greater than output size: {rows} > {}", parents.len()));
    }
    if splits.first().is_some_and(|&first| first != 0) || splits.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(invalid!("Invalid row split size."));
    }
    let row = |(pair, &parent): (&[i64], &Option<usize>)| {
        let columns = 0..(pair[1] - pair[0]) as usize;
        columns.map(move |column| inside(parent, column))
    };
    Ok(splits.windows(2).zip(parents).flat_map(row).collect())
}

fn by_row_ids(
    ids: &[i64],
    parents: &[Option<usize>],
    inside: impl Fn(Option<usize>, usize) -> Option<usize>,
) -> Result<Vec<Option<usize>>> {
    let mut places = Vec::with_capacity(ids.len());
    for run in ids.chunk_by(|a, b| a == b) {
        let Some(&parent) = usize::try_from(run[0]).ok().and_then(|row| parents.get(row)) else {
            return Err(invalid!("Got next_value_rowid={} which is not less than {}", run[0], parents.len()));
        };
        places.extend((0..run.len()).map(|column| inside(parent, column)));
    }
    Ok(places)
}

fn fill<E: Unit>(
    values: &[E],
    places: &[Option<usize>],
    default: &[E],
    (default_shape, element): (&[usize], &[usize]),
    output: &mut [E],
) {
    let width = product(element);
    let one: Vec<E> = (0..width).map(|place| default[repeated(place, default_shape, element)].clone()).collect();
    output.chunks_exact_mut(width).for_each(|row| row.clone_from_slice(&one));
    for (value, place) in values.chunks_exact(width).zip(places) {
        if let Some(place) = place {
            output[place * width..][..width].clone_from_slice(value);
        }
    }
}

/// The place in the default value that element `place` of a value is filled from.
fn repeated(place: usize, default: &[usize], element: &[usize]) -> usize {
    let skipped = element.len() - default.len();
    let mut source = 0;
    for (axis, &dim) in default.iter().enumerate() {
        let at = place / product(&element[skipped + axis + 1..]) % element[skipped + axis];
        source = source * dim + if dim == 1 { 0 } else { at };
    }
    source
}
