//! Filling of a table by ops of other crates.

use super::access::not_initializable;
use super::state::Table;
use crate::data_structures::named::find;
use op::Home;
use status::{Code, Result};
use std::sync::Arc;
use tensor::{DType, Tensor};

/// A table that is filled once.
pub struct Fill(Arc<Table>);

/// The table behind a handle; an error if it is not filled once, as a whole.
pub fn table_to_fill(home: &Home, handle: &Tensor) -> Result<Fill> {
    let table: Arc<Table> = find(home, handle)?;
    if !table.is_initializable() {
        return Err(not_initializable(handle));
    }
    Ok(Fill(table))
}

impl Fill {
    /// The type of its keys.
    pub fn key_dtype(&self) -> DType {
        self.0.key_dtype
    }

    /// The type of its values.
    pub fn value_dtype(&self) -> DType {
        self.0.value_dtype
    }

    /// Fills it with a vector of keys and one of values. A table that is already filled keeps its contents.
    pub fn fill(&self, keys: Tensor, values: Tensor) -> Result<()> {
        let was_filled = self.0.len() > 0;
        match self.0.import(keys, values) {
            Err(error) if error.code == Code::FailedPrecondition && was_filled => Ok(()),
            filled => filled,
        }
    }
}
