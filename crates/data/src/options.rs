//! What the user asked for in `tf.data.Options`.

use crate::dataset::fold;
use crate::wire::OptionsMessage;
use crate::{DatasetRef, Rewrites, wire};
use status::Result;
use tensor::Bytes;

/// The options of a dataset, merged with those of its inputs. Hints that change neither the elements nor their order
/// are not among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Whether stages that work in parallel must keep the order of elements; if not set, they must.
    pub deterministic: Option<bool>,
    /// The number of threads over which one op splits its loops; zero means one for each core.
    pub max_intra_op_parallelism: Option<usize>,
    /// The number of calls that run at once where the user leaves it to us; zero means one for each core.
    pub private_threadpool_size: Option<usize>,
    /// Whether numbers that the user leaves to us may change while the pipeline runs.
    pub autotune: bool,
    /// The number of calls that run at once where the user leaves it to us, if there is no private thread pool.
    pub cpu_budget: Option<usize>,
    /// The bytes that buffers whose size is left to us may take together, if the user says so.
    pub ram_budget: Option<u64>,
    /// How the pipeline is rewritten when an iterator begins.
    pub rewrites: Rewrites,
}

impl Options {
    /// The options of a dataset.
    pub fn of(dataset: &DatasetRef) -> Result<Options> {
        Ok(wire::decoded(&merged(dataset)?))
    }
}

/// The options of a dataset, merged with those of its inputs, as a message.
pub(crate) fn merged_bytes(dataset: &DatasetRef) -> Result<Bytes> {
    Ok(wire::encoded(&merged(dataset)?))
}

/// What the options say about functions with state in the graph of a dataset, if they do.
pub(crate) fn external_state_policy(dataset: &DatasetRef) -> Result<Option<i64>> {
    Ok(merged(dataset)?.external_state_policy.map(i64::from))
}

/// Options of later inputs replace those of earlier ones, and the dataset's own replace those of its inputs.
fn merged(dataset: &DatasetRef) -> Result<OptionsMessage> {
    fold(dataset, &mut |dataset, inputs: Vec<Result<OptionsMessage>>| {
        let mut merged = OptionsMessage::default();
        for input in inputs {
            wire::merge(&mut merged, &wire::encoded(&input?))?;
        }
        dataset.options().map_or(Ok(()), |own| wire::merge(&mut merged, &own))?;
        Ok(merged)
    })
}
