//! Optimizers by the names that configurations use.

use crate::{Adagrad, Adam, Ftrl, GradientDescent, Momentum, Optimizer, Rate, RmsProp, UpdateRule};
use status::{Result, invalid};

/// The momentum of `Momentum` when only its name is given.
const MOMENTUM: f64 = 0.9;

/// Makes a rule with a learning rate.
type Make = fn(Rate) -> Box<dyn UpdateRule>;

/// The names that TensorFlow's estimators know, and `Momentum`.
const NAMES: [(&str, Make); 6] = [
    ("Adagrad", |rate| Box::new(Adagrad::new(rate))),
    ("Adam", |rate| Box::new(Adam::new(rate))),
    ("Ftrl", |rate| Box::new(Ftrl::new(rate))),
    ("Momentum", |rate| Box::new(Momentum::new(rate, MOMENTUM))),
    ("RMSProp", |rate| Box::new(RmsProp::new(rate))),
    ("SGD", |rate| Box::new(GradientDescent::new(rate))),
];

impl Optimizer {
    /// The optimizer of this name, with this learning rate and what else it has by default: `Adagrad`, `Adam`, `Ftrl`,
    /// `Momentum` (0.9), `RMSProp` or `SGD`.
    pub fn by_name(name: &str, rate: impl Into<Rate>) -> Result<Optimizer> {
        match NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, make)) => Ok(Optimizer::over(make(rate.into()))),
            None => {
                let names = NAMES.map(|(name, _)| name).join(", ");
                Err(invalid!("Unsupported optimizer name: {name}. Supported names are: {names}"))
            }
        }
    }
}
