//! Restore, RestoreSlice, RestoreV2: read values from checkpoints.

use super::args::{file, named_slices, prefix, strings};
use super::pace::Doing;
use super::stored::{InMemory, StoredTensor};
use super::systems;
use graph::{AttrValue, Output, StateRole};
use io::slice::parse_shape_and_slice;
use io::{Bundle, FileSystems, TensorSliceReader};
use op::shapes::unknown;
use op::{Grad, Inputs, Kernel, Op, PLAIN, Setup, ShapeQuery, Stored, Value, many, stored};
use status::{Code, Result, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Restore(file_pattern: string, tensor_name: string) -> tensor: dt; dt: type; preferred_shard: int = -1; \
              stateful",
        shape: unknown,
        grad: Grad::Stop,
        kernel: |setup| first_format(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "RestoreSlice(file_pattern: string, tensor_name: string, shape_and_slice: string) -> tensor: dt; \
              dt: type; preferred_shard: int = -1; stateful",
        shape: unknown,
        grad: Grad::Stop,
        kernel: |setup| first_format(setup, true),
        facts: PLAIN,
    },
    Op {
        def: "RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string) -> tensors: [dtypes]; \
              dtypes: list(type) >= 1; stateful",
        shape: restored_shapes,
        grad: Grad::Stop,
        kernel: restore_v2_kernel,
        facts: PLAIN.state_role(StateRole::Restores),
    },
];

/// The op of `restore_v2`, after which savers name their nodes.
pub const RESTORE_V2: &str = "RestoreV2";

/// Tensors of these types by their names; an empty slice means the whole tensor.
pub fn restore_v2(prefix: &Output, names: &Output, slices: &Output, types: &[DType]) -> Vec<Output> {
    let builder = prefix.scope().op(RESTORE_V2).input(prefix).input(names).input(slices);
    builder.attr("dtypes", AttrValue::from(types.to_vec())).node().outputs()
}

/// Slices that are known when the graph is built determine the shapes of the outputs.
fn restored_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let slices = query.constants[2].as_ref().map(strings).transpose()?.unwrap_or_default();
    let shape = |place: usize| match slices.get(place).map(String::as_str) {
        None | Some("") => Ok(PartialShape::unknown()),
        Some(text) => Ok(PartialShape::from(&parse_shape_and_slice(text)?.2)),
    };
    (0..query.outputs).map(shape).collect()
}

fn first_format(setup: &Setup<'_>, sliced: bool) -> Result<Kernel> {
    let (systems, dtype) = (systems(setup)?, setup.dtype("dt")?);
    Ok(many(move |_, mut inputs: Inputs| {
        let pattern = file(&inputs.tensor(0)?, "file_pattern")?;
        let name = file(&inputs.tensor(1)?, "tensor_name")?;
        let slice = if sliced { file(&inputs.tensor(2)?, "shape_and_slice")? } else { String::new() };
        let tensor = restore_first(&TensorSliceReader::open(&systems, &pattern)?, &name, &slice, dtype)?;
        Ok(std::iter::once(Value::Tensor(tensor)).collect())
    })
    .heavy())
}

/// Reads from files of the first format.
fn restore_first(reader: &TensorSliceReader, name: &str, slice: &str, dtype: DType) -> Result<Tensor> {
    let stored = reader.tensor(name)?;
    if stored.dtype != dtype {
        return Err(invalid!(
            "Expected to restore a tensor of type {dtype}, got a tensor of type {} instead: tensor_name = {name}",
            stored.dtype
        ));
    }
    match slice {
        "" => reader.read(name),
        text => {
            let (shape, slice, _) = parse_shape_and_slice(text)?;
            if shape != stored.shape {
                return Err(invalid!(
                    "Shape in shape_and_slice spec does not match the shape in the save file: {shape}, save file \
                     shape: {}",
                    stored.shape
                ));
            }
            reader.read_slice(name, &slice)
        }
    }
}

fn restore_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, types, node) = (systems(setup)?, setup.types("dtypes")?, setup.name().to_string());
    let resources = setup.resources().clone();
    Ok(stored(move |_, mut inputs: Inputs| {
        let prefix = prefix(&inputs.tensor(0)?)?;
        let named = named_slices(&inputs.tensor(1)?, &inputs.tensor(2)?)?;
        if named.len() != types.len() {
            return Err(invalid!("Got {} tensor names, but {} expected dtypes.", named.len(), types.len()));
        }
        let bundle = match Bundle::open(&systems, &prefix) {
            Ok(bundle) => Arc::new(bundle.watched(Doing::Restoring.watch(&resources, &prefix))),
            Err(error) if error.code == Code::NotFound => return older(&systems, &prefix, &named, &types),
            Err(error) => return Err(error),
        };
        check_types(&bundle, &named, &types)?;
        let find = |(name, slice): &(String, String)| {
            Ok(Arc::new(StoredTensor::find(&bundle, name, slice, &node)?) as Arc<dyn Stored>)
        };
        named.iter().map(find).collect()
    }))
}

/// Without an index the prefix is one file of the first format, or a pattern of the names of several.
fn older(
    systems: &FileSystems,
    prefix: &str,
    named: &[(String, String)],
    types: &[DType],
) -> Result<Vec<Arc<dyn Stored>>> {
    let reader = TensorSliceReader::open(systems, prefix)?;
    let read = |((name, slice), &dtype): (&(String, String), &DType)| {
        let tensor = restore_first(&reader, name, slice, dtype)?;
        Ok(Arc::new(InMemory(tensor)) as Arc<dyn Stored>)
    };
    named.iter().zip(types).map(read).collect()
}

fn check_types(bundle: &Bundle, named: &[(String, String)], types: &[DType]) -> Result<()> {
    let mut wrong = String::new();
    for ((name, _), &wanted) in named.iter().zip(types) {
        let found = bundle.entry(name)?.dtype;
        if found != wanted.base() {
            wrong += &format!("tensor_name = {name}; expected dtype {wanted} does not equal original dtype {found}\n");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(invalid!("{}", wrong.trim_end())) }
}
