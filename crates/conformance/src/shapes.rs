//! Comparison of shape functions with the shapes of TensorFlow's results.

use crate::attrs;
use crate::case::{Case, Kind, Want};
use crate::expected::Elements;
use graph::{OpSet, ShapeQuery, Signatures};
use op::Registry;
use status::{Result, not_found};
use tensor::{DType, PartialShape, Tensor};

/// Errors of the shape function of the case's op, with all inputs known, and with none.
pub fn check_shapes(registry: &Registry, case: &Case) -> Vec<String> {
    let Want::Outputs { .. } = &case.want else { return Vec::new() };
    let (mut shapes, mut constants, mut variables) = (Vec::new(), Vec::new(), Vec::new());
    let order = registry.signature(&case.op).map(|signature| signature.inputs.clone()).unwrap_or_default();
    for arg in &order {
        for (_, input) in case.inputs.iter().filter(|(name, _)| *name == arg.name) {
            let handle = input.kind == Kind::Resource;
            shapes.push(if handle { PartialShape::scalar() } else { PartialShape::from(&input.shape) });
            constants.push(input.value.clone().filter(|_| input.kind == Kind::Value));
            variables.push(handle.then(|| (input.dtype, PartialShape::from(&input.shape))));
        }
    }
    let count = shapes.len();
    let all = Known { shapes, constants, variables };
    let values = Known { constants: vec![None; count], ..all.clone() };
    let none = Known { shapes: vec![PartialShape::unknown(); count], variables: vec![None; count], ..values.clone() };
    let mut complaints = judge(registry, case, "inputs known", &all);
    complaints.extend(judge(registry, case, "values unknown", &values));
    complaints.extend(judge(registry, case, "inputs unknown", &none));
    complaints
}

/// The known shapes of the inputs, one entry for each.
#[derive(Clone)]
struct Known {
    shapes: Vec<PartialShape>,
    constants: Vec<Option<Tensor>>,
    variables: Vec<Option<(DType, PartialShape)>>,
}

fn judge(registry: &Registry, case: &Case, what: &str, known: &Known) -> Vec<String> {
    let Want::Outputs { outputs, .. } = &case.want else { return Vec::new() };
    let inferred = match infer(registry, case, known) {
        Ok(inferred) => inferred,
        Err(error) => return vec![format!("{what}: {error}")],
    };
    let mut complaints = Vec::new();
    if inferred.len() != outputs.len() {
        complaints.push(format!("{what}: {} shapes for {} outputs", inferred.len(), outputs.len()));
    }
    for (shape, (name, expected)) in inferred.iter().zip(outputs) {
        let opaque = matches!(expected.elements, Elements::Opaque);
        if !opaque && !shape.accepts(&expected.shape) {
            complaints.push(format!("{what}: {name} said to be {shape}, but is {}", expected.shape));
        }
    }
    complaints
}

fn infer(registry: &Registry, case: &Case, known: &Known) -> Result<Vec<PartialShape>> {
    let signature = registry.signature(&case.op).ok_or_else(|| not_found!("no op {}", case.op))?;
    let def = attrs::node(case, signature)?;
    let outputs = signature.output_types(&def)?.len();
    let Known { shapes, constants, variables } = known;
    registry.infer(&ShapeQuery { def: &def, signature, inputs: shapes, constants, variables, outputs })
}
