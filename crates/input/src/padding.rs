//! What batches of elements of different sizes are padded to, and with.

use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

/// How elements of different sizes are padded to batches.
///
/// # Examples
///
/// ```
/// use flowgrid_input::{Dataset, PaddedBatchOptions};
/// use graph::Graph;
/// use tensor::{PartialShape, Tensor};
///
/// let graph = Graph::with_ops(data::registry());
/// let options = PaddedBatchOptions {
///     shapes: vec![PartialShape::new(&[3])],
///     values: vec![Tensor::scalar(-1i64)],
///     drop_remainder: true,
/// };
/// let rows = Dataset::from_iterator(&graph.root(), [vec![1i64], vec![2, 3], vec![4]]);
/// let batches: Vec<Vec<[i64; 3]>> = rows.padded_batch_with(2, &options).values()?.collect::<Result<_, _>>()?;
/// assert_eq!(batches, [vec![[1, -1, -1], [2, 3, -1]]]);
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PaddedBatchOptions {
    /// The shapes to which the components are padded, in order; -1 is the largest size of the batch. Without shapes, all
    /// sizes that the graph does not know are.
    pub shapes: Vec<PartialShape>,
    /// The scalars that fill the components, in order. Without values, these are zeros and empty strings.
    pub values: Vec<Tensor>,
    /// Leaves out a last batch that is smaller, so that the size is known while the graph is built.
    pub drop_remainder: bool,
}

impl PaddedBatchOptions {
    /// The shapes for components of these shapes.
    pub(crate) fn padded_shapes(&self, components: &[PartialShape]) -> Result<Vec<PartialShape>> {
        if self.shapes.is_empty() {
            return match components.iter().find(|shape| shape.dims().is_none()) {
                Some(shape) => Err(invalid!(
                    "A padded batch without shapes needs elements of known rank, but a component has shape {shape}"
                )),
                None => Ok(components.to_vec()),
            };
        }
        same_number("shapes", self.shapes.len(), components.len())?;
        for (shape, component) in self.shapes.iter().zip(components) {
            let fits = |(&padded, &size): (&i64, &i64)| padded < 0 || size <= padded;
            let compatible = match (shape.dims(), component.dims()) {
                (Some(shape), Some(component)) => {
                    shape.len() == component.len() && shape.iter().zip(component).all(fits)
                }
                (shape, _) => shape.is_some(),
            };
            if !compatible {
                return Err(invalid!(
                    "The padded shape {shape} is not compatible with the corresponding input component shape {component}."
                ));
            }
        }
        Ok(self.shapes.clone())
    }

    /// The scalars for components of these types.
    pub(crate) fn padding_values(&self, types: &[DType]) -> Result<Vec<Tensor>> {
        if self.values.is_empty() {
            return types.iter().map(|&dtype| Tensor::zeros_of(dtype, Shape::scalar())).collect();
        }
        same_number("values", self.values.len(), types.len())?;
        for (value, &dtype) in self.values.iter().zip(types) {
            if value.shape().rank() != 0 {
                return Err(invalid!("padding_values must be a scalar, but has shape {}", value.shape()));
            }
            if value.dtype() != dtype {
                return Err(invalid!(
                    "Mismatched type between padding value {} and input dataset's component type {dtype}.",
                    value.dtype()
                ));
            }
        }
        Ok(self.values.clone())
    }
}

fn same_number(what: &str, found: usize, components: usize) -> Result<()> {
    match found == components {
        true => Ok(()),
        false => Err(invalid!("A padded batch has {found} {what} for elements with {components} components")),
    }
}
