//! Datasets of the rows of Parquet files.

use crate::{Dataset, Feature};
use graph::Scope;
use io::example::{Example, Values};
use io::fs::path::to_str;
use io::rows::{Cell, Format, Row, RowFile};
use io::{Compression, FileSystems};
use status::{Result, invalid};
use std::path::Path;
use tensor::{Bytes, DType, Tensor};

impl Dataset {
    /// The rows of a Parquet file of this machine. A component is a column in the type of its feature, in the order of the
    /// list; a row without a value has the default of the feature.
    ///
    /// The file is read while the graph is built, and the columns become a part of the graph. What is larger than some
    /// hundred megabytes is better converted to TFRecord files (`flowgrid data convert`), which the workers read.
    ///
    /// ```no_run
    /// use flowgrid_input::{Dataset, Feature};
    /// use graph::{Graph, Output};
    /// use tensor::{DType, Tensor};
    ///
    /// let graph = Graph::with_ops(data::registry());
    /// let columns = [
    ///     ("age", Feature::fixed(DType::F32, &[]).or(Tensor::scalar(0f32))),
    ///     ("visits", Feature::sequence(DType::I64)),
    /// ];
    /// let people = Dataset::parquet(&graph.root(), "people.parquet", &columns);
    /// let batches = people.map(|(age, visits): (Output, Output)| (age / 100.0, visits)).padded_batch(32);
    /// # let _ = batches;
    /// ```
    pub fn parquet(scope: &Scope, file: impl AsRef<Path>, columns: &[(&str, Feature)]) -> Dataset {
        Dataset::parquet_on(&FileSystems::local(), scope, file, columns)
    }

    /// As `parquet`, for a file of these file systems.
    pub fn parquet_on(
        systems: &FileSystems,
        scope: &Scope,
        file: impl AsRef<Path>,
        columns: &[(&str, Feature)],
    ) -> Dataset {
        let rows = to_str(file.as_ref()).and_then(|path| examples(systems, path, columns));
        let rows = rows.unwrap_or_else(|error| {
            scope.graph().fail(error);
            Vec::new()
        });
        let rows = Tensor::from_strings([rows.len()], rows).expect("as many rows as the shape says");
        Dataset::from_slices(ops::array::constant(scope, rows)).parse_example(columns)
    }
}

/// The rows as messages, with the columns that are asked for.
fn examples(systems: &FileSystems, path: &str, columns: &[(&str, Feature)]) -> Result<Vec<Bytes>> {
    let (format, compression) = (Format::Parquet, Compression::None);
    let file = RowFile { systems: systems.clone(), path: path.to_string(), format, compression };
    let message = |(number, row): (usize, Result<Row>)| {
        let mut example = Example::new();
        for (name, cell) in row? {
            let Some((_, feature)) = columns.iter().find(|(column, _)| *column == name) else { continue };
            let values = values(cell, feature.dtype());
            let values =
                values.map_err(|error| invalid!("{path}: row {number}, column '{name}': {}", error.message))?;
            if let Some(values) = values {
                example = example.with(&name, values);
            }
        }
        Ok(example.encode())
    };
    file.rows()?.enumerate().map(message).collect()
}

/// The values of a cell in a type; none if there is no value.
fn values(cell: Cell, dtype: DType) -> Result<Option<Values>> {
    let cells = match cell {
        Cell::Missing => return Ok(None),
        Cell::List(cells) => cells,
        cell => vec![cell],
    };
    let cells = cells.into_iter();
    Ok(Some(match dtype {
        DType::F32 => Values::Floats(cells.map(float).collect::<Result<_>>()?),
        DType::I64 => Values::Ints(cells.map(integer).collect::<Result<_>>()?),
        DType::STRING => Values::Bytes(cells.map(text).collect::<Result<_>>()?),
        other => return Err(invalid!("a column cannot be read as {other}; expected float, int64 or string")),
    }))
}

fn float(cell: Cell) -> Result<f32> {
    match cell {
        Cell::Int(value) => Ok(value as f32),
        Cell::Float(value) => Ok(value as f32),
        Cell::Single(value) => Ok(value),
        other => Err(invalid!("{other:?} is not a number")),
    }
}

fn integer(cell: Cell) -> Result<i64> {
    match cell {
        Cell::Int(value) => Ok(value),
        other => Err(invalid!("{other:?} is not an integer")),
    }
}

fn text(cell: Cell) -> Result<Bytes> {
    match cell {
        Cell::Bytes(bytes) => Ok(bytes),
        other => Err(invalid!("{other:?} is not text")),
    }
}
