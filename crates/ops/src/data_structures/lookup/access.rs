//! The ops that initialize lookup tables, find, insert and remove keys.

use super::file::Columns;
use super::state::Table;
use crate::checkpoint::systems;
use crate::data_structures::named::{find, signature_mismatch};
use graph::{Node, Output, ShapeQuery};
use op::shapes::{none, scalar, unknown};
use op::{Home, Inputs, Kernel, Op, Setup, handle_of, many, outputs};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "InitializeTable(table_handle: Ref(string), keys: Tkey, values: Tval); Tkey: type; Tval: type",
        none, initialize_kernel;
    "InitializeTableV2(table_handle: resource, keys: Tkey, values: Tval); Tkey: type; Tval: type; stateful",
        none, initialize_kernel;
    "InitializeTableFromTextFile(table_handle: Ref(string), filename: string); key_index: int >= -2; \
     value_index: int >= -2; vocab_size: int >= -1 = -1; delimiter: string = \"\t\"; offset: int = 0",
        none, from_file_kernel;
    "InitializeTableFromTextFileV2(table_handle: resource, filename: string); key_index: int >= -2; \
     value_index: int >= -2; vocab_size: int >= -1 = -1; delimiter: string = \"\t\"; offset: int = 0; stateful",
        none, from_file_kernel;
    "LookupTableFind(table_handle: Ref(string), keys: Tin, default_value: Tout) -> values: Tout; Tin: type; \
     Tout: type", unknown, find_kernel;
    "LookupTableFindV2(table_handle: resource, keys: Tin, default_value: Tout) -> values: Tout; Tin: type; \
     Tout: type; stateful", unknown, find_kernel;
    "LookupTableInsert(table_handle: Ref(string), keys: Tin, values: Tout); Tin: type; Tout: type",
        none, insert_kernel;
    "LookupTableInsertV2(table_handle: resource, keys: Tin, values: Tout); Tin: type; Tout: type; stateful",
        none, insert_kernel;
    "LookupTableRemoveV2(table_handle: resource, keys: Tin); Tin: type; stateful", none, remove_kernel;
    "LookupTableSize(table_handle: Ref(string)) -> size: int64", scalar, size_kernel;
    "LookupTableSizeV2(table_handle: resource) -> size: int64; stateful", scalar, size_kernel;
    "LookupTableExport(table_handle: Ref(string)) -> keys: Tkeys, values: Tvalues; Tkeys: type; Tvalues: type",
        unknown, export_kernel;
    "LookupTableExportV2(table_handle: resource) -> keys: Tkeys, values: Tvalues; Tkeys: type; Tvalues: type; \
     stateful", unknown, export_kernel;
    "LookupTableImport(table_handle: Ref(string), keys: Tin, values: Tout); Tin: type; Tout: type",
        none, import_kernel;
    "LookupTableImportV2(table_handle: resource, keys: Tin, values: Tout); Tin: type; Tout: type; stateful",
        import_shape, import_kernel;
};

/// The collection of nodes that fill tables; they run when a training session starts.
pub const TABLE_INITIALIZERS: &str = "table_initializer";

/// Fills a table that is filled once, and adds the node to [`TABLE_INITIALIZERS`].
pub fn initialize_table(table: &Output, keys: &Output, values: &Output) -> Node {
    let node = table.scope().op("InitializeTableV2").input(table).input(keys).input(values).node();
    node.graph().add_to_collection(TABLE_INITIALIZERS, node.name());
    node
}

/// The values of keys; `default` where there is none.
pub fn lookup_table_find(table: &Output, keys: &Output, default: &Output) -> Output {
    table.scope().op("LookupTableFindV2").input(table).input(keys).input(default).output()
}

/// Inserts values under keys.
pub fn lookup_table_insert(table: &Output, keys: &Output, values: &Output) -> Node {
    table.scope().op("LookupTableInsertV2").input(table).input(keys).input(values).node()
}

/// Removes keys.
pub fn lookup_table_remove(table: &Output, keys: &Output) -> Node {
    table.scope().op("LookupTableRemoveV2").input(table).input(keys).node()
}

/// How many keys a table has.
pub fn lookup_table_size(table: &Output) -> Output {
    table.scope().op("LookupTableSizeV2").input(table).output()
}

/// All keys and values of a table.
pub fn lookup_table_export(table: &Output, key_dtype: DType, value_dtype: DType) -> (Output, Output) {
    let op = table.scope().op("LookupTableExportV2").input(table);
    let node = op.attr("Tkeys", key_dtype).attr("Tvalues", value_dtype).node();
    (node.output(0), node.output(1))
}

fn import_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    if let (Some(1), Some(1..)) = (query.inputs[1].rank(), query.inputs[2].rank()) {
        let first = |shape: &PartialShape| PartialShape::new(&[shape.dims().map_or(-1, |dims| dims[0])]);
        first(&query.inputs[1]).merge(&first(&query.inputs[2]))?;
    }
    Ok(Vec::new())
}

