//! AutoShardDataset: the part of a dataset that one of several workers reads.

use super::rebatch::rebatch;
use super::shard::{UNCHOSEN, shard};
use super::shard_policy::policy_of;
use crate::attrs::{DATASET, dataset_ref_kernel, input_dataset, scalar};
use crate::{Dataset, DatasetRef};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Error, Result, invalid, not_found};
use tensor::DType;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AutoShardDataset(input_dataset: variant, num_workers: int64, index: int64) -> handle: variant; \
              auto_shard_policy: int = 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              num_replicas: int = 0",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalAutoShardDataset(input_dataset: variant, num_workers: int64, index: int64) -> \
              handle: variant; auto_shard_policy: int = 0; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let policy = setup.int("auto_shard_policy")?;
    let replicas = if setup.find("num_replicas").is_some() { setup.int("num_replicas")? } else { 0 };
    dataset_ref_kernel(setup, move |_, inputs| {
        let (workers, index): (i64, i64) = (scalar(inputs, 1, "num_workers")?, scalar(inputs, 2, "index")?);
        if workers <= 0 {
            return Err(invalid!("num_workers must be greater than zero."));
        }
        if !(0..workers).contains(&index) {
            return Err(invalid!("index must be between 0 and {}", workers - 1));
        }
        let input = input_dataset(inputs, 0)?;
        let part = Part { workers: workers as u64, index: index as u64, replicas };
        part.of(&input, policy_of(&input).unwrap_or(policy))
    })
}

/// Which part, of how many.
struct Part {
    workers: u64,
    index: u64,
    /// The number of replicas of all workers, or zero.
    replicas: i64,
}

const OFF: i64 = -1;
const FILE: i64 = 1;
const DATA: i64 = 2;
const HINT: i64 = 3;

impl Part {
    fn of(&self, dataset: &DatasetRef, policy: i64) -> Result<DatasetRef> {
        match policy {
            OFF => Ok(dataset.clone()),
            FILE => self.of_files(dataset),
            DATA => self.of_elements(dataset),
            HINT => Ok(self.hinted(dataset)),
            _ => match self.of_files(dataset) {
                Err(error) if error.code == Code::NotFound => self.of_elements(dataset),
                found => found,
            },
        }
    }

    /// Divides the files that a dataset reads: the inputs of the functions that open files.
    fn of_files(&self, dataset: &DatasetRef) -> Result<DatasetRef> {
        let inputs = dataset.inputs();
        let parts = match inputs.as_slice() {
            [] => return Err(no_files(dataset)),
            [input] if opens_files(dataset) || joins_datasets(dataset) => vec![self.of_source(input)],
            [input] if passes_files(dataset) => vec![self.of_files(input)?],
            [_] => return Err(no_files(dataset)),
            several => several.iter().map(|input| self.of_files(input)).collect::<Result<_>>()?,
        };
        dataset.with_inputs(parts).ok_or_else(|| no_files(dataset))
    }

    /// A part of a source. It is shuffled afterwards: workers may shuffle in different ways.
    fn of_source(&self, dataset: &DatasetRef) -> DatasetRef {
        let shuffled = dataset.kind().starts_with("Shuffle") && !dataset.kind().contains("Repeat");
        let moved = match dataset.inputs().as_slice() {
            [input] if shuffled => dataset.with_inputs(vec![self.of_source(input)]),
            _ => None,
        };
        moved.unwrap_or_else(|| self.shard(dataset.clone()))
    }

    /// Divides the elements, before a final prefetch.
    fn of_elements(&self, dataset: &DatasetRef) -> Result<DatasetRef> {
        if let (true, [input]) = (is_last(&**dataset), dataset.inputs().as_slice())
            && let Some(found) = dataset.with_inputs(vec![self.of_elements(input)?])
        {
            return Ok(found);
        }
        let dataset = match dataset.inputs().as_slice() {
            // batches of different sizes would come to different replicas
            [input] if dataset.kind() == "RebatchV2" => {
                rebatch(input.clone(), self.replicas()?, dataset.spec().clone())
            }
            _ => dataset.clone(),
        };
        Ok(self.shard(dataset))
    }

    fn replicas(&self) -> Result<usize> {
        let replicas = usize::try_from(self.replicas).ok().filter(|&replicas| replicas > 0);
        replicas.ok_or_else(|| invalid!("num_replicas must be greater than zero to shard a dataset with rebatch"))
    }

    /// Fills in the shards that the user left open.
    fn hinted(&self, dataset: &DatasetRef) -> DatasetRef {
        let inputs: Vec<DatasetRef> = dataset.inputs().iter().map(|input| self.hinted(input)).collect();
        match inputs.as_slice() {
            [] => dataset.clone(),
            [input] if dataset.kind() == UNCHOSEN => shard(input.clone(), self.workers, self.index, false),
            _ => dataset.with_inputs(inputs).unwrap_or_else(|| dataset.clone()),
        }
    }

    fn shard(&self, dataset: DatasetRef) -> DatasetRef {
        shard(dataset, self.workers, self.index, true)
    }
}

/// True for what may follow the shard of a dataset whose elements are divided.
fn is_last(dataset: &dyn Dataset) -> bool {
    matches!(dataset.kind(), "Prefetch" | "Options" | "Model")
}

/// True if a function returns datasets that read files.
fn opens_files(dataset: &DatasetRef) -> bool {
    let returns_datasets = is_joined(dataset) || dataset.spec().types.contains(&DType::VARIANT);
    returns_datasets && dataset.functions().iter().any(|function| function.has_op(&reads_files))
}

fn reads_files(op: &str) -> bool {
    const READERS: [&str; 5] =
        ["ArrayRecordDataset", "FixedLengthRecordDataset", "RecordIODataset", "TFRecordDataset", "TextLineDataset"];
    READERS.iter().any(|reader| op.strip_prefix(reader).is_some_and(|version| version.is_empty() || version == "V2"))
}

/// True if the elements are those of datasets that a function returns.
fn is_joined(dataset: &DatasetRef) -> bool {
    dataset.kind() == "FlatMap" || dataset.kind().contains("Interleave") && dataset.kind() != "DirectedInterleave"
}

/// True for datasets of the elements of other datasets, which come, maybe by way of others, from a tensor of datasets.
fn joins_datasets(dataset: &DatasetRef) -> bool {
    let [input] = &dataset.inputs()[..] else { return false };
    is_joined(dataset) && are_joined_slices(input)
}

fn are_joined_slices(dataset: &DatasetRef) -> bool {
    let [input] = &dataset.inputs()[..] else { return false };
    let is_slices = input.inputs().is_empty() && input.spec().types.contains(&DType::VARIANT);
    is_joined(dataset) && is_slices || passes_files(dataset) && are_joined_slices(input)
}

/// True if dividing the files of the input divides those of the dataset.
fn passes_files(dataset: &DatasetRef) -> bool {
    let [input] = &dataset.inputs()[..] else { return false };
    !is_joined(dataset) || input.spec().types.contains(&DType::VARIANT)
}

fn no_files(dataset: &DatasetRef) -> Error {
    not_found!(
        "Did not find a shardable source, walked to a node which is not a dataset: {}Dataset. Consider either turning \
         off auto-sharding or switching the auto_shard_policy to DATA to shard this dataset. You can do this by creating \
         a new `tf.data.Options()` object then setting `options.experimental_distribute.auto_shard_policy = \
         AutoShardPolicy.DATA` before applying the options object to the dataset via `dataset.with_options(options)`.",
        dataset.kind()
    )
}
