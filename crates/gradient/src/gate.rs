//! A gate: several gradients, none of which passes before all are there.

use graph::{Node, Output, Scope};
use op::{Gradient, Slices};

/// Replaces each gradient by one that waits for all.
pub(crate) fn gate<'a>(scope: &Scope, gradients: impl Iterator<Item = &'a mut Gradient>) {
    let gradients: Vec<&mut Gradient> = gradients.collect();
    let nodes: Vec<Node> =
        gradients.iter().flat_map(|gradient| parts(gradient)).map(|part| part.node().clone()).collect();
    let scope = scope.named("tuple");
    let all = scope.after(&nodes).op("NoOp").named("group_deps").node();
    let scope = scope.after([&all]);
    let passed = |output: &Output| scope.op("Identity").named("control_dependency").input(output).output();
    for gradient in gradients {
        *gradient = match gradient {
            Gradient::Dense(output) => Gradient::Dense(passed(output)),
            Gradient::Sparse(slices) => {
                let (indices, values) = (passed(&slices.indices), passed(&slices.values));
                Gradient::Sparse(Slices { indices, values, shape: slices.shape.clone() })
            }
        };
    }
}

fn parts(gradient: &Gradient) -> Vec<&Output> {
    match gradient {
        Gradient::Dense(output) => vec![output],
        Gradient::Sparse(slices) => vec![&slices.indices, &slices.values],
    }
}