/// A kernel of the table of its first input. Of its other inputs, as many as `takes` are a key and a value.
fn with_table(
    setup: &Setup<'_>,
    takes: usize,
    run: impl Fn(&Table, &mut Inputs) -> Result<op::Outputs> + Send + Sync + 'static,
) -> Result<Kernel> {
    let home = Home::of(setup);
    let (input_types, output_types) = (setup.input_types().to_vec(), setup.output_types().to_vec());
    Ok(many(move |_, mut inputs| {
        let table: Arc<Table> = find(&home, &inputs.tensor(0)?)?;
        let pair = [table.key_dtype, table.value_dtype];
        let expected: Vec<DType> = input_types[..1].iter().chain(&pair[..takes]).copied().collect();
        if input_types != expected {
            let outputs = if output_types.is_empty() { &[][..] } else { &pair[1..] };
            return Err(signature_mismatch(&input_types, &output_types, &expected, outputs));
        }
        run(&table, &mut inputs)
    }))
}

fn find_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_table(setup, 2, |table, inputs| {
        let (keys, default) = (inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![table.find(&keys, &default)?])
    })
}

fn insert_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_table(setup, 2, |table, inputs| {
        let (keys, values) = (inputs.tensor(1)?, inputs.tensor(2)?);
        table.insert(&keys, &values)?;
        Ok(outputs![])
    })
}

fn import_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_table(setup, 2, |table, inputs| {
        let (keys, values) = (inputs.tensor(1)?, inputs.tensor(2)?);
        table.import(keys, values)?;
        Ok(outputs![])
    })
}

fn remove_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_table(setup, 1, |table, inputs| {
        table.remove(&inputs.tensor(1)?)?;
        Ok(outputs![])
    })
}

fn size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    with_table(setup, 0, |table, _| Ok(outputs![Tensor::scalar(table.len() as i64)]))
}

fn export_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let output_types = setup.output_types().to_vec();
    with_table(setup, 0, move |table, _| {
        if output_types != [table.key_dtype, table.value_dtype] {
            return Err(invalid!(
                "A table of {} and {} cannot be exported as {} and {}",
                table.key_dtype,
                table.value_dtype,
                output_types[0],
                output_types[1]
            ));
        }
        let (keys, values) = table.export()?;
        Ok(outputs![keys, values])
    })
}

/// The error for a table that is not filled once, but all the time.
pub(super) fn not_initializable(handle: &Tensor) -> status::Error {
    let (container, name) = match (handle_of(handle), handle.strings()) {
        (Ok(handle), _) => (handle.container.clone(), handle.name.clone()),
        (_, Ok([container, name])) => {
            (String::from_utf8_lossy(container).into_owned(), String::from_utf8_lossy(name).into_owned())
        }
        _ => Default::default(),
    };
    invalid!("Table {container} {name} is not initializable")
}

fn initialize_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, types) = (Home::of(setup), setup.input_types().to_vec());
    Ok(many(move |_, mut inputs| {
        let handle = inputs.tensor(0)?;
        let table: Arc<Table> = find(&home, &handle)?;
        if !table.is_initializable() {
            return Err(not_initializable(&handle));
        }
        let expected = [types[0], table.key_dtype, table.value_dtype];
        if types != expected {
            return Err(signature_mismatch(&types, &[], &expected, &[]));
        }
        let (keys, values) = (inputs.tensor(1)?, inputs.tensor(2)?);
        for (what, tensor) in [("Keys", &keys), ("Values", &values)] {
            if tensor.shape().rank() != 1 {
                return Err(invalid!("{what} must be a vector, but received shape{}", tensor.shape()));
            }
        }
        if keys.elements() != values.elements() {
            let (keys, values) = (keys.elements(), values.elements());
            return Err(invalid!("Keys and values must have the same size {keys} vs {values}"));
        }
        table.import(keys, values)?;
        Ok(outputs![])
    }))
}

fn from_file_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, systems, columns) = (Home::of(setup), systems(setup)?, Columns::of(setup)?);
    Ok(many(move |_, mut inputs| {
        let handle = inputs.tensor(0)?;
        let table: Arc<Table> = find(&home, &handle)?;
        if !table.is_initializable() {
            return Err(not_initializable(&handle));
        }
        let name = inputs.tensor(1)?;
        let [file] = name.strings()? else {
            return Err(invalid!("filename should be a single string, but got {}", name.shape()));
        };
        if file.is_empty() {
            return Err(invalid!("filename cannot be empty."));
        }
        let file = String::from_utf8_lossy(file);
        columns.check(table.key_dtype, table.value_dtype)?;
        let (keys, values) = columns.read(&file, &systems.read(&file)?, table.key_dtype, table.value_dtype)?;
        match table.import(keys, values) {
            // Nodes that fill a table from a file name the table after the file, so it may be filled already.
            Err(error) if error.code == status::Code::FailedPrecondition && table.len() > 0 => Ok(outputs![]),
            result => result.map(|()| outputs![]),
        }
    })
    .heavy())
}
