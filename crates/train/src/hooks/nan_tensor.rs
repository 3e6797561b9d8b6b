//! Stops training when the loss is NaN.

use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::Output;
use status::{Code, Error, Result};
use tensor::{DType, Tensor, bf16, f16};

/// Stops training when the loss is NaN, with or without an error.
pub struct NanTensor {
    loss: Output,
    fails: bool,
}

impl NanTensor {
    /// Fails with an error if the loss is NaN.
    pub fn new(loss: &Output) -> NanTensor {
        NanTensor { loss: loss.clone(), fails: true }
    }

    /// Stops without an error if the loss is NaN.
    pub fn without_error(loss: &Output) -> NanTensor {
        NanTensor { loss: loss.clone(), fails: false }
    }
}

impl SessionRunHook for NanTensor {
    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        Ok(RunArgs::fetch(&self.loss))
    }

    fn after_run(&mut self, context: &RunContext<'_>, values: &RunValues) -> Result<()> {
        if !has_nan(&values.get(0)?)? {
            return Ok(());
        }
        if self.fails {
            return Err(Error::new(Code::Unknown, "NaN loss during training."));
        }
        tracing::warn!("Model diverged with loss = NaN.");
        context.request_stop();
        Ok(())
    }
}

/// Whether an element is NaN. Integers never are.
fn has_nan(loss: &Tensor) -> Result<bool> {
    Ok(match loss.dtype() {
        DType::F16 => loss.values::<f16>()?.iter().any(|value| value.is_nan()),
        DType::BF16 => loss.values::<bf16>()?.iter().any(|value| value.is_nan()),
        DType::F32 => loss.values::<f32>()?.iter().any(|value| value.is_nan()),
        other if other.is_integer() => false,
        _ => loss.values::<f64>()?.iter().any(|value| value.is_nan()),
    })
}
