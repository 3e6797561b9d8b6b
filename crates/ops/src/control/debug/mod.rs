//! The nodes that a debugger puts between others: copies, dumps of tensors, and summaries of their numbers.

mod dump;
mod numbers;

use self::dump::Dump;
use self::numbers::{Health, Summary, doubles, nan_count};
use graph::ShapeQuery;
use op::shapes::{unchanged, unknown};
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, internal, unimplemented_op};
use tensor::{DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Copy(input: T) -> output: T; T: type; tensor_name: string = \"\"; debug_ops_spec: list(string) = []; \
              uninitialized",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: copy_kernel,
        facts: PLAIN,
    },
    Op {
        def: "CopyHost(input: T) -> output: T; T: type; tensor_name: string = \"\"; debug_ops_spec: list(string) = []; \
              uninitialized",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: copy_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DebugIdentity(input: T) -> output: T; T: type; device_name: string = \"\"; tensor_name: string = \"\"; \
              debug_urls: list(string) = []; gated_grpc: bool = false; uninitialized",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: identity_kernel,
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "DebugIdentityV2(input: T) -> output: T; T: type; tfdbg_context_id: string = \"\"; op_name: string = \"\"; \
              output_slot: int = -1; tensor_debug_mode: int = -1; debug_urls: list(string) = []; \
              circular_buffer_size: int = 1000; tfdbg_run_id: string = \"\"; stateful",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: identity_v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DebugIdentityV3(input: T) -> output: T; T: type; device_name: string = \"\"; tensor_name: string = \"\"; \
              io_of_node: string = \"\"; is_input: bool = false; io_index: int = -1; debug_urls: list(string) = []; \
              gated_grpc: bool = false; stateful; uninitialized",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: identity_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DebugNanCount(input: T) -> output: int64; T: type; device_name: string = \"\"; tensor_name: string = \"\"; \
              debug_urls: list(string) = []; gated_grpc: bool = false; uninitialized",
        shape: one,
        grad: Grad::Unknown,
        kernel: nan_count_kernel,
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "DebugNumericSummary(input: T) -> output: double; T: type; device_name: string = \"\"; \
              tensor_name: string = \"\"; debug_urls: list(string) = []; lower_bound: float = -inf; \
              upper_bound: float = inf; mute_if_healthy: bool = false; gated_grpc: bool = false; uninitialized",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: numeric_summary_kernel,
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "DebugNumericSummaryV2(input: T) -> output: output_dtype; output_dtype: {float, double} = float; T: type; \
              tensor_debug_mode: int = -1; tensor_id: int = -1",
        shape: unknown,
        grad: Grad::Unknown,
        kernel: numeric_summary_v2_kernel,
        facts: PLAIN,
    },
];

fn one(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::new(&[1])])
}

/// Tensors never change, so the tensor itself is the copy.
fn copy_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for spec in &setup.list("debug_ops_spec")?.strings {
        if spec.split(|&byte| byte == b';').count() != 3 {
            return Err(internal!(
                "Unexpected number of semicolons in debug_ops_spec element: {}",
                String::from_utf8_lossy(spec)
            ));
        }
    }
    Ok(unary(|_, input| Ok(input)).free())
}

fn identity_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dump = Dump::of(setup)?;
    Ok(unary(move |_, input| match dump.is_open() {
        true => {
            dump.publish(&input)?;
            Ok(input)
        }
        false => nothing(input.dtype()),
    }))
}

/// What a node returns whose gate is closed.
fn nothing(dtype: DType) -> Result<Tensor> {
    Tensor::zeros_of(dtype, [0])
}

fn identity_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    if let Some(url) = setup.list("debug_urls")?.strings.first() {
        let text = String::from_utf8_lossy(url);
        if !text.starts_with("file://") {
            return Err(internal!("Unsupported debug URL schema in: {text}"));
        }
        return Err(unimplemented_op!(
            "Execution traces of tfdbg2 are not written here: debug with tf_debug.DumpingDebugWrapperSession"
        ));
    }
    Ok(unary(|_, input| Ok(input)))
}

fn nan_count_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dump, dtype) = (Dump::of(setup)?, setup.dtype("T")?);
    if !dtype.is_floating() && !dtype.is_integer() {
        return Err(setup.no_kernel());
    }
    Ok(unary(move |_, input| {
        if !dump.is_open() {
            return nothing(DType::I64);
        }
        let count = Tensor::vector(&[nan_count(&doubles(&input)?)]);
        dump.publish(&count)?;
        Ok(count)
    }))
}

fn numeric_summary_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dump, dtype) = (Dump::of(setup)?, setup.dtype("T")?);
    let (lower, upper) = (setup.float("lower_bound")?, setup.float("upper_bound")?);
    let mute_if_healthy = setup.bool("mute_if_healthy")?;
    let is_half = dtype == DType::F16 || dtype == DType::BF16;
    if is_half || !(dtype.is_floating() || dtype.is_integer() || dtype == DType::BOOL) {
        return Err(setup.no_kernel());
    }
    Ok(unary(move |_, input| {
        if !dump.is_open() {
            return nothing(DType::F64);
        }
        let summary = Summary::of(&doubles(&input)?, f64::from(lower), f64::from(upper));
        let described = summary.describe(&input);
        if !(mute_if_healthy && summary.is_healthy()) {
            dump.publish(&described)?;
        }
        Ok(described)
    }))
}

fn numeric_summary_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, out) = (setup.dtype("T")?, setup.dtype("output_dtype")?);
    let (mode, id) = (setup.int("tensor_debug_mode")?, setup.int("tensor_id")?);
    if !(dtype.is_floating() || dtype.is_integer() || dtype == DType::BOOL) {
        return Err(setup.no_kernel());
    }
    Ok(unary(move |_, input| {
        let numbers = Health::of(&doubles(&input)?).describe(&input, mode, id, out)?;
        match out {
            DType::F64 => Ok(Tensor::vector(&numbers)),
            _ => Ok(Tensor::vector(&numbers.iter().map(|&number| number as f32).collect::<Vec<f32>>())),
        }
    }))
}
