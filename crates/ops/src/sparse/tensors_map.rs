//! AddSparseToTensorsMap and related ops: sparse tensors stored in a task under numbers.

use super::stack::{Parts, check_parts, check_vectors, rows, stacked};
use op::{Grad, Kernel, Op, PLAIN, Resources, Setup, ShapeQuery, many, outputs};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AddSparseToTensorsMap(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> sparse_handle: int64; \
              T: type; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: op::shapes::scalar,
        grad: Grad::Unknown,
        kernel: add_kernel,
        facts: PLAIN,
    },
    Op {
        def: "AddManySparseToTensorsMap(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> \
              sparse_handles: int64; T: type; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: |_| Ok(vec![PartialShape::of_rank(1)]),
        grad: Grad::Unknown,
        kernel: add_many_kernel,
        facts: PLAIN,
    },
    Op {
        def: "TakeManySparseFromTensorsMap(sparse_handles: int64) -> sparse_indices: int64, sparse_values: dtype, \
              sparse_shape: int64; dtype: type; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: taken_shape,
        grad: Grad::Unknown,
        kernel: take_kernel,
        facts: PLAIN,
    },
];

fn taken_shape(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
}

/// Sparse tensors under numbers, each taken once.
struct TensorsMap {
    name: String,
    kept: Mutex<(i64, FxHashMap<i64, Parts>)>,
}

impl TensorsMap {
    fn add(&self, parts: Parts) -> i64 {
        let mut kept = self.kept.lock();
        let handle = kept.0;
        kept.0 += 1;
        kept.1.insert(handle, parts);
        handle
    }

    fn take(&self, handle: i64) -> Result<Parts> {
        let found = self.kept.lock().1.remove(&handle);
        found.ok_or_else(|| invalid!("Unable to find SparseTensor: {handle} in map: {}", self.name))
    }
}

/// The map a node means: the one with its shared name, or with its own name if it adds to it.
fn map_of(setup: &Setup<'_>, writes: bool) -> Result<impl Fn() -> Result<Arc<TensorsMap>> + Send + Sync + 'static> {
    let (container, shared) = (setup.string("container")?, setup.string("shared_name")?);
    let resources: Arc<Resources> = setup.resources().clone();
    let name = match (shared.is_empty(), writes) {
        (false, _) => shared,
        (true, true) => setup.name().to_string(),
        (true, false) => resources.unique_name(setup.name()),
    };
    Ok(move || {
        resources.get_or_create(&container, &name, || Ok(TensorsMap { name: name.clone(), kept: Mutex::default() }))
    })
}

fn add_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let map = map_of(setup, true)?;
    Ok(many(move |_, mut inputs| {
        let parts = [inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?];
        if parts[0].shape().rank() != 2 {
            return Err(invalid!("Input indices should be a matrix but received shape {}", parts[0].shape()));
        }
        check_vectors(&parts[1], &parts[2])?;
        Shape::checked(parts[2].values::<i64>()?)?;
        check_parts(&parts, 0, parts[1].dtype())?;
        Ok(outputs![Tensor::scalar(map()?.add(parts))])
    }))
}

fn add_many_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let map = map_of(setup, true)?;
    Ok(many(move |_, mut inputs| {
        let [indices, values, shape] = [inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?];
        let (rows, map) = (rows(&indices, &values, &shape)?, map()?);
        // TensorFlow numbers the rows that hold something first, then the empty ones.
        let (full, empty): (Vec<_>, Vec<_>) = rows.into_iter().enumerate().partition(|(_, row)| row[1].elements() > 0);
        let mut handles = vec![0; full.len() + empty.len()];
        full.into_iter().chain(empty).for_each(|(number, row)| handles[number] = map.add(row));
        Ok(outputs![Tensor::vector(&handles)])
    }))
}

fn take_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (map, dtype) = (map_of(setup, false)?, setup.dtype("dtype")?);
    Ok(many(move |_, mut inputs| {
        let handles = inputs.tensor(0)?;
        if handles.shape().rank() != 1 {
            return Err(invalid!("sparse_handles should be a vector but received shape {}", handles.shape()));
        }
        if handles.elements() == 0 {
            return Err(invalid!("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows"));
        }
        let map = map()?;
        let parts = handles.values::<i64>()?.iter().map(|&handle| map.take(handle));
        let parts: Vec<Parts> = parts.collect::<Result<_>>()?;
        for (index, part) in parts.iter().enumerate() {
            check_parts(part, index, dtype)?;
        }
        stacked(&parts, &[parts.len()], dtype, "rank", 1)
    }))
}
