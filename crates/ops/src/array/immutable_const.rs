//! ImmutableConst: a tensor whose bytes are those of a file.

use crate::checkpoint::systems;
use op::shapes::attr_shape;
use op::{Grad, Kernel, Op, PLAIN, Setup, source};
use status::{Result, internal, invalid, unimplemented_op};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "ImmutableConst() -> tensor: dtype; dtype: type; shape: shape; memory_region_name: string",
    shape: attr_shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, shape, name) = (setup.dtype("dtype")?, setup.shape("shape")?, setup.string("memory_region_name")?);
    if dtype == DType::RESOURCE || dtype == DType::VARIANT {
        return Err(invalid!("Resource and variant dtypes are invalid for this op."));
    }
    let shape = shape.known().ok_or_else(|| invalid!("The shape {shape} of ImmutableConst is not fully defined"))?;
    let systems = systems(setup)?;
    Ok(source(move |_| {
        let file = systems.open(&name)?;
        if dtype == DType::STRING {
            return Err(unimplemented_op!("Sorry, DT_STRING is not currently supported for ImmutableConstOp."));
        }
        let (size, wanted) = (file.size()?, shape.checked_elements()? as u128 * dtype.size() as u128);
        if wanted > size.into() {
            return Err(internal!("Readonly memory region has wrong length ({size}) when allocating {wanted}"));
        }
        let mut tensor = Tensor::scratch_of(dtype, shape.clone())?;
        file.read_exact_at(0, tensor.bytes_mut()?)?;
        match dtype {
            // Any byte but zero counts as true.
            DType::BOOL => {
                let bytes = tensor.bytes_mut()?;
                bytes.iter_mut().for_each(|byte| *byte = (*byte != 0).into());
                Ok(tensor)
            }
            _ => Ok(tensor),
        }
    })
    .heavy())
}
