//! Gradients by the rules of all ops.

use gradient::{GradientOptions, densify};
use graph::Output;
use layers::Variable;
use op::Gradient;
use status::{Result, invalid};

/// What gradients are computed for: outputs and variables.
pub trait GradientTarget {
    /// The output that gradient rules see: for a variable its handle, so that every read of it counts.
    fn gradient_target(&self) -> Output;
}

impl GradientTarget for Output {
    fn gradient_target(&self) -> Output {
        self.clone()
    }
}

impl GradientTarget for Variable {
    fn gradient_target(&self) -> Output {
        self.handle().clone()
    }
}

/// The gradient of the sum of `y` with respect to `x`: `gradient(&loss, &w)?`.
///
/// It is an error if `y` does not depend on `x`. It is a node, so it can be differentiated again.
pub fn gradient(y: &Output, x: &impl GradientTarget) -> Result<Output> {
    Ok(gradients(y, &[x])?.remove(0))
}

/// The gradients of the sum of `y` with respect to each of `xs`, as dense tensors: `gradients(&loss, &[&a, &b])?`.
///
/// It is an error if `y` does not depend on one of them. [`gradients_with`] gives `None` there, keeps the gradients of
/// gathered rows as indexed slices, and differentiates several outputs at once.
pub fn gradients<X: GradientTarget>(y: &Output, xs: &[&X]) -> Result<Vec<Output>> {
    let targets: Vec<Output> = xs.iter().map(|x| x.gradient_target()).collect();
    let found = gradients_with(&[y], &targets.iter().collect::<Vec<_>>(), &GradientOptions::default())?;
    let dense = |(gradient, target): (Option<Gradient>, &Output)| match gradient {
        Some(gradient) => Ok(densify(&gradient)),
        None => Err(invalid!("{} does not depend on {}, so there is no gradient", y.name(), target.name())),
    };
    found.into_iter().zip(&targets).map(dense).collect()
}

/// The gradients of the sum of `ys` with respect to each of `xs`: dense or indexed slices, and none where `ys` do not
/// depend on it.
pub fn gradients_with(ys: &[&Output], xs: &[&Output], options: &GradientOptions) -> Result<Vec<Option<Gradient>>> {
    let own = |outputs: &[&Output]| outputs.iter().map(|&output| output.clone()).collect::<Vec<_>>();
    gradient::gradients_with(&data::registry(), &own(ys), &own(xs), options)
}
