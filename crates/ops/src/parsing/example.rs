//! Parses batches of examples, with a tensor for each feature.

use super::columns::{Column, read_batch, read_single};
use super::spec::{Dense, DenseForm, Ragged, Sparse, Spec, count, dense, same_length, shapes};
use graph::{AttrValue, ShapeQuery};
use op::shapes::unknown;
use op::{Inputs, Kernel, Op, Outputs, Setup, Value, many};
use status::{Result, invalid};
use tensor::{Bytes, DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = parsers! {
    "ParseExample(serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string, \
     dense_defaults: [Tdense]) -> sparse_indices: Nsparse * int64, sparse_values: [sparse_types], \
     sparse_shapes: Nsparse * int64, dense_values: [Tdense]; Nsparse: int >= 0; Ndense: int >= 0; \
     sparse_types: list({float, int64, string}) >= 0; Tdense: list({float, int64, string}) >= 0; \
     dense_shapes: list(shape) >= 0", unknown, example_kernel;
    "ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string, \
     dense_defaults: [Tdense]) -> sparse_indices: num_sparse * int64, sparse_values: [sparse_types], \
     sparse_shapes: num_sparse * int64, dense_values: [Tdense], ragged_values: [ragged_value_types], \
     ragged_row_splits: [ragged_split_types]; Tdense: list({float, int64, string}) >= 0; num_sparse: int >= 0; \
     sparse_types: list({float, int64, string}) >= 0; ragged_value_types: list({float, int64, string}) >= 0; \
     ragged_split_types: list({int32, int64}) >= 0; dense_shapes: list(shape) >= 0", example_v2_shapes, example_v2_kernel;
};

/// Dense features have a dimension of examples in front if there are several; sparse ones have it as a column of their
/// indices, and ragged ones as their row splits.
fn example_v2_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let list = |name: &str| match query.attr(name)? {
        AttrValue::List(list) => Ok(list),
        _ => Err(invalid!("attr '{name}' of {} is not of type 'list'", query.def.name)),
    };
    let AttrValue::Int(sparse) = *query.attr("num_sparse")? else { return unknown(query) };
    let (dense, ragged) = (&list("dense_shapes")?.shapes, list("ragged_value_types")?.types.len());
    let Some(examples) = query.inputs.first().and_then(PartialShape::dims).filter(|dims| dims.len() <= 1) else {
        return unknown(query);
    };
    let sparse = usize::try_from(sparse).unwrap_or(0).min(query.outputs);
    let rank = examples.len() as i64 + 1;
    let mut shapes = vec![PartialShape::new(&[-1, rank]); sparse];
    shapes.extend(vec![PartialShape::new(&[-1]); sparse]);
    shapes.extend(vec![PartialShape::new(&[rank]); sparse]);
    shapes.extend(dense.iter().map(|shape| match shape.dims() {
        Some(dims) => PartialShape::new(&[examples, dims].concat()),
        None => PartialShape::unknown(),
    }));
    shapes.extend(vec![PartialShape::new(&[-1]); ragged]);
    shapes.extend(vec![PartialShape::new(&[-1]); ragged]);
    if shapes.len() == query.outputs { Ok(shapes) } else { unknown(query) }
}

fn example_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let forms = DenseForm::list(&setup.types("Tdense")?, &shapes(setup, "dense_shapes")?)?;
    let types = setup.types("sparse_types")?;
    same_length(count(setup, "Nsparse")?, types.len(), "len(sparse_keys) != len(sparse_types)")?;
    same_length(count(setup, "Ndense")?, setup.types("Tdense")?.len(), "len(dense_keys) != len(dense_types)")?;
    same_length(count(setup, "Ndense")?, forms.len(), "len(dense_keys) != len(dense_shapes)")?;
    Ok(many(move |ctx, mut inputs| {
        let (serialized, names) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if serialized.shape().rank() != 1 {
            return Err(invalid!("Expected serialized to be a vector, got shape: {}", serialized.shape()));
        }
        check_names(&names, &serialized)?;
        let sparse_keys = scalar_keys(&mut inputs, 2, types.len())?;
        let dense_keys = scalar_keys(&mut inputs, 2 + types.len(), forms.len())?;
        let defaults = inputs.tensors_from(2 + types.len() + forms.len())?;
        let spec = Spec {
            dense: denses(dense_keys, &forms, &defaults)?,
            sparse: sparses(sparse_keys, &types),
            ragged: Vec::new(),
        };
        let columns = read_batch(ctx.pool(), &spec, serialized.strings()?, names.strings()?)?;
        batch_outputs(&spec, columns, serialized.elements())
    })
    .heavy())
}

