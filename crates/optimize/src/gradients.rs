//! Gradients by the rules of all ops there are.

use gradient::GradientOptions;
use graph::Output;
use op::Gradient;
use status::Result;

/// The derivative of the sum of `ys` by each of `xs`; none where `ys` do not depend on it.
pub fn gradients(ys: &[&Output], xs: &[&Output]) -> Result<Vec<Option<Gradient>>> {
    gradients_with(ys, xs, &GradientOptions::default())
}

/// As `gradients`, with options.
pub fn gradients_with(ys: &[&Output], xs: &[&Output], options: &GradientOptions) -> Result<Vec<Option<Gradient>>> {
    let own = |outputs: &[&Output]| outputs.iter().map(|&output| output.clone()).collect::<Vec<_>>();
    gradient::gradients_with(&ops::registry(), &own(ys), &own(xs), options)
}
