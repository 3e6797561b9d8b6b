//! I say which ops there are. I see one node's inputs, never the graph around it.
#![forbid(unsafe_code)]

mod deprecated;
#[macro_use]
mod dispatch;
mod fusible;
#[macro_use]
pub mod math_ops;
#[macro_use]
pub mod array;
pub mod checkpoint;
pub mod control;
#[macro_use]
pub mod data_structures;
pub(crate) mod hashing;
pub mod image;
pub mod linalg;
pub mod nn;
pub mod parsing;
pub mod random;
pub mod sparse;
pub mod state;
pub mod string;
pub mod summary;
pub mod training;

use op::{Op, Registry};
use std::sync::{Arc, OnceLock};

/// All ops there are.
pub fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY
        .get_or_init(|| {
            Arc::new(
                Registry::new(&tables())
                    .expect("no op has two rows")
                    .with_elementwise(fusible::elementwise)
                    .with_joined(fusible::joined)
                    .with_deprecated(deprecated::deprecated),
            )
        })
        .clone()
}

/// The tables of all families.
fn tables() -> Vec<&'static [Op]> {
    [
        array::TABLES,
        checkpoint::TABLES,
        control::TABLES,
        data_structures::TABLES,
        image::TABLES,
        linalg::TABLES,
        math_ops::TABLES,
        nn::TABLES,
        parsing::TABLES,
        random::TABLES,
        sparse::TABLES,
        state::TABLES,
        string::TABLES,
        summary::TABLES,
        training::TABLES,
    ]
    .concat()
}

#[cfg(test)]
mod tests;
