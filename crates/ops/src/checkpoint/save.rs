//! Save, SaveSlices, SaveV2, MergeV2Checkpoints: write values to checkpoints.

use super::args::{file, prefix, slice_of, strings};
use super::save_v2::save_v2_kernel;
use super::systems;
use graph::{Node, Output, StateRole};
use io::TensorSliceWriter;
use io::bundle::{MergeOptions, merge_bundles};
use op::shapes::none;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, many};
use status::{Result, invalid};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Save(filename: string, tensor_names: string, data: [T]); T: list(type) >= 1; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| first_format(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "SaveSlices(filename: string, tensor_names: string, shapes_and_slices: string, data: [T]); \
              T: list(type) >= 1; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: |setup| first_format(setup, true),
        facts: PLAIN,
    },
    Op {
        def: "SaveV2(prefix: string, tensor_names: string, shape_and_slices: string, tensors: [dtypes]); \
              dtypes: list(type) >= 1; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: save_v2_kernel,
        facts: PLAIN.state_role(StateRole::Saves),
    },
    Op {
        def: "MergeV2Checkpoints(checkpoint_prefixes: string, destination_prefix: string); \
              delete_old_dirs: bool = true; allow_missing_files: bool = false; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: merge_kernel,
        facts: PLAIN,
    },
];

/// The op of `save_v2`, after which savers name their nodes.
pub const SAVE_V2: &str = "SaveV2";

/// Saves tensors under names; an empty slice means the whole tensor.
pub fn save_v2(prefix: &Output, names: &Output, slices: &Output, tensors: &[Output]) -> Node {
    prefix.scope().op(SAVE_V2).input(prefix).input(names).input(slices).inputs(tensors).node()
}

/// Merges several checkpoints into one.
pub fn merge_v2_checkpoints(prefixes: &Output, destination: &Output, delete_old_dirs: bool) -> Node {
    let builder = prefixes.scope().op("MergeV2Checkpoints").input(prefixes).input(destination);
    builder.attr("delete_old_dirs", delete_old_dirs).node()
}

fn first_format(setup: &Setup<'_>, sliced: bool) -> Result<Kernel> {
    let systems = systems(setup)?;
    let fixed = if sliced { 3 } else { 2 };
    Ok(many(move |_, mut inputs: Inputs| {
        let path = file(&inputs.tensor(0)?, "filename")?;
        let names = strings(&inputs.tensor(1)?)?;
        let slices = if sliced { strings(&inputs.tensor(2)?)? } else { vec![String::new(); names.len()] };
        if slices.len() != names.len() {
            return Err(invalid!(
                "Expected {} elements for the tensor shapes and slices but got {}",
                names.len(),
                slices.len()
            ));
        }
        let tensors = inputs.tensors_from(fixed)?;
        check_count(names.len(), tensors.len(), fixed)?;
        let mut writer = TensorSliceWriter::new(&systems, &path);
        for ((name, slice), tensor) in names.iter().zip(&slices).zip(&tensors) {
            match slice.as_str() {
                "" => writer.add(name, tensor)?,
                text => {
                    let (shape, slice) = slice_of(text, tensor.shape())?;
                    writer.add_slice(name, &shape, &slice, tensor)?;
                }
            }
        }
        writer.finish()?;
        Ok(Outputs::new())
    })
    .heavy())
}

fn check_count(names: usize, tensors: usize, fixed: usize) -> Result<()> {
    if names == tensors {
        return Ok(());
    }
    Err(invalid!(
        "Expected totally {} inputs as input #1 (which is a string tensor of saved names) contains {names} names, but \
         received {} inputs",
        names + fixed,
        tensors + fixed
    ))
}

fn merge_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    let options = MergeOptions {
        allow_missing_files: setup.bool("allow_missing_files")?,
        delete_old_dirs: setup.bool("delete_old_dirs")?,
    };
    Ok(many(move |_, mut inputs: Inputs| {
        let (prefixes, destination) = (inputs.tensor(0)?, inputs.tensor(1)?);
        if prefixes.shape().rank() != 1 {
            let shape = prefixes.shape();
            return Err(invalid!("Input checkpoint_prefixes should be an 1-D tensor, got {shape} instead."));
        }
        if destination.shape().rank() != 0 {
            let shape = destination.shape();
            return Err(invalid!("Input destination_prefix should be a scalar tensor, got {shape} instead."));
        }
        let prefixes = strings(&prefixes)?;
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        merge_bundles(&systems, &prefixes, &prefix(&destination)?, options)?;
        Ok(Outputs::new())
    })
    .heavy())
}
