//! The losses of dual coordinate ascent: primal and dual losses of an example, and the best dual variable.

use status::{Result, invalid};

/// Steps of Newton's method, which converges quadratically.
const NEWTON_STEPS: usize = 10;

/// A convex loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Logistic,
    Squared,
    Hinge,
    /// The hinge loss with a quadratic piece of width one.
    SmoothHinge,
    Poisson,
}

/// An example and its dual variable.
pub(super) struct Example {
    pub label: f64,
    pub weight: f64,
    pub dual: f64,
}

impl Loss {
    pub fn named(name: &str) -> Result<Loss> {
        match name {
            "logistic_loss" => Ok(Loss::Logistic),
            "squared_loss" => Ok(Loss::Squared),
            "hinge_loss" => Ok(Loss::Hinge),
            "smooth_hinge_loss" => Ok(Loss::SmoothHinge),
            "poisson_loss" => Ok(Loss::Poisson),
            _ => Err(invalid!("Unsupported loss type: {name}")),
        }
    }

    /// A label as the formulas need it: -1 or 1 for classes.
    pub fn label(self, label: f32) -> Result<f64> {
        match self {
            Loss::Squared => Ok(label.into()),
            Loss::Poisson if label < 0.0 => Err(invalid!(
                "Only non-negative labels can be used with the Poisson log loss. Found example with label: {label}"
            )),
            Loss::Poisson => Ok(label.into()),
            _ if label == 0.0 => Ok(-1.0),
            _ if label == 1.0 => Ok(1.0),
            _ => Err(invalid!("Only labels of 0.0 or 1.0 are supported right now. Found example with label: {label}")),
        }
    }

    /// The dual variable that is best while the other examples keep theirs. `curvature` is the squared norm of the
    /// example over the regularization, times its weight and the number of partitions; `wx` is its prediction.
    pub fn updated_dual(self, example: &Example, curvature: f64, wx: f64) -> f64 {
        let &Example { label, dual, .. } = example;
        match self {
            Loss::Logistic => logistic_dual(example, curvature, wx),
            Loss::Squared => dual + (label - dual - wx) / (1.0 + curvature),
            Loss::Hinge => admissible(label, dual + (label - wx) / curvature),
            Loss::SmoothHinge => admissible(label, dual + (label - wx - dual) / (curvature + 1.0)),
            Loss::Poisson => poisson_dual(example, curvature, wx),
        }
    }

    /// The dual loss of an example.
    pub fn dual(self, example: &Example) -> f64 {
        let &Example { label, weight, dual } = example;
        let product = dual * label;
        match self {
            Loss::Logistic => (entropy(product) + entropy(1.0 - product)) * weight,
            Loss::Squared => dual * (0.5 * dual - label) * weight,
            Loss::Hinge | Loss::SmoothHinge if !(0.0..=1.0).contains(&product) && !product.is_nan() => f64::MAX,
            Loss::Hinge => -product * weight,
            Loss::SmoothHinge => (-product + 0.5 * dual * dual) * weight,
            Loss::Poisson => match label - dual {
                0.0 => 0.0,
                rest if rest < 0.0 => f64::MAX,
                rest => rest * (rest.ln() - 1.0) * weight,
            },
        }
    }

    /// The loss of an example whose prediction is `wx`.
    pub fn primal(self, example: &Example, wx: f64) -> f64 {
        let &Example { label, weight, .. } = example;
        let margin = label * wx;
        match self {
            Loss::Logistic if margin > 0.0 => (-margin).exp().ln_1p() * weight,
            Loss::Logistic => (margin.exp().ln_1p() - margin) * weight,
            Loss::Squared => (wx - label) * (wx - label) * weight * 0.5,
            Loss::Hinge => (1.0 - margin).max(0.0) * weight,
            Loss::SmoothHinge if margin >= 1.0 => 0.0,
            Loss::SmoothHinge if margin <= 0.0 => (0.5 - margin) * weight,
            Loss::SmoothHinge => (1.0 - margin) * (1.0 - margin) * weight * 0.5,
            Loss::Poisson => (wx.exp() - wx * label) * weight,
        }
    }

    /// The derivative of the loss by the prediction, for an example of weight one.
    pub fn slope(self, label: f64, wx: f64) -> f64 {
        let margin = label * wx;
        match self {
            Loss::Logistic if margin > 0.0 => -label * (-margin).exp() / (1.0 + (-margin).exp()),
            Loss::Logistic => -label / (1.0 + margin.exp()),
            Loss::Squared => wx - label,
            Loss::Hinge if margin < 1.0 => -label,
            Loss::SmoothHinge if margin <= 0.0 => -label,
            Loss::SmoothHinge if margin < 1.0 => wx - label,
            Loss::Hinge | Loss::SmoothHinge => 0.0,
            Loss::Poisson => wx.exp() - label,
        }
    }

    /// A number g for which the derivative is 1/g-Lipschitz; zero if there is none.
    pub fn smoothness(self) -> f64 {
        match self {
            Loss::Logistic => 4.0,
            Loss::Hinge => 0.0,
            _ => 1.0,
        }
    }
}

fn entropy(p: f64) -> f64 {
    if p > 0.0 { p * p.ln() } else { 0.0 }
}

/// A dual variable of a class: its product with the label is between 0 and 1.
fn admissible(label: f64, dual: f64) -> f64 {
    if label * dual < 0.0 {
        return 0.0;
    }
    if label * dual > 1.0 { label } else { dual }
}

/// By Newton's method in x, where the dual variable is `(1 + tanh x) / 2` times the label.
fn logistic_dual(example: &Example, curvature: f64, wx: f64) -> f64 {
    let &Example { label, dual, .. } = example;
    let at = |tanh: f64| 0.5 * (1.0 + tanh) / label;
    let mut x: f64 = 0.0;
    for _ in 0..NEWTON_STEPS {
        let tanh = x.tanh();
        let value = -2.0 * label * x - wx - curvature * (at(tanh) - dual);
        x -= value / (-2.0 * label - curvature * (1.0 - tanh * tanh) * 0.5 / label);
    }
    at(x.tanh())
}

/// By Newton's method in x, where the dual variable is the label minus `exp x`.
fn poisson_dual(example: &Example, curvature: f64, wx: f64) -> f64 {
    let rest = example.label - example.dual;
    let mut x = if rest > 0.0 { rest.ln() } else { 0.0 };
    for _ in 0..NEWTON_STEPS {
        let value = x - wx - curvature * (rest - x.exp());
        x -= value / (1.0 + curvature * x.exp());
    }
    example.label - x.exp()
}
