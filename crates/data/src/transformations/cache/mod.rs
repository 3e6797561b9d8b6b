//! CacheDataset and CacheDatasetV2: keep the elements of a dataset in memory or in files.

mod file;
mod handle;
mod memory;
mod random;

use crate::attrs::{DATASET, dataset_ref_kernel, input_dataset, string_scalar};
use file::FileCache;
use memory::{Contents, MemoryCache};
use op::shapes;
use op::{Grad, Home, Kernel, Op, Setup, handle_of};
use ops::checkpoint::systems;
use status::Result;
use std::sync::Arc;

pub(crate) use handle::OPS as HANDLE_OPS;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "CacheDataset(input_dataset: variant, filename: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "CacheDatasetV2(input_dataset: variant, filename: string, cache: resource) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (home, systems, shares) = (Home::of(setup), systems(setup)?, setup.input_types().len() > 2);
    dataset_ref_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        let name = string_scalar(inputs, 1, "filename")?;
        if !name.is_empty() {
            return Ok(Arc::new(FileCache::new(input, name, systems.clone())));
        }
        let shared = match shares {
            true => {
                let handle = handle_of(inputs.look(2)?)?;
                home.resources().get::<Contents>(&handle.container, &handle.name)
            }
            false => None,
        };
        Ok(Arc::new(MemoryCache::new(input, shared.unwrap_or_default())))
    })
}