fn example_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let forms = DenseForm::list(&setup.types("Tdense")?, &shapes(setup, "dense_shapes")?)?;
    let (types, ragged_types) = (setup.types("sparse_types")?, setup.types("ragged_value_types")?);
    let split_types = setup.types("ragged_split_types")?;
    same_length(count(setup, "num_sparse")?, types.len(), "len(sparse_keys) != len(sparse_types)")?;
    same_length(setup.types("Tdense")?.len(), forms.len(), "len(dense_keys) != len(dense_shapes)")?;
    same_length(ragged_types.len(), split_types.len(), "len(ragged_keys) != len(ragged_split_types)")?;
    Ok(many(move |ctx, mut inputs| {
        let (serialized, names) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if serialized.shape().rank() > 1 {
            return Err(invalid!("Expected serialized to be a scalar or vector, got shape: {}", serialized.shape()));
        }
        check_names(&names, &serialized)?;
        let (sparse_keys, dense_keys, ragged_keys) = (inputs.tensor(2)?, inputs.tensor(3)?, inputs.tensor(4)?);
        check_keys("dense_keys", "len(dense_types)", &dense_keys, forms.len())?;
        check_keys("sparse_keys", "num_sparse", &sparse_keys, types.len())?;
        check_keys("ragged_keys", "len(ragged_value_types)", &ragged_keys, ragged_types.len())?;
        let spec = Spec {
            dense: denses(dense_keys.strings()?.to_vec(), &forms, &inputs.tensors_from(5)?)?,
            sparse: sparses(sparse_keys.strings()?.to_vec(), &types),
            ragged: raggeds(ragged_keys.strings()?, &ragged_types, &split_types),
        };
        if serialized.shape().rank() == 0 {
            return single_outputs(&spec, read_single(&spec, &serialized.to_string_scalar()?)?);
        }
        let columns = read_batch(ctx.pool(), &spec, serialized.strings()?, names.strings()?)?;
        batch_outputs(&spec, columns, serialized.elements())
    })
    .heavy())
}

fn check_names(names: &Tensor, serialized: &Tensor) -> Result<()> {
    if names.elements() > 0 && names.shape() != serialized.shape() {
        return Err(invalid!(
            "Expected names have the same shape as serialized: name.shape={}, serialized.shape={}",
            names.shape(),
            serialized.shape()
        ));
    }
    Ok(())
}

fn check_keys(name: &str, of: &str, keys: &Tensor, wanted: usize) -> Result<()> {
    match keys.elements() {
        found if found == wanted => Ok(()),
        found => Err(invalid!("Expected len({name}) == {of} but got: {found} vs. {wanted}")),
    }
}

/// Keys, one for each input.
fn scalar_keys(inputs: &mut Inputs, first: usize, count: usize) -> Result<Vec<Bytes>> {
    inputs.tensors(first, count)?.iter().map(Tensor::to_string_scalar).collect()
}

/// Dense features in their order.
pub(super) fn denses(keys: Vec<Bytes>, forms: &[DenseForm], defaults: &[Tensor]) -> Result<Vec<Dense>> {
    if defaults.len() != forms.len() {
        return Err(invalid!(
            "Expected len(dense_defaults) == len(dense_keys) but got: {} vs. {}",
            defaults.len(),
            forms.len()
        ));
    }
    let parts = keys.into_iter().zip(forms).zip(defaults).enumerate();
    parts.map(|(index, ((key, form), default))| dense(index, key, form, default)).collect()
}

/// Sparse features in their order.
pub(super) fn sparses(keys: Vec<Bytes>, types: &[DType]) -> Vec<Sparse> {
    keys.into_iter().zip(types).map(|(key, &dtype)| Sparse { key, dtype }).collect()
}

/// Ragged features in their order.
pub(super) fn raggeds(keys: &[Bytes], types: &[DType], splits: &[DType]) -> Vec<Ragged> {
    let parts = keys.iter().zip(types).zip(splits);
    parts.map(|((key, &dtype), &splits)| Ragged { key: key.clone(), dtype, splits }).collect()
}

