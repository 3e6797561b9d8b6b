//! Writes the manual's page of ops, `docs/ops.md`, from the rows and TensorFlow's op list.

use crate::builders::{crates, head};
use crate::kernel_types::kernel_types;
use graph::Signature;
use op::{Grad, Op};
use std::collections::BTreeMap;
use std::fmt::Write;

/// All ops of TensorFlow 2.21, which still has those of 1.x, one signature on a line.
const TENSORFLOW: &str = include_str!("../op-list.txt");

/// Why ops have no row: a reason, the beginnings of names, and other parts of names. The first reason that fits counts.
const REASONS: &[(&str, &[&str], &[&str])] = &[
    ("XLA's compiler and the ops that it creates", &["_Xla"], &["Xla", "MlirPassthrough", "BroadcastHelper"]),
    (
        "runs on TPUs only",
        &[
            "Infeed",
            "Outfeed",
            "Prelinearize",
            "ComputeDedup",
            "SplitDedup",
            "MergeDedup",
            "WorkerHeartbeat",
            "GetMinibatch",
        ],
        &[
            "TPU",
            "Tpu",
            "SparseCore",
            "MinibatchStatistics",
            "ConvertToCooTensor",
            "CooTensors",
            "GlobalIterId",
            "TaskIdAndGlobalCore",
        ],
    ),
    ("runs on GPUs only", &["Cudnn", "Nccl", "_Nccl", "GenerateBoundingBoxProposals"], &[]),
    (
        "quantised ops that run only after a rewrite of TensorFlow's optimiser for oneDNN",
        &["QuantizedConcatV2", "QuantizedDepthwiseConv2D"],
        &["QuantizedConv2DAnd", "QuantizedConv2DPer", "QuantizedConv2DWith", "QuantizedMatMulWith"],
    ),
    ("features of audio for TensorFlow Lite's models", &["AudioMicrofrontend"], &[]),
    (
        "collectives without a kernel for CPUs, and those of TPUs",
        &["Collective", "AllToAll", "CrossReplicaSum", "_ScopedAllocator"],
        &[],
    ),
    ("a rewrite of TensorFlow's optimiser for oneDNN; graphs of users do not have it", &["_Mkl", "__Mkl"], &[]),
    ("a rewrite of TensorFlow's optimiser; graphs of users do not have it", &["_Fused", "_Quantized"], &[]),
    ("DTensor", &["DTensor", "CopyToMesh", "Relayout"], &[]),
    ("the RISC experiment of TensorFlow's compiler", &["Risc"], &[]),
    ("boosted trees, which TensorFlow removed from its estimators", &[], &["BoostedTrees"]),
    ("calls of the RPC experiment", &["Rpc", "DeleteRpc"], &[]),
    (
        "calls into the Python process of the client, which a server in another process cannot do",
        &["PyFunc", "EagerPyFunc"],
        &[],
    ),
    ("the data service, a cluster of its own", &["DataService", "RegisterDataset"], &[]),
    ("LMDB, a C library", &["LMDB", "ExperimentalLMDB"], &[]),
    ("JPEG XL", &["DecodeJxl"], &[]),
    ("the collection of calibration statistics for quantisation", &["CalibrationStatistics", "CustomAggregator"], &[]),
    (
        "internal to clients that run eagerly",
        &["_DeviceArg", "_DeviceRetval", "_HostCast", "SyncDevice", "HostConst"],
        &[],
    ),
    ("internal to TensorFlow's own control-flow lowering", &["_If", "_While", "_ListToArray", "_ArrayToList"], &[]),
    ("transfers under their old public names, which no client creates", &["Send", "Recv"], &[]),
];

