//! Plans of transforms, made once for each length.

use super::Real;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Plans are forgotten when there are more than this many: lengths may come from a client, and a plan is as large as
/// the rows it transforms.
const MOST_PLANS: usize = 16;

/// Which way a transform goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To frequencies.
    Forward,
    /// From frequencies, without division by the length.
    Inverse,
}

/// The plans for rows of some lengths. Several threads may use it at once.
pub struct Plans<T>(Mutex<Known<T>>);

struct Known<T> {
    complex: HashMap<(usize, Direction), Arc<dyn Fft<T>>>,
    forward: HashMap<usize, Arc<dyn RealToComplex<T>>>,
    inverse: HashMap<usize, Arc<dyn ComplexToReal<T>>>,
}

impl<T: Real> Default for Plans<T> {
    fn default() -> Plans<T> {
        Plans(Mutex::new(Known { complex: HashMap::new(), forward: HashMap::new(), inverse: HashMap::new() }))
    }
}

impl<T> fmt::Debug for Plans<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Plans")
    }
}

impl<T: Real> Plans<T> {
    pub(super) fn complex(&self, len: usize, direction: Direction) -> Arc<dyn Fft<T>> {
        let plan = || match direction {
            Direction::Forward => FftPlanner::new().plan_fft_forward(len),
            Direction::Inverse => FftPlanner::new().plan_fft_inverse(len),
        };
        self.with(|known| known_or(&mut known.complex, (len, direction), plan))
    }

    pub(super) fn forward(&self, len: usize) -> Arc<dyn RealToComplex<T>> {
        self.with(|known| known_or(&mut known.forward, len, || RealFftPlanner::new().plan_fft_forward(len)))
    }

    pub(super) fn inverse(&self, len: usize) -> Arc<dyn ComplexToReal<T>> {
        self.with(|known| known_or(&mut known.inverse, len, || RealFftPlanner::new().plan_fft_inverse(len)))
    }

    fn with<R>(&self, find: impl FnOnce(&mut Known<T>) -> R) -> R {
        find(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn known_or<K: std::hash::Hash + Eq, P: ?Sized>(
    known: &mut HashMap<K, Arc<P>>,
    key: K,
    plan: impl FnOnce() -> Arc<P>,
) -> Arc<P> {
    if known.len() >= MOST_PLANS && !known.contains_key(&key) {
        known.clear();
    }
    known.entry(key).or_insert_with(plan).clone()
}
