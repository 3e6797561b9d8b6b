//! What is known about a dataset without running it: DatasetCardinality, ComputeBatchSize.

use crate::attrs::string_scalar;
use crate::dataset::fingerprint_of;
use crate::{DatasetRef, dataset_of, fold};
use op::shapes;
use op::{Grad, Kernel, Op, PLAIN, Setup, many, unary};
use status::{Result, failed_precondition, unimplemented_op};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DatasetCardinality(input_dataset: variant) -> cardinality: int64; cardinality_options: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: cardinality_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalDatasetCardinality(input_dataset: variant) -> cardinality: int64",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: cardinality_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ComputeBatchSize(input_dataset: variant) -> batch_size: int64",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: batch_size_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DatasetFingerprint(input_dataset: variant) -> fingerprint: uint64",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: fingerprint_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DatasetToGraph(input_dataset: variant) -> graph: string; stateful_whitelist: list(string) >= 0 = []; \
              allow_stateful: bool = false; strip_device_assignment: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: to_graph_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DatasetToGraphV2(input_dataset: variant) -> graph: string; external_state_policy: int = 0; \
              strip_device_assignment: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: to_graph_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DatasetFromGraph(graph_def: string) -> handle: variant",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: from_graph_kernel,
        facts: PLAIN,
    },
];

fn cardinality_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, dataset| Ok(Tensor::scalar(dataset_of(&dataset)?.cardinality().number()))))
}

fn batch_size_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, dataset| Ok(Tensor::scalar(batch_size(&dataset_of(&dataset)?)))))
}

/// The first dimension of all elements, or -1.
fn batch_size(dataset: &DatasetRef) -> i64 {
    fold(dataset, &mut |dataset, inputs: Vec<i64>| match (dataset.batch_size(), &inputs[..]) {
        (Some(size), _) => size,
        (None, [first, rest @ ..]) if keeps_batches(dataset.kind()) && rest.iter().all(|size| size == first) => *first,
        _ => -1,
    })
}

/// True for the datasets whose elements have the first dimension of those of their inputs.
fn keeps_batches(kind: &str) -> bool {
    const KINDS: [&str; 14] = [
        "AssertCardinality",
        "Cache",
        "Concatenate",
        "Filter",
        "Model",
        "Options",
        "ParseExample",
        "Prefetch",
        "Repeat",
        "Shard",
        "Shuffle",
        "Skip",
        "Take",
        "Zip",
    ];
    let base = ["Finite", "Forever", "Empty", "Memory", "File"].iter().find_map(|prefix| kind.strip_prefix(prefix));
    let base = base.unwrap_or(kind).trim_end_matches(|c: char| c.is_ascii_digit());
    KINDS.contains(&base.strip_suffix('V').unwrap_or(base)) || base == "ShuffleAndRepeat"
}

/// Equal for equal datasets; the number is not that of TensorFlow, which hashes its own description of the dataset.
fn fingerprint_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, dataset| {
        dataset_of(&dataset)?;
        let fingerprint = fingerprint_of(&dataset);
        let fingerprint = fingerprint.ok_or_else(|| {
            failed_precondition!("Failed to serialize the input pipeline graph: it is not known how it was made")
        })?;
        Ok(Tensor::scalar(fingerprint))
    }))
}

/// TensorFlow describes datasets as graphs to rewrite them, to send them to workers of its data service, and to compare
/// them.
fn to_graph_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, dataset| {
        let kind = dataset_of(&dataset)?.kind();
        Err(failed_precondition!(
            "Failed to serialize the input pipeline graph: {kind}Dataset does not support serialization; to continue a \
             pipeline in another process, save the state of its iterator (SerializeIterator)"
        ))
    }))
}

fn from_graph_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        string_scalar(&mut inputs, 0, "graph_def")?;
        Err(unimplemented_op!(
            "A dataset cannot be created from a serialized graph; import the graph on the client (tf.import_graph_def) \
             and use its last node"
        ))
    }))
}
