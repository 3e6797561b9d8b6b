//! Merges summaries of several ops.

use graph::{Output, Scope};
use io::event::merge_summaries;
use op::shapes::scalar;
use op::{Kernel, Op, Setup, many, outputs};
use status::Result;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = rows! {
    "MergeSummary(inputs: N * string) -> summary: string; N: int >= 1", scalar, merge_kernel;
};

/// One summary with the values of all.
pub fn merge_summary(scope: &Scope, inputs: &[Output]) -> Output {
    scope.op("MergeSummary").inputs(inputs).output()
}

fn merge_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let tensors = inputs.tensors_from(0)?;
        let messages = tensors.iter().map(Tensor::strings).collect::<Result<Vec<_>>>()?;
        Ok(outputs![Tensor::string(merge_summaries(messages.into_iter().flatten())?)])
    }))
}
