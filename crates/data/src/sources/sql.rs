//! SqlDataset: the rows of a query. Flowgrid has no database built in, so valid queries are refused.

use crate::attrs::{spec, string_scalar};
use op::shapes;
use op::{Grad, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid, unimplemented_op};
use tensor::DType;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SqlDataset(driver_name: string, data_source_name: string, query: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalSqlDataset(driver_name: string, data_source_name: string, query: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
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
    Ok(many(move |_, mut inputs| {
        let driver = string_scalar(&mut inputs, 0, "driver_name")?;
        if driver != "sqlite" {
            return Err(invalid!(
                "The database type, {driver}, is not supported by SqlDataset. The set of supported databases is: \
                 {{'sqlite'}}."
            ));
        }
        Err(unimplemented_op!(
            "SqlDataset needs SQLite, which is not built into this program; write the rows to TFRecord or CSV files"
        ))
    }))
}
