//! What is known about a dataset without running it: DatasetCardinality, ComputeBatchSize.

use crate::attrs::reading;
use crate::dataset::fingerprint_of;
use crate::graphs::{GraphReader, check_external_state, graph_of, without_devices};
use crate::options::external_state_policy;
use crate::{DatasetRef, dataset_of, fold};
use graph::wire::write_graph;
use op::shapes;
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs, unary};
use status::{Error, Result, failed_precondition, invalid};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DatasetCardinality(input_dataset: variant) -> cardinality: int64; cardinality_options: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, cardinality_kernel),
        facts: PLAIN,
    },
    Op {
        def: "ExperimentalDatasetCardinality(input_dataset: variant) -> cardinality: int64",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, cardinality_kernel),
        facts: PLAIN,
    },
    Op {
        def: "ComputeBatchSize(input_dataset: variant) -> batch_size: int64",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, batch_size_kernel),
        facts: PLAIN,
    },
    Op {
        def: "DatasetFingerprint(input_dataset: variant) -> fingerprint: uint64",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, fingerprint_kernel),
        facts: PLAIN,
    },
    Op {
        def: "DatasetToGraph(input_dataset: variant) -> graph: string; stateful_whitelist: list(string) >= 0 = []; \
              allow_stateful: bool = false; strip_device_assignment: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, to_graph_kernel),
        facts: PLAIN,
    },
    Op {
        def: "DatasetToGraphV2(input_dataset: variant) -> graph: string; external_state_policy: int = 0; \
              strip_device_assignment: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| reading(setup, to_graph_kernel),
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

/// Policies for functions with state in the graph of a dataset.
const WARN: i64 = 0;
const FAIL: i64 = 2;

fn to_graph_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let policy = match setup.find("external_state_policy") {
        Some(_) => setup.int("external_state_policy")?,
        None if setup.bool("allow_stateful")? => WARN,
        None => FAIL,
    };
    let strips_devices = setup.bool("strip_device_assignment")?;
    Ok(unary(move |_, tensor| {
        let policy = external_state_policy(&dataset_of(&tensor)?)?.unwrap_or(policy);
        let checked = if policy == FAIL { check_external_state(&tensor) } else { Ok(()) };
        let graph = checked.and_then(|()| graph_of(&tensor)).map_err(not_serialized)?;
        let graph = if strips_devices { without_devices(graph)? } else { graph };
        Ok(Tensor::string(write_graph(&graph)))
    }))
}

fn not_serialized(error: Error) -> Error {
    failed_precondition!("Failed to serialize the input pipeline graph: {}", error.message)
}

fn from_graph_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let reader = GraphReader::of(setup);
    Ok(many(move |ctx, mut inputs| {
        if inputs.look(0)?.shape().rank() != 0 {
            return Err(invalid!("graph_def must be a scalar"));
        }
        let graph = inputs.tensor(0)?.to_string_scalar()?;
        Ok(outputs![reader.read(ctx, &graph)?])
    }))
}
