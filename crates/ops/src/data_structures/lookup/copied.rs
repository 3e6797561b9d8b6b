//! Copies of tables, for graphs that make them anew.

use super::state::Table;
use op::{Home, Resource};
use status::Result;
use tensor::{ResourceHandle, Shape, Tensor};

/// What is needed to make a table like another one.
pub struct CopiedTable {
    /// The op that makes an empty table.
    pub op: &'static str,
    /// The shape of the values, if the op has an attribute for it.
    pub value_shape: Option<Shape>,
    /// All keys, and the value of each.
    pub entries: (Tensor, Tensor),
}

/// A copy of the table behind a handle; none if that is not a table of which TensorFlow makes copies.
pub fn copied_table(home: &Home, handle: &ResourceHandle) -> Result<Option<CopiedTable>> {
    if handle.type_name != Table::TYPE_NAME {
        return Ok(None);
    }
    let table = home.find::<Table>(handle)?;
    let Some((op, value_shape)) = table.maker() else { return Ok(None) };
    Ok(Some(CopiedTable { op, value_shape, entries: table.export()? }))
}
