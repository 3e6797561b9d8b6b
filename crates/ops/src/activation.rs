//! The activations that combined ops apply to a product with a bias.

use crate::math_ops::run_map;
use math::elementwise::{cost, map_in_place};
use math::function::Real;
use math::lanes::Map;
use op::Ctx;
use status::Result;
use tensor::{Element, Tensor};

/// The last step of a combined op.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Activation {
    /// The result is not changed.
    None,
    Relu,
    Relu6,
    Elu,
    Tanh,
    Sigmoid,
    /// With the slope for negative elements.
    LeakyRelu(f32),
}

impl Activation {
    /// The activation that is computed by an op of this name; none for an op that combined ops do not know. `slope` reads
    /// the attribute for the slope of LeakyRelu.
    pub(crate) fn of_op(op: &[u8], slope: impl FnOnce() -> Result<f32>) -> Result<Option<Activation>> {
        Ok(Some(match op {
            b"Relu" => Activation::Relu,
            b"Relu6" => Activation::Relu6,
            b"Elu" => Activation::Elu,
            b"Tanh" => Activation::Tanh,
            b"Sigmoid" => Activation::Sigmoid,
            b"LeakyRelu" => Activation::LeakyRelu(slope()?),
            _ => return Ok(None),
        }))
    }

    /// Applies it to a product; Relu is applied together with the bias, by the epilogue of the product.
    pub(crate) fn apply_after_epilogue<T: Element + Real>(self, ctx: &Ctx<'_>, mut x: Tensor) -> Result<Tensor> {
        match self {
            Activation::None | Activation::Relu => Ok(x),
            Activation::Relu6 => run_map(ctx, &Map::vector(|x: T| x.larger(T::ZERO).smaller(T::from_f64(6.0))), x),
            Activation::Elu => run_map(ctx, &Map::vector(T::elu), x),
            Activation::Tanh => run_map(ctx, &Map::vector(T::tanh), x),
            Activation::Sigmoid => run_map(ctx, &Map::vector(T::sigmoid), x),
            Activation::LeakyRelu(slope) => {
                let slope = T::from_f64(slope.into());
                map_in_place(ctx.pool(), cost::FUNCTION, x.values_mut::<T>()?, move |x| {
                    if x > T::ZERO { x } else { x.mul(slope) }
                });
                Ok(x)
            }
        }
    }
}
