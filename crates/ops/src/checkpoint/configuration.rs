//! FileSystemSetConfiguration: options of file systems.

use super::systems;
use op::shapes::none;
use op::{Grad, Kernel, Op, PLAIN, Setup, many};
use status::{Result, invalid, unimplemented_op};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "FileSystemSetConfiguration(scheme: string, key: string, value: string); stateful",
    shape: none,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// No file system of this runtime has options that can change while it runs.
fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    Ok(many(move |_, mut inputs| {
        let scheme = text(&inputs.tensor(0)?, "scheme")?;
        let (key, _) = (text(&inputs.tensor(1)?, "key")?, text(&inputs.tensor(2)?, "value")?);
        let path = if scheme.is_empty() { "/".to_string() } else { format!("{scheme}://host/file") };
        if systems.of(&path).is_err() {
            return Err(unimplemented_op!("File system scheme '{scheme}' not found to set configuration"));
        }
        Err(unimplemented_op!("SetOption: the file system '{scheme}' has no option '{key}'"))
    }))
}

fn text(tensor: &Tensor, name: &str) -> Result<String> {
    match tensor.shape().rank() {
        0 => Ok(String::from_utf8_lossy(&tensor.to_string_scalar()?).into_owned()),
        _ => Err(invalid!("{name} must be scalar, got shape {}", tensor.shape())),
    }
}