/// The outputs of several examples, in the order of both ops.
pub(super) fn batch_outputs(spec: &Spec, columns: Vec<Column>, examples: usize) -> Result<Outputs> {
    let mut columns = columns.into_iter();
    let dense = spec.dense.iter().zip(columns.by_ref()).map(|(dense, column)| dense_batch(dense, column, examples));
    let dense = dense.collect::<Result<Vec<_>>>()?;
    let mut sparse = [Vec::new(), Vec::new(), Vec::new()];
    for column in columns.by_ref().take(spec.sparse.len()) {
        let (count, widest) = (column.values.len(), column.widest());
        sparse[0].push(pairs(&column.ends)?);
        sparse[1].push(column.values.tensor([count])?);
        sparse[2].push(Tensor::vector(&[examples as i64, widest as i64]));
    }
    let mut ragged = [Vec::new(), Vec::new()];
    for (feature, column) in spec.ragged.iter().zip(columns) {
        let count = column.values.len();
        ragged[0].push(column.values.tensor([count])?);
        ragged[1].push(splits(feature.splits, &column.ends)?);
    }
    Ok(listed(sparse, dense, ragged))
}

fn dense_batch(dense: &Dense, column: Column, examples: usize) -> Result<Tensor> {
    let form = &dense.form;
    if !form.is_variable {
        return column.values.tensor([&[examples], &form.dims()[..]].concat());
    }
    let width = column.widest();
    let shape = [&[examples, width / form.stride.max(1)], &form.inner_dims()[..]].concat();
    column.values.padded(&column.ends, width, Some(&dense.default))?.tensor(shape)
}

/// Row and place in the row of each value.
fn pairs(ends: &[usize]) -> Result<Tensor> {
    let count = ends.last().copied().unwrap_or(0);
    let mut tensor = Tensor::scratch::<i64>([count, 2])?;
    let (mut out, mut start) = (tensor.values_mut::<i64>()?.chunks_exact_mut(2), 0);
    for (row, &end) in ends.iter().enumerate() {
        for (place, pair) in out.by_ref().take(end - start).enumerate() {
            pair.copy_from_slice(&[row as i64, place as i64]);
        }
        start = end;
    }
    Ok(tensor)
}

/// Zero and the ends, as integers of this type.
pub(super) fn splits(dtype: DType, ends: &[usize]) -> Result<Tensor> {
    let all = std::iter::once(&0).chain(ends);
    match dtype {
        DType::I32 => {
            let narrow = |&end: &usize| i32::try_from(end).map_err(|_| invalid!("{end} values do not fit into int32"));
            Ok(Tensor::vector(&all.map(narrow).collect::<Result<Vec<_>>>()?))
        }
        _ => Ok(Tensor::vector(&all.map(|&end| end as i64).collect::<Vec<_>>())),
    }
}

/// The outputs of one example, without an axis for examples.
pub(super) fn single_outputs(spec: &Spec, columns: Vec<Column>) -> Result<Outputs> {
    let mut columns = columns.into_iter();
    let mut dense = Vec::new();
    for (feature, column) in spec.dense.iter().zip(columns.by_ref()) {
        let (form, count) = (&feature.form, column.values.len());
        let shape = match form.is_variable {
            true => [&[count / form.stride.max(1)], &form.inner_dims()[..]].concat(),
            false => form.dims(),
        };
        dense.push(column.values.tensor(shape)?);
    }
    let mut sparse = [Vec::new(), Vec::new(), Vec::new()];
    for column in columns.by_ref().take(spec.sparse.len()) {
        let count = column.values.len();
        let places: Vec<i64> = (0..count as i64).collect();
        sparse[0].push(Tensor::from_slice([count, 1], &places)?);
        sparse[1].push(column.values.tensor([count])?);
        sparse[2].push(Tensor::vector(&[count as i64]));
    }
    let mut ragged = [Vec::new(), Vec::new()];
    for (feature, column) in spec.ragged.iter().zip(columns) {
        let count = column.values.len();
        ragged[0].push(column.values.tensor([count])?);
        ragged[1].push(Tensor::zeros_of(feature.splits, [0])?);
    }
    Ok(listed(sparse, dense, ragged))
}

fn listed(sparse: [Vec<Tensor>; 3], dense: Vec<Tensor>, ragged: [Vec<Tensor>; 2]) -> Outputs {
    sparse.into_iter().flatten().chain(dense).chain(ragged.into_iter().flatten()).map(Value::from).collect()
}
