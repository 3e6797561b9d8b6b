//! The functions of a dataset whose state is outside of it.

use super::functions::add_functions;
use crate::dataset::Handle;
use graph::{FunctionDef, FunctionLibrary, Signature, Signatures};
use rustc_hash::FxHashSet;
use status::{Result, failed_precondition};
use tensor::Tensor;

/// An error if a function of the datasets in a tensor has state: the graph of the dataset does not have it.
pub(crate) fn check_external_state(tensor: &Tensor) -> Result<()> {
    let mut waiting: Vec<&Handle> = Handle::all_in(tensor).collect();
    let mut seen = FxHashSet::default();
    while let Some(handle) = waiting.pop() {
        let Some(origin) = &handle.origin else { continue };
        if !seen.insert(std::ptr::from_ref(handle)) {
            continue;
        }
        if let Some(all) = &origin.maker.functions {
            let mut used = FunctionLibrary::default();
            add_functions(&mut used, &origin.maker.node, all)?;
            used.functions.values().try_for_each(|function| check_function(function))?;
        }
        waiting.extend(origin.inputs.iter().flat_map(Handle::all_in));
    }
    Ok(())
}

fn check_function(function: &FunctionDef) -> Result<()> {
    let stateful = function.nodes.iter().find(|node| function.signature.stateful && is_stateful(&node.op));
    stateful.map_or(Ok(()), |node| Err(failed_precondition!("{} is stateful.", node.op)))
}

/// The branches of conditionals and loops are functions that are checked themselves.
fn is_stateful(op: &str) -> bool {
    !matches!(op, "If" | "While") && crate::registry().signature(op).is_some_and(has_state)
}

/// False for ops that TensorFlow allows in the functions of datasets.
fn has_state(signature: &Signature) -> bool {
    const ALLOWED: [&str; 8] = [
        "Assert",
        "LegacyStatefulReader",
        "LookupTableFindV2",
        "LookupTableSize",
        "LookupTableSizeV2",
        "Print",
        "PrintV2",
        "Timestamp",
    ];
    let name = signature.name.as_str();
    let is_dataset = name.ends_with("Dataset") || name.ends_with("DatasetV2");
    signature.stateful && !ALLOWED.contains(&name) && !(is_dataset && signature.outputs.len() == 1)
}
