//! The weights of a linear model and their changes.

use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::Tensor;

/// How weights are kept small: weights within `l1 / l2` of zero count as zero, and the others are that much nearer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regularization {
    l2: f32,
    shrinkage: f64,
}

impl Regularization {
    pub fn new(l1: f32, l2: f32) -> Regularization {
        Regularization { l2, shrinkage: (l1 / l2).into() }
    }

    pub fn l2(&self) -> f64 {
        self.l2.into()
    }

    /// A weight as it counts.
    pub fn shrink(&self, weight: f64) -> f64 {
        let rest = (weight.abs() - self.shrinkage).max(0.0);
        if rest > 0.0 { rest.copysign(weight) } else { 0.0 }
    }

    /// As `shrink`, in single precision.
    pub fn shrink_single(&self, weight: f32) -> f32 {
        let rest = (weight.abs() - self.shrinkage as f32).max(0.0);
        let sign = if weight == 0.0 { 0.0 } else { weight.signum() };
        sign * rest
    }
}

/// The weights of one group of features, and how they changed.
pub(super) struct Weights<'a> {
    pub values: &'a [f32],
    shape: &'a tensor::Shape,
    pub deltas: Vec<f32>,
}

impl Weights<'_> {
    fn of(tensor: &Tensor) -> Result<Weights<'_>> {
        let values = tensor.values::<f32>()?;
        Ok(Weights { values, shape: tensor.shape(), deltas: vec![0.0; values.len()] })
    }
}

/// All weights. Those of sparse features have the places that their features have in a table.
pub(super) struct Model<'a> {
    pub sparse: Vec<Weights<'a>>,
    places: Vec<FxHashMap<i64, usize>>,
    pub dense: Vec<Weights<'a>>,
}

impl<'a> Model<'a> {
    pub fn new(indices: &[Tensor], sparse: &'a [Tensor], dense: &'a [Tensor]) -> Result<Model<'a>> {
        let mut places = Vec::with_capacity(indices.len());
        for (indices, weights) in indices.iter().zip(sparse) {
            let (indices, weights) = (indices.values::<i64>()?, weights.elements());
            if indices.len() > weights {
                return Err(invalid!("sparse_indices has {} features for {weights} sparse_weights", indices.len()));
            }
            places.push(indices.iter().copied().zip(0..).collect());
        }
        let all = |tensors: &'a [Tensor]| tensors.iter().map(Weights::of).collect::<Result<Vec<_>>>();
        Ok(Model { sparse: all(sparse)?, places, dense: all(dense)? })
    }

    /// The place of a sparse feature among the weights of its group.
    pub fn place(&self, group: usize, feature: i64) -> Result<usize> {
        let place = self.places.get(group).and_then(|places| places.get(&feature)).copied();
        place.ok_or_else(|| invalid!("Found sparse feature indices out of valid range: {feature}"))
    }

    /// The changes of all weights, those of sparse features first.
    pub fn into_deltas(self) -> Result<Vec<Tensor>> {
        let weights = self.sparse.into_iter().chain(self.dense);
        weights.map(|weights| Tensor::from_slice(weights.shape, &weights.deltas)).collect()
    }
}
