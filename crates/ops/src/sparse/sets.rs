//! SetSize and set operations, where the last axis of a tensor holds the elements of a set.

use super::coo::{Coo, index_tensor};
use crate::array::index::{joined, product};
use graph::Output;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use std::collections::{BTreeMap, BTreeSet};
use tensor::{Bytes, DType, PartialShape, Shape, Tensor};

macro_rules! row {
    ($def:literal, $sides:expr) => {
        Op {
            def: $def,
            shape: |_| Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)]),
            grad: Grad::Unknown,
            kernel: |setup| operation_kernel(setup, $sides),
            facts: PLAIN,
        }
    };
}

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SetSize(set_indices: int64, set_values: T, set_shape: int64) -> size: int32; validate_indices: bool = true; \
              T: {int8, int16, int32, int64, uint8, uint16, string}",
        shape: size_shape,
        grad: Grad::Unknown,
        kernel: size_kernel,
        facts: PLAIN,
    },
    row!(
        "DenseToDenseSetOperation(set1: T, set2: T) -> result_indices: int64, result_values: T, result_shape: int64; \
         set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}",
        [Side::Dense, Side::Dense]
    ),
    row!(
        "DenseToSparseSetOperation(set1: T, set2_indices: int64, set2_values: T, set2_shape: int64) -> \
         result_indices: int64, result_values: T, result_shape: int64; set_operation: string; \
         validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}",
        [Side::Dense, Side::Sparse]
    ),
    row!(
        "SparseToSparseSetOperation(set1_indices: int64, set1_values: T, set1_shape: int64, set2_indices: int64, \
         set2_values: T, set2_shape: int64) -> result_indices: int64, result_values: T, result_shape: int64; \
         set_operation: string; validate_indices: bool = true; T: {int8, int16, int32, int64, uint8, uint16, string}",
        [Side::Sparse, Side::Sparse]
    ),
];

/// How many different elements each set of a sparse tensor has.
pub fn set_size(a: [&Output; 3]) -> Output {
    a[1].scope().op("SetSize").input(a[0]).input(a[1]).input(a[2]).output()
}

/// `a-b`, `b-a`, `intersection` or `union` of the sets of two dense tensors: indices, values, shape.
pub fn dense_set_operation(a: &Output, b: &Output, operation: &str) -> (Output, Output, Output) {
    let builder = a.scope().op("DenseToDenseSetOperation").input(a).input(b);
    let node = builder.attr("set_operation", operation).node();
    (node.output(0), node.output(1), node.output(2))
}

fn size_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let dims = query.constants[2].as_ref().and_then(|shape| shape.values::<i64>().ok());
    Ok(vec![match dims {
        Some([batch @ .., _]) => PartialShape::new(batch),
        _ => PartialShape::unknown(),
    }])
}

/// How one operand is given.
#[derive(Clone, Copy)]
enum Side {
    Dense,
    Sparse,
}

#[derive(Clone, Copy)]
enum Operation {
    Minus,
    MinusFrom,
    Intersection,
    Union,
}

impl Operation {
    fn of(setup: &Setup<'_>) -> Result<Operation> {
        let text = setup.string("set_operation")?.to_lowercase();
        match text.as_str() {
            "a-b" => Ok(Operation::Minus),
            "b-a" => Ok(Operation::MinusFrom),
            "intersection" => Ok(Operation::Intersection),
            "union" => Ok(Operation::Union),
            _ => Err(invalid!("Invalid set_operation {text}.")),
        }
    }

    fn apply<E: Ord + Clone>(self, a: &BTreeSet<E>, b: &BTreeSet<E>) -> Vec<E> {
        match self {
            Operation::Minus => a.difference(b).cloned().collect(),
            Operation::MinusFrom => b.difference(a).cloned().collect(),
            Operation::Intersection => a.intersection(b).cloned().collect(),
            Operation::Union => a.union(b).cloned().collect(),
        }
    }
}

/// An element of a set.
trait Member: Ord + Clone {
    fn all(values: &Tensor) -> Result<Vec<Self>>;
    fn tensor(values: Vec<Self>, dtype: DType) -> Result<Tensor>;
}

impl Member for i64 {
    fn all(values: &Tensor) -> Result<Vec<i64>> {
        op::shapes::integers(values)
    }

    fn tensor(values: Vec<i64>, dtype: DType) -> Result<Tensor> {
        fn narrowed<T: tensor::Element>(values: &[i64], narrow: fn(i64) -> T) -> Tensor {
            Tensor::vector(&values.iter().map(|&value| narrow(value)).collect::<Vec<T>>())
        }
        Ok(match dtype {
            DType::I8 => narrowed(&values, |value| value as i8),
            DType::I16 => narrowed(&values, |value| value as i16),
            DType::I32 => narrowed(&values, |value| value as i32),
            DType::U8 => narrowed(&values, |value| value as u8),
            DType::U16 => narrowed(&values, |value| value as u16),
            _ => Tensor::vector(&values),
        })
    }
}

impl Member for Bytes {
    fn all(values: &Tensor) -> Result<Vec<Bytes>> {
        Ok(values.strings()?.to_vec())
    }

    fn tensor(values: Vec<Bytes>, _: DType) -> Result<Tensor> {
        Tensor::from_strings([values.len()], values)
    }
}

