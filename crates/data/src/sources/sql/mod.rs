//! SqlDataset: the rows of a query to an SQLite database, which needs the cargo feature `sqlite`.

#[cfg(feature = "sqlite")]
mod rows;

use crate::attrs::{DATASET, dataset_kernel, spec, string_scalar};
use crate::{Cardinality, Dataset, Iterate, Place, Spec};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::DType;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SqlDataset(driver_name: string, data_source_name: string, query: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalSqlDataset(driver_name: string, data_source_name: string, query: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

/// The types of columns.
const COLUMNS: [DType; 9] =
    [DType::STRING, DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::BOOL, DType::F64];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    if !spec.types.iter().all(|dtype| COLUMNS.contains(dtype)) {
        return Err(invalid!(
            "Each element of `output_types_` must be one of: DT_STRING, DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_UINT8, \
             DT_UINT16, DT_BOOL, DT_DOUBLE "
        ));
    }
    if spec.shapes.iter().any(|shape| shape.rank() != Some(0)) {
        return Err(invalid!("Each element of `output_shapes_` must be a scalar."));
    }
    dataset_kernel(setup, move |_, inputs| {
        let driver = string_scalar(inputs, 0, "driver_name")?;
        let source = string_scalar(inputs, 1, "data_source_name")?;
        let query = string_scalar(inputs, 2, "query")?;
        if driver != "sqlite" {
            return Err(invalid!(
                "The database type, {driver}, is not supported by SqlDataset. The set of supported databases is: \
                 {{'sqlite'}}."
            ));
        }
        Ok(Sql { query: Query { source, text: query, types: spec.types.clone() }, spec: spec.clone() })
    })
}

/// A query, and the types of the columns of its result.
#[derive(Clone)]
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only the feature reads the fields"))]
struct Query {
    /// The path or URI of the database.
    source: String,
    text: String,
    types: Vec<DType>,
}

struct Sql {
    query: Query,
    spec: Spec,
}

impl Dataset for Sql {
    fn kind(&self) -> &'static str {
        "Sql"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        iterator(&self.query, place)
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

#[cfg(feature = "sqlite")]
fn iterator(query: &Query, place: &Place) -> Result<Box<dyn Iterate>> {
    Ok(Box::new(rows::RowIterator::new(query.clone(), place.prefix.clone())))
}

#[cfg(not(feature = "sqlite"))]
fn iterator(_: &Query, _: &Place) -> Result<Box<dyn Iterate>> {
    Err(status::unimplemented_op!(
        "SqlDataset needs SQLite, but this program was built without it; build it with `--features sqlite`, or write the \
         rows to TFRecord or CSV files"
    ))
}
