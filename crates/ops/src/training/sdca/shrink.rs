//! SdcaShrinkL1: weights as they count under L1 regularization.

use super::model::Regularization;
use op::shapes::none;
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::Result;

pub(crate) const OPS: &[Op] = &[Op {
    def: "SdcaShrinkL1(weights: Ref(num_features * float)); num_features: int >= 0; l1: float; l2: float",
    shape: none,
    grad: Grad::Stop,
    kernel,
    facts: PLAIN,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let regularization = Regularization::new(setup.float("l1")?, setup.float("l2")?);
    Ok(many(move |_, mut inputs| {
        for index in 0..inputs.len() {
            inputs.variable(index)?.update(|weights| {
                let weights = weights.values_mut::<f32>()?;
                weights.iter_mut().for_each(|weight| *weight = regularization.shrink_single(*weight));
                Ok(())
            })?;
        }
        Ok(outputs![])
    }))
}
