//! Parses batches of examples into elements of input pipelines: one tensor for each feature, in the order of their keys.

use super::columns::read_batch;
use super::example::{batch_outputs, denses, raggeds, sparses};
use super::spec::{DenseForm, Spec, shapes, strings};
use crate::sparse::ragged_variant::Ragged;
use crate::sparse::serialize::boxed_rows;
use math::Pool;
use op::Setup;
use status::{Result, invalid};
use std::sync::Arc;
use tensor::{Bytes, DType, Shape, Tensor, Variant};

/// The features in the attributes of an op.
pub struct Features {
    forms: Vec<DenseForm>,
    dense_keys: Vec<Bytes>,
    sparse_keys: Vec<Bytes>,
    sparse_types: Vec<DType>,
    ragged_keys: Vec<Bytes>,
    ragged_types: Vec<DType>,
    split_types: Vec<DType>,
}

impl Features {
    /// The attributes of ParseExampleDataset; older versions of it have no ragged features.
    pub fn of(setup: &Setup<'_>, has_ragged: bool) -> Result<Features> {
        let types = |name: &str| if has_ragged { setup.types(name) } else { Ok(Vec::new()) };
        let features = Features {
            forms: DenseForm::list(&setup.types("Tdense")?, &shapes(setup, "dense_shapes")?)?,
            dense_keys: strings(setup, "dense_keys")?,
            sparse_keys: strings(setup, "sparse_keys")?,
            sparse_types: setup.types("sparse_types")?,
            ragged_keys: if has_ragged { strings(setup, "ragged_keys")? } else { Vec::new() },
            ragged_types: types("ragged_value_types")?,
            split_types: types("ragged_split_types")?,
        };
        let lengths = [
            ("dense_keys", features.dense_keys.len(), "Tdense", setup.types("Tdense")?.len()),
            ("dense_keys", features.dense_keys.len(), "dense_shapes", features.forms.len()),
            ("sparse_keys", features.sparse_keys.len(), "sparse_types", features.sparse_types.len()),
            ("ragged_keys", features.ragged_keys.len(), "ragged_value_types", features.ragged_types.len()),
            ("ragged_keys", features.ragged_keys.len(), "ragged_split_types", features.split_types.len()),
        ];
        match lengths.into_iter().find(|(_, left, _, right)| left != right) {
            Some((left, _, right, _)) => Err(invalid!("len({left}) != len({right})")),
            None => Ok(features),
        }
    }

    /// A parser with the default values of the dense features.
    pub fn with_defaults(&self, defaults: &[Tensor]) -> Result<ElementParser> {
        let dense = denses(self.dense_keys.clone(), &self.forms, defaults)?;
        let mut order: Vec<(&Bytes, usize)> =
            self.dense_keys.iter().chain(&self.sparse_keys).chain(&self.ragged_keys).zip(0..).collect();
        order.sort();
        if let Some([(key, _), _]) = order.array_windows().find(|[left, right]| left.0 == right.0) {
            return Err(invalid!("Duplicate key not allowed: {}", String::from_utf8_lossy(key)));
        }
        Ok(ElementParser {
            order: order.into_iter().map(|(_, feature)| feature).collect(),
            spec: Spec {
                dense,
                sparse: sparses(self.sparse_keys.clone(), &self.sparse_types),
                ragged: raggeds(&self.ragged_keys, &self.ragged_types, &self.split_types),
            },
        })
    }
}

/// Parses serialized examples.
pub struct ElementParser {
    spec: Spec,
    /// The number of the feature in each place: dense features first, then sparse ones, then ragged ones.
    order: Vec<usize>,
}

impl ElementParser {
    /// The features of several examples. A sparse feature is a vector of three variants, a ragged one is one variant.
    pub fn parse(&self, pool: &Pool, serialized: &[Bytes]) -> Result<Vec<Tensor>> {
        let columns = read_batch(pool, &self.spec, serialized, &[])?;
        let outputs = batch_outputs(&self.spec, columns, serialized.len())?;
        let tensors = outputs.into_iter().map(op::Value::read).collect::<Result<Vec<Tensor>>>()?;
        let (sparse, ragged) = (self.spec.sparse.len(), self.spec.ragged.len());
        let (sparse_parts, rest) = tensors.split_at(3 * sparse);
        let (dense, ragged_parts) = rest.split_at(self.spec.dense.len());
        let mut features = dense.to_vec();
        for index in 0..sparse {
            let part = |part: usize| sparse_parts[part * sparse + index].clone();
            features.push(boxed_rows(&[[part(0), part(1), part(2)]], Shape::from([3]))?);
        }
        for index in 0..ragged {
            let (values, splits) = (ragged_parts[index].clone(), ragged_parts[ragged + index].clone());
            let ragged = Variant::Object(Arc::new(Ragged { splits: vec![splits], values }));
            features.push(Tensor::from_variants(Shape::scalar(), vec![ragged])?);
        }
        Ok(self.order.iter().map(|&feature| features[feature].clone()).collect())
    }
}
