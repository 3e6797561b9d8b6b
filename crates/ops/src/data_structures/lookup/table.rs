//! The ops that create lookup tables.

use super::dense::Dense;
use super::map::Map;
use super::state::{Body, Table};
use crate::data_structures::named::{Unnamed, maker_of};
use crate::data_structures::queue::two_strings;
use graph::{Output, Scope};
use op::shapes::scalar;
use op::{Home, Inputs, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tensor::{DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "HashTable() -> table_handle: Ref(string); container: string = \"\"; shared_name: string = \"\"; \
     use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; stateful", two_strings, static_kernel;
    "HashTableV2() -> table_handle: resource; container: string = \"\"; shared_name: string = \"\"; \
     use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; stateful", scalar, static_kernel;
    "AnonymousHashTable() -> table_handle: resource; key_dtype: type; value_dtype: type; stateful",
        scalar, static_kernel;
    "MutableHashTable() -> table_handle: Ref(string); container: string = \"\"; shared_name: string = \"\"; \
     use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; stateful",
        two_strings, mutable_kernel, PLAIN.holds_shared_state();
    "MutableHashTableV2() -> table_handle: resource; container: string = \"\"; shared_name: string = \"\"; \
     use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; stateful",
        scalar, mutable_kernel, PLAIN.holds_shared_state();
    "AnonymousMutableHashTable() -> table_handle: resource; key_dtype: type; value_dtype: type; stateful",
        scalar, mutable_kernel;
    "MutableHashTableOfTensors() -> table_handle: Ref(string); container: string = \"\"; \
     shared_name: string = \"\"; use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; \
     value_shape: shape = []; stateful",
        two_strings, tensors_kernel, PLAIN.holds_shared_state();
    "MutableHashTableOfTensorsV2() -> table_handle: resource; container: string = \"\"; \
     shared_name: string = \"\"; use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; \
     value_shape: shape = []; stateful",
        scalar, tensors_kernel, PLAIN.holds_shared_state();
    "AnonymousMutableHashTableOfTensors() -> table_handle: resource; key_dtype: type; value_dtype: type; \
     value_shape: shape = []; stateful", scalar, tensors_kernel;
    "MutableDenseHashTable(empty_key: key_dtype) -> table_handle: Ref(string); container: string = \"\"; \
     shared_name: string = \"\"; use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type; \
     value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: float = 0.8; stateful",
        two_strings, dense_kernel, PLAIN.holds_shared_state();
    "MutableDenseHashTableV2(empty_key: key_dtype, deleted_key: key_dtype) -> table_handle: resource; \
     container: string = \"\"; shared_name: string = \"\"; use_node_name_sharing: bool = false; key_dtype: type; \
     value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; max_load_factor: float = 0.8; \
     stateful",
        scalar, dense_kernel, PLAIN.holds_shared_state();
    "AnonymousMutableDenseHashTable(empty_key: key_dtype, deleted_key: key_dtype) -> table_handle: resource; \
     key_dtype: type; value_dtype: type; value_shape: shape = []; initial_num_buckets: int = 131072; \
     max_load_factor: float = 0.8; stateful", scalar, dense_kernel;
};

/// A table that is initialized once and shared by all nodes with this name; a private table if the name is empty.
pub fn hash_table(scope: &Scope, shared_name: &str, key_dtype: DType, value_dtype: DType) -> Output {
    let op = scope.op("HashTableV2").attr("shared_name", shared_name);
    op.attr("key_dtype", key_dtype).attr("value_dtype", value_dtype).output()
}

/// As `hash_table`; keys may be added and removed at any time.
pub fn mutable_hash_table(scope: &Scope, shared_name: &str, key_dtype: DType, value_dtype: DType) -> Output {
    let op = scope.op("MutableHashTableV2").attr("shared_name", shared_name);
    op.attr("key_dtype", key_dtype).attr("value_dtype", value_dtype).output()
}

/// The kernel of a node that makes a table.
fn table(
    setup: &Setup<'_>,
    value_shape: Shape,
    body: impl Fn(&mut Inputs) -> Result<Body> + Send + Sync + 'static,
) -> Result<Kernel> {
    let types = types(setup)?;
    let make = move |inputs: &mut Inputs| Ok(Table::new(types, value_shape.clone(), body(inputs)?));
    if setup.def().op.starts_with("Anonymous") {
        return anonymous(setup, make);
    }
    let unnamed = if setup.bool("use_node_name_sharing")? { Unnamed::ByNode } else { Unnamed::Private };
    let name = setup.name().to_string();
    maker_of(
        setup,
        unnamed,
        move |_, inputs| make(inputs),
        move |table: &Table| {
            if (table.key_dtype, table.value_dtype) == types {
                return Ok(());
            }
            Err(invalid!(
                "Conflicting key/value dtypes {}->{} with {}-{} for table {name}",
                types.0,
                types.1,
                table.key_dtype,
                table.value_dtype
            ))
        },
    )
}

/// A new table in every step, found only through the handle returned.
fn anonymous(setup: &Setup<'_>, make: impl Fn(&mut Inputs) -> Result<Table> + Send + Sync + 'static) -> Result<Kernel> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let home = Home::of(setup);
    Ok(many(move |_, mut inputs| {
        let name = format!("table{}", NEXT.fetch_add(1, Ordering::Relaxed));
        home.resources().create("Anonymous", &name, Arc::new(make(&mut inputs)?))?;
        let handle = home.handle::<Table>("Anonymous", &name, Vec::new());
        Ok(outputs![Tensor::from_handles(Shape::scalar(), vec![handle])?])
    }))
}

fn types(setup: &Setup<'_>) -> Result<(DType, DType)> {
    let (key, value) = (setup.dtype("key_dtype")?, setup.dtype("value_dtype")?);
    match key {
        DType::I32 | DType::I64 | DType::STRING => Ok((key, value)),
        _ => Err(setup.no_kernel()),
    }
}

fn value_shape(setup: &Setup<'_>) -> Result<Shape> {
    let shape = setup.shape("value_shape")?;
    match shape.known() {
        Some(known) => {
            known.checked_elements()?;
            Ok(known)
        }
        None => Err(invalid!("Shape {shape} is not fully defined")),
    }
}

fn static_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (key, value) = types(setup)?;
    let body =
        move |_: &mut Inputs| Ok(Body::Static { map: Map::new(key, value, &Shape::scalar())?, initialized: false });
    table(setup, Shape::scalar(), body)
}

fn mutable_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (key, value) = types(setup)?;
    table(setup, Shape::scalar(), move |_| Ok(Body::Mutable(Map::new(key, value, &Shape::scalar())?)))
}

fn tensors_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (key, value) = types(setup)?;
    let shape = value_shape(setup)?;
    if shape.rank() != 1 {
        return Err(invalid!("Default value must be a vector, got shape {shape}"));
    }
    table(setup, shape.clone(), move |_| Ok(Body::Mutable(Map::new(key, value, &shape)?)))
}

fn dense_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (_, value) = types(setup)?;
    let shape = value_shape(setup)?;
    let (load, buckets) = (setup.float("max_load_factor")?, setup.int("initial_num_buckets")?);
    table(setup, shape.clone(), move |inputs| {
        if inputs.len() < 2 {
            return Err(invalid!("Unknown input name: deleted_key"));
        }
        let keys = (inputs.tensor(0)?, inputs.tensor(1)?);
        Ok(Body::Dense(Box::new(Dense::new(keys, value, shape.clone(), load, buckets)?)))
    })
}
