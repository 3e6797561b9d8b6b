//! CollectiveAssignGroupV2: finds the group of a device in a table of groups.

use crate::string::summary::summary;
use op::{Grad, Inputs, Op, Outputs, PLAIN, many, outputs, shapes};
use status::{Result, invalid};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "CollectiveAssignGroupV2(group_assignment: int32, device_index: int32, base_key: int32) -> \
          group_size: int32, group_key: int32; stateful; distributed",
    shape: shapes::scalar,
    grad: Grad::Unknown,
    kernel: |_| Ok(many(|_, inputs| assign(inputs)).free()),
    facts: PLAIN,
}];

fn assign(mut inputs: Inputs) -> Result<Outputs> {
    let (table, device, base) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
    let scalar = |tensor: &Tensor, name: &str| match tensor.shape().rank() {
        0 => tensor.to_scalar::<i32>(),
        _ => Err(invalid!("{name} must be a scalar, but received tensor of shape: {}", tensor.shape())),
    };
    let device = scalar(&device, "device_index")?;
    let &[_, size] = table.shape().dims() else {
        return Err(invalid!("group_assignment must be a 2-d Tensor, but received tensor of shape: {}", table.shape()));
    };
    let base = scalar(&base, "base_key")?;
    let devices = table.values::<i32>()?;
    let range = 0..devices.len() as i64;
    for (group, members) in devices.chunks(size.max(1)).enumerate() {
        let key = base.wrapping_add(group as i32);
        if key == 0 {
            return Err(invalid!(
                "Using the reserved group_key = 0 is not allowed: group_id = {group}, base_key = {base}"
            ));
        }
        for &member in members {
            if !range.contains(&member.into()) {
                let table = described(&table)?;
                return Err(invalid!("Not all items in group_assignment {table} is within [0, number of devices)"));
            }
            if member == device {
                return Ok(outputs![Tensor::scalar(size as i32), Tensor::scalar(key)]);
            }
        }
    }
    Err(invalid!("device_index {device} is not found in group_assignment {}", described(&table)?))
}

/// A table as TensorFlow describes it in messages.
fn described(table: &Tensor) -> Result<String> {
    Ok(format!("Tensor<type: int32 shape: {} values: {}>", table.shape(), summary(table, 3)?))
}
