//! Tensor summaries, for viewers with plugins that display them.

use super::scalar_tag;
use graph::Output;
use io::event;
use op::shapes::scalar;
use op::{Kernel, Op, Setup, many, outputs, unary};
use status::{Result, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "TensorSummary(tensor: T) -> summary: string; T: type; description: string = \"\"; labels: list(string) = []; \
     display_name: string = \"\"", scalar, by_node_kernel;
    "TensorSummaryV2(tag: string, tensor: T, serialized_summary_metadata: string) -> summary: string; T: type",
        scalar, by_tag_kernel;
};

/// A summary of a tensor under a tag; `metadata` is a SummaryMetadata message that says how to display it.
pub fn tensor_summary(tag: &Output, tensor: &Output, metadata: &Output) -> Output {
    tensor.scope().op("TensorSummaryV2").input(tag).input(tensor).input(metadata).output()
}

/// An error if viewers cannot show elements of this type.
fn check_type(setup: &Setup<'_>) -> Result<()> {
    match setup.dtype("T")? {
        DType::STRING => Ok(()),
        dtype => for_plain!(setup, dtype, _T => Ok(())),
    }
}

fn by_node_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    check_type(setup)?;
    let node = setup.name().to_string();
    Ok(unary(move |_, tensor| Ok(Tensor::string(event::tensor_summary("", &node, &tensor, None)?))))
}

fn by_tag_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    check_type(setup)?;
    Ok(many(|_, mut inputs| {
        let tag = scalar_tag(&inputs.tensor(0)?, "tag must be scalar")?;
        let (tensor, metadata) = (inputs.tensor(1)?, inputs.tensor(2)?);
        if metadata.shape().rank() != 0 {
            return Err(invalid!("serialized_summary_metadata must be scalar"));
        }
        let metadata = Some(metadata.to_string_scalar()?);
        Ok(outputs![Tensor::string(event::tensor_summary(&tag, "", &tensor, metadata)?)])
    }))
}
