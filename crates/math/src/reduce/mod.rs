//! Sums, products, extremes and positions of them along axes, and running sums.

mod arg;
mod fold;
mod run;
mod scan;
mod shape;

pub use arg::{Position, argmax, argmin};
pub use fold::{Accumulate, All, Any, EuclideanNorm, Fold, Max, Mean, Min, Prod, Sum};
pub use run::reduce_axes;
pub use scan::{Direction, cumprod, cumsum, cumulative_logsumexp};
pub use shape::Reduction;
