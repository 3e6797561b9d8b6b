//! Checks and prints values while a graph runs: Assert, Print, PrintV2.

use crate::checkpoint::systems;
use crate::string::summary::summary;
use graph::{Node, Output};
use op::shapes::{none, unchanged};
use op::{Grad, Grads, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use std::sync::atomic::{AtomicI64, Ordering};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Assert(condition: bool, data: [T]); T: list(type) >= 1; summarize: int = 3; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: assert_kernel,
        facts: PLAIN.runs_unread(),
    },
    Op {
        def: "Print(input: T, data: [U]) -> output: T; T: type; U: list(type) >= 0; message: string = \"\"; \
              first_n: int = -1; summarize: int = 3; stateful",
        shape: unchanged,
        grad: Grad::Rule(print_rule),
        kernel: print_kernel,
        facts: PLAIN,
    },
    Op {
        def: "PrintV2(input: string); output_stream: string = \"stderr\"; end: string = \"\\n\"; stateful",
        shape: none,
        grad: Grad::Unknown,
        kernel: print_v2_kernel,
        facts: PLAIN,
    },
];

/// An error that shows `data` unless `condition` holds.
pub fn assert(condition: &Output, data: &[Output]) -> Node {
    condition.scope().op("Assert").input(condition).inputs(data).node()
}

/// The same value; shows `data` after `message` whenever it passes.
pub fn print(input: &Output, data: &[Output], message: &str) -> Output {
    input.scope().op("Print").input(input).inputs(data).attr("message", message).output()
}

/// The gradient is passed through; what is printed has none.
fn print_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let mut grads = vec![None; op.all_inputs().len()];
    grads[0] = Some(op::Gradient::Dense(dy.clone()));
    Ok(grads)
}

fn assert_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let most = setup.int("summarize")?;
    Ok(many(move |_, mut inputs| {
        let condition = inputs.tensor(0)?;
        if condition.shape().rank() != 0 {
            return Err(invalid!("In[0] should be a scalar: {}", condition.shape()));
        }
        if condition.to_scalar::<bool>()? {
            return Ok(outputs![]);
        }
        let shown = shown(&inputs.tensors_from(1)?, most)?;
        Err(invalid!("assertion failed: {}", shown.join(" ")))
    })
    .free())
}

/// Each tensor in brackets.
fn shown(data: &[Tensor], most: i64) -> Result<Vec<String>> {
    data.iter().map(|tensor| Ok(format!("[{}]", summary(tensor, most)?))).collect()
}

fn print_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (message, most) = (setup.string("message")?, setup.int("summarize")?);
    let (first_n, printed) = (setup.int("first_n")?, AtomicI64::new(0));
    Ok(many(move |_, mut inputs| {
        let input = inputs.take(0)?;
        if first_n < 0 || printed.fetch_add(1, Ordering::Relaxed) < first_n {
            let shown = shown(&inputs.tensors_from(1)?, most)?.concat();
            emit("stderr", &format!("{message}{shown}"));
        }
        Ok(outputs![input.read()?])
    }))
}

/// Emits a printed text as a trace event; the program decides where it is written.
fn emit(stream: &str, text: &str) {
    tracing::info!(target: "flowgrid::print", stream, "{text}");
}

const STREAMS: [&str; 5] = ["stdout", "stderr", "log(info)", "log(warning)", "log(error)"];

fn print_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (stream, end) = (setup.string("output_stream")?, setup.string("end")?);
    let file = stream.strip_prefix("file://").map(str::to_string);
    let systems = systems(setup)?;
    if file.is_none() && !STREAMS.contains(&stream.as_str()) {
        return Err(invalid!("Unknown output stream: {stream}, Valid streams are: {}", STREAMS.join(" ")));
    }
    let to_file = file.is_some();
    let kernel = many(move |_, mut inputs| {
        let input = inputs.tensor(0)?;
        if input.shape().rank() != 0 {
            return Err(invalid!("Input is expected to be scalar, but got {}", input.shape()));
        }
        let text = input.to_string_scalar()?;
        match &file {
            Some(path) => {
                let mut file = systems.append(path)?;
                file.append(&[&text, end.as_bytes()].concat())?;
                file.close()?;
            }
            None => emit(&stream, &format!("{}{}", String::from_utf8_lossy(&text), end.trim_end_matches('\n'))),
        }
        Ok(outputs![])
    });
    Ok(if to_file { kernel.heavy() } else { kernel })
}
