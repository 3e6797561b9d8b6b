//! SparseSplit: splits a sparse tensor along an axis.

use super::coo::{Coo, index_tensor};
use crate::array::args::to_axis;
use crate::array::gather::run_gather;
use crate::array::index::{from_places, integer};
use graph::Output;
use op::{Ctx, Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many};
use status::{Result, invalid};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseSplit(split_dim: int64, indices: int64, values: T, shape: int64) -> output_indices: num_split * int64, \
          output_values: num_split * T, output_shape: num_split * int64; num_split: int >= 1; T: type",
    shape: split_shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// Splits a sparse tensor into `count` parts along `axis`: all indices, then all values, then all shapes.
pub fn sparse_split(axis: &Output, indices: &Output, values: &Output, shape: &Output, count: usize) -> Vec<Output> {
    let builder = values.scope().op("SparseSplit").input(axis).input(indices).input(values).input(shape);
    builder.attr("num_split", count).node().outputs()
}

fn split_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let parts = query.outputs / 3;
    let shape = query.inputs[3].merge(&PartialShape::of_rank(1))?;
    let rank = shape.dims().map_or(-1, |dims| dims[0]);
    let mut shapes = vec![PartialShape::new(&[-1, rank]); parts];
    shapes.resize(2 * parts, PartialShape::of_rank(1));
    shapes.resize(3 * parts, shape);
    Ok(shapes)
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let parts = setup.int("num_split")?;
    Ok(many(move |ctx, inputs| run(ctx, inputs, parts)))
}

fn run(ctx: &Ctx<'_>, mut inputs: Inputs, parts: i64) -> Result<Outputs> {
    let (axis, indices) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let (values, shape) = (inputs.tensor(2)?, inputs.tensor(3)?);
    let axis = integer(&axis, || invalid!("Input axis should be a scalar but received shape {}", axis.shape()))?;
    let coo = Coo::new(&indices, &values, &shape)?;
    coo.check_inside()?;
    let rank = coo.rank();
    let Some(axis) = to_axis(axis, rank) else {
        return Err(invalid!("Input axis should be in range [-{rank}, {rank}), got {axis}"));
    };
    let size = coo.dims[axis];
    if parts < 1 || parts > size {
        return Err(invalid!(
            "Input num_split should be between 1 and the splitting dimension size ({size}), got {parts}"
        ));
    }
    coo.shape()?;
    let cut = Cut { each: size / parts, larger: size % parts };
    let mut members = vec![Vec::new(); parts as usize];
    for (number, index) in coo.each_index().enumerate() {
        members[cut.part(index[axis])].push(number);
    }
    collect(ctx, &coo, axis, &cut, &members)
}

/// How an axis is cut: the first `larger` parts have one more than `each`.
struct Cut {
    each: i64,
    larger: i64,
}

impl Cut {
    fn part(&self, at: i64) -> usize {
        let first = self.larger * (self.each + 1);
        if at < first { (at / (self.each + 1)) as usize } else { (self.larger + (at - first) / self.each) as usize }
    }

    fn start(&self, part: usize) -> i64 {
        part as i64 * self.each + self.larger.min(part as i64)
    }
}

fn collect(ctx: &Ctx<'_>, coo: &Coo<'_>, axis: usize, cut: &Cut, members: &[Vec<usize>]) -> Result<Outputs> {
    let (mut indices, mut values, mut shapes): (Vec<Tensor>, Vec<Tensor>, Vec<Tensor>) = Default::default();
    for (part, members) in members.iter().enumerate() {
        let mut rows: Vec<i64> = members.iter().flat_map(|&number| coo.index(number)).copied().collect();
        rows.iter_mut().skip(axis).step_by(coo.rank()).for_each(|at| *at -= cut.start(part));
        indices.push(index_tensor(&rows, members.len(), coo.rank())?);
        let order = from_places(members, [members.len()], DType::I64)?;
        values.push(run_gather(ctx, coo.values, &order, 0, 0)?);
        let mut dims = coo.dims.to_vec();
        dims[axis] = cut.start(part + 1) - cut.start(part);
        shapes.push(Tensor::vector(&dims));
    }
    Ok(indices.into_iter().chain(values).chain(shapes).map(Into::into).collect())
}