/// The sets of one operand by their number, and the shape they are arranged in.
struct Sets<E> {
    shape: Vec<i64>,
    sets: BTreeMap<usize, BTreeSet<E>>,
}

impl<E: Member> Sets<E> {
    fn dense(tensor: &Tensor) -> Result<Sets<E>> {
        let dims = tensor.shape().to_i64();
        let shape = group_shape(&dims)?;
        let width = tensor.shape()[dims.len() - 1];
        let all = E::all(tensor)?;
        let groups = all.chunks_exact(width.max(1)).map(|group| group.iter().cloned().collect());
        Ok(Sets { shape, sets: groups.enumerate().collect() })
    }

    fn sparse(indices: &Tensor, values: &Tensor, dims: &Tensor, validate: bool) -> Result<Sets<E>> {
        if dims.shape().rank() != 1 {
            return Err(invalid!("Shape must be a 1D tensor."));
        }
        Shape::checked(dims.values::<i64>()?)?;
        if dims.elements() < 2 {
            return Err(invalid!("Invalid rank {}.", dims.elements()));
        }
        let coo = Coo::new(indices, values, dims)?;
        if validate {
            coo.check_sorted()?;
        }
        let shape = group_shape(coo.dims)?;
        let mut sets: BTreeMap<usize, BTreeSet<E>> = BTreeMap::new();
        for (index, member) in coo.each_index().zip(E::all(values)?) {
            if !coo.contains(index) {
                return Err(invalid!("Index out of range, [{}] vs [{}]", joined(index, ","), joined(&shape, ",")));
            }
            let group = index.iter().zip(&shape).fold(0, |group, (&at, &dim)| group * dim as usize + at as usize);
            sets.entry(group).or_default().insert(member);
        }
        Ok(Sets { shape, sets })
    }
}

fn group_shape(dims: &[i64]) -> Result<Vec<i64>> {
    match dims {
        [batch @ .., _] if !batch.is_empty() => Ok(batch.to_vec()),
        _ => Err(invalid!("Shape [{}] has rank {} < 2", joined(dims, ","), dims.len())),
    }
}

fn size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let validate = setup.bool("validate_indices")?;
    let strings = setup.dtype("T")? == DType::STRING;
    Ok(many(move |_, mut inputs| {
        let (indices, values, shape) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        match strings {
            true => sizes(Sets::<Bytes>::sparse(&indices, &values, &shape, validate)?),
            false => sizes(Sets::<i64>::sparse(&indices, &values, &shape, validate)?),
        }
    }))
}

fn sizes<E: Member>(sets: Sets<E>) -> Result<Outputs> {
    let mut output = Tensor::zeros::<i32>(Shape::checked(&sets.shape)?)?;
    let sizes = output.values_mut::<i32>()?;
    for (group, set) in sets.sets {
        sizes[group] = set.len() as i32;
    }
    Ok(outputs![output])
}

fn operation_kernel(setup: &Setup<'_>, sides: [Side; 2]) -> Result<Kernel> {
    let (operation, validate) = (Operation::of(setup)?, setup.bool("validate_indices")?);
    let dtype = setup.dtype("T")?;
    Ok(many(move |_, inputs| match dtype {
        DType::STRING => run::<Bytes>(inputs, sides, operation, validate, dtype),
        _ => run::<i64>(inputs, sides, operation, validate, dtype),
    }))
}

fn run<E: Member>(
    mut inputs: Inputs,
    sides: [Side; 2],
    operation: Operation,
    validate: bool,
    dtype: DType,
) -> Result<Outputs> {
    let mut next = 0;
    let mut take = |side: Side| {
        let first = next;
        match side {
            Side::Dense => {
                next += 1;
                Sets::<E>::dense(&inputs.tensor(first)?)
            }
            Side::Sparse => {
                next += 3;
                let [indices, values, shape] = [0, 1, 2].map(|part| inputs.tensor(first + part));
                Sets::sparse(&indices?, &values?, &shape?, validate)
            }
        }
    };
    let (a, b) = (take(sides[0])?, take(sides[1])?);
    if a.shape != b.shape {
        return Err(invalid!("Mismatched shapes [{}] vs [{}]", joined(&a.shape, ","), joined(&b.shape, ",")));
    }
    result(&a, &b, operation, dtype)
}

fn result<E: Member>(a: &Sets<E>, b: &Sets<E>, operation: Operation, dtype: DType) -> Result<Outputs> {
    let none = BTreeSet::new();
    let groups: BTreeSet<usize> = a.sets.keys().chain(b.sets.keys()).copied().collect();
    let dims: Vec<usize> = a.shape.iter().map(|&dim| dim as usize).collect();
    let (mut rows, mut values, mut widest) = (Vec::new(), Vec::new(), 0);
    for group in groups {
        let set = |sets: &Sets<E>| sets.sets.get(&group).unwrap_or(&none).clone();
        let members = operation.apply(&set(a), &set(b));
        widest = widest.max(members.len());
        for (place, member) in members.into_iter().enumerate() {
            rows.extend((0..dims.len()).map(|axis| (group / product(&dims[axis + 1..]) % dims[axis]) as i64));
            rows.push(place as i64);
            values.push(member);
        }
    }
    let shape: Vec<i64> = a.shape.iter().copied().chain([widest as i64]).collect();
    let indices = index_tensor(&rows, values.len(), shape.len())?;
    Ok(outputs![indices, E::tensor(values, dtype)?, Tensor::vector(&shape)])
}