/// Ops of TensorFlow's tests, which are in its list but in no program.
const TEST_OPS: &[&str] = &[
    "A",
    "B",
    "Attr",
    "AttrBool",
    "AttrBoolList",
    "AttrDefault",
    "AttrEmptyListDefault",
    "AttrEnum",
    "AttrEnumList",
    "AttrFloat",
    "AttrListDefault",
    "AttrListMin",
    "AttrListTypeDefault",
    "AttrMin",
    "AttrPartialShape",
    "AttrPartialShapeList",
    "AttrShape",
    "AttrShapeList",
    "AttrTypeDefault",
    "Binary",
    "ComplexStruct",
    "ConstructionFails",
    "CopyOp",
    "DefaultAttrs",
    "DevicePlacementOp",
    "DtypeWithDefaultOp",
    "DumpTensor",
    "Fact",
    "FiveFloatOutputs",
    "FloatInput",
    "FloatOutput",
    "FloatOutputStringOutput",
    "Foo1",
    "Foo2",
    "Foo3",
    "FuncAttr",
    "FuncListAttr",
    "InPolymorphicTwice",
    "Int64Output",
    "IntAttr",
    "IntInput",
    "IntInputFloatInput",
    "IntInputIntOutput",
    "IntOutput",
    "IntOutputFloatOutput",
    "IsTensorFloat32Enabled",
    "KernelLabel",
    "KernelLabelRequired",
    "ListInput",
    "ListOutput",
    "MixedStruct",
    "NInPolymorphicTwice",
    "NInTwice",
    "NInTwoTypeVariables",
    "NIntsIn",
    "NIntsOut",
    "NIntsOutDefault",
    "NPolymorphicIn",
    "NPolymorphicOut",
    "NPolymorphicOutDefault",
    "NPolymorphicRestrictIn",
    "NPolymorphicRestrictOut",
    "Namespace>TestStringOutput",
    "None",
    "Old",
    "OpWithDefaultAttr",
    "OpWithFutureDefaultAttr",
    "OutT",
    "OutTypeList",
    "OutTypeListRestrict",
    "Polymorphic",
    "PolymorphicDefaultOut",
    "PolymorphicOut",
    "RefIn",
    "RefInputFloatInput",
    "RefInputFloatInputIntOutput",
    "RefInputIntInput",
    "RefOut",
    "RefOutput",
    "RefOutputFloatOutput",
    "RequiresOlderGraphVersion",
    "ReservedAttr",
    "ReservedInput",
    "ResourceCreateOp",
    "ResourceInitializedOp",
    "ResourceUsingOp",
    "Restrict",
    "Simple",
    "SimpleStruct",
    "SleepIdentityOp",
    "SleepOp",
    "StringListAttr",
    "StubResourceHandleOp",
    "TestAttr",
    "TestStringOutput",
    "TwoFloatInputs",
    "TwoFloatInputsFloatOutput",
    "TwoFloatInputsIntOutput",
    "TwoFloatOutputs",
    "TwoIntInputs",
    "TwoIntOutputs",
    "TwoRefsIn",
    "TypeList",
    "TypeListRestrict",
    "TypeListTwice",
    "Unary",
];

/// The names of TensorFlow's ops.
pub fn names() -> impl Iterator<Item = &'static str> {
    TENSORFLOW.lines().filter_map(|line| line.split('(').next())
}

/// Why an op has no row; none if it should have one.
pub fn reason(name: &str) -> Option<&'static str> {
    if TEST_OPS.contains(&name) {
        return Some("an op of TensorFlow's own tests");
    }
    let fits = |(_, starts, parts): &&(_, &[&str], &[&str])| {
        starts.iter().any(|start| name.starts_with(start)) || parts.iter().any(|part| name.contains(part))
    };
    REASONS.iter().find(fits).map(|(reason, _, _)| *reason)
}

/// The text of `docs/ops.md`.
pub fn ops_page() -> String {
    let families: Vec<_> = crates().into_iter().flat_map(|(_, families)| families).collect();
    let total: usize = families.iter().map(|(_, tables)| rows(tables).len()).sum();
    let mut page = format!(
        "# Ops\n\n\
         <!-- Generated by `cargo xtask builders` from the rows; do not edit. -->\n\n\
         The {total} ops that Flowgrid runs, all on CPUs, by family. A graph with another op is refused with an error\n\
         that names the op. The signatures are those of TensorFlow 2.21, which still has all ops of 1.x: a test compares\n\
         every row with TensorFlow's op list. Conformance cases compare results with those of TensorFlow.\n\n\
         The column of types lists those for which there is a kernel. The last column says whether the op has a gradient\n\
         (yes), has none because it is not differentiable (stops), or has no rule (no).\n"
    );
    for (family, tables) in families {
        write_family(&mut page, family, tables);
    }
    write_missing(&mut page);
    page
}

fn write_family(page: &mut String, family: &str, tables: &[&[Op]]) {
    let rows = rows(tables);
    let _ = write!(
        page,
        "\n## {family}\n\n{} ops\n\n| op | inputs and outputs | types | gradient |\n|---|---|---|---|\n",
        rows.len()
    );
    for (name, (row, signature)) in &rows {
        let gradient = match row.grad {
            Grad::Rule(_) | Grad::Rules(_) => "yes",
            Grad::Stop => "stops",
            Grad::Unknown => "no",
        };
        let types = kernel_types(row, signature);
        let _ = writeln!(
            page,
            "| `{name}` | `{}` | {types} | {gradient} |",
            head(signature).trim_start_matches(name.as_str())
        );
    }
}

/// The ops of TensorFlow's list without a row, by reason.
fn write_missing(page: &mut String) {
    let registry = data::registry();
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names().filter(|name| registry.op(name).is_none()) {
        by_reason.entry(reason(name).unwrap_or("not there yet")).or_default().push(name);
    }
    page.push_str(
        "\n## Ops without a row\n\nTensorFlow's list has these ops besides.\n\n| reason | ops | |\n|---|---:|---|\n",
    );
    for (reason, names) in by_reason {
        let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {reason} | {} | {} |", names.len(), list.join(" "));
    }
}

/// The ops of a family by name.
fn rows<'a>(tables: &[&'a [Op]]) -> BTreeMap<String, (&'a Op, Signature)> {
    let parsed =
        tables.iter().copied().flatten().filter_map(|row| Signature::parse(row.def).ok().map(|parsed| (row, parsed)));
    parsed.map(|(row, signature)| (signature.name.clone(), (row, signature))).collect()
}
