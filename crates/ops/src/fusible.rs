//! Which ops do the same to every element, so that chains of them can run in one pass.

use math::fused::{Binary, Unary};
use op::Elementwise;

/// What an op does to 32-bit floats, if it goes element by element and broadcasts.
///
/// Ops that refuse operands of different shapes are left out: fused, they would broadcast.
pub(crate) fn elementwise(op: &str) -> Option<Elementwise> {
    let unary = |what| Some(Elementwise::Unary(what));
    let binary = |what| Some(Elementwise::Binary(what));
    match op {
        "Add" | "AddV2" => binary(Binary::Add),
        "Sub" => binary(Binary::Sub),
        "Mul" => binary(Binary::Mul),
        "RealDiv" | "Div" => binary(Binary::Div),
        "DivNoNan" => binary(Binary::DivNoNan),
        "MulNoNan" => binary(Binary::MulNoNan),
        "Maximum" => binary(Binary::Max),
        "Minimum" => binary(Binary::Min),
        "SquaredDifference" => binary(Binary::SquaredDifference),
        "Neg" => unary(Unary::Neg),
        "Abs" => unary(Unary::Abs),
        "Square" => unary(Unary::Square),
        "Sqrt" => unary(Unary::Sqrt),
        "Rsqrt" => unary(Unary::Rsqrt),
        "Reciprocal" | "Inv" => unary(Unary::Reciprocal),
        "Exp" => unary(Unary::Exp),
        "Expm1" => unary(Unary::Expm1),
        "Log" => unary(Unary::Log),
        "Log1p" => unary(Unary::Log1p),
        "Tanh" => unary(Unary::Tanh),
        "Sigmoid" => unary(Unary::Sigmoid),
        "Relu" => unary(Unary::Relu),
        "Relu6" => unary(Unary::Relu6),
        "Elu" => unary(Unary::Elu),
        "Selu" => unary(Unary::Selu),
        "Softplus" => unary(Unary::Softplus),
        "Softsign" => unary(Unary::Softsign),
        "Sign" => unary(Unary::Sign),
        "Floor" => unary(Unary::Floor),
        "Ceil" => unary(Unary::Ceil),
        "Rint" => unary(Unary::Round),
        _ => None,
    }
}
