//! A gate: makes several gradients available only when all of them are computed.

use graph::builtin_ops::{IDENTITY, NO_OP};
use graph::{Node, Output, Scope};
use op::{Gradient, Slices};

/// Replaces each gradient by an Identity that waits for all of them.
pub(crate) fn gate<'a>(scope: &Scope, gradients: impl Iterator<Item = &'a mut Gradient>) {
    let gradients: Vec<&mut Gradient> = gradients.collect();
    let nodes: Vec<Node> =
        gradients.iter().flat_map(|gradient| parts(gradient)).map(|part| part.node().clone()).collect();
    let scope = scope.named("tuple");
    let all = scope.after(&nodes).op(NO_OP).named("group_deps").node();
    let scope = scope.after([&all]);
    let gated = |output: &Output| scope.op(IDENTITY).named("control_dependency").input(output).output();
    for gradient in gradients {
        *gradient = match gradient {
            Gradient::Dense(output) => Gradient::Dense(gated(output)),
            Gradient::Sparse(slices) => {
                let (indices, values) = (gated(&slices.indices), gated(&slices.values));
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
