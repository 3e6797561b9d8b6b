//! Parses one example; the attributes of the node name its features.

use super::columns::read_single;
use super::example::{denses, single_outputs, sparses};
use super::spec::{DenseForm, Spec, count, same_length, shapes, strings};
use op::shapes::unknown;
use op::{Kernel, Op, Setup, many};
use status::{Result, invalid};

pub(crate) const OPS: &[Op] = parsers! {
    "ParseSingleExample(serialized: string, dense_defaults: [Tdense]) -> sparse_indices: num_sparse * int64, \
     sparse_values: [sparse_types], sparse_shapes: num_sparse * int64, dense_values: [Tdense]; num_sparse: int >= 0; \
     sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; \
     sparse_types: list({float, int64, string}) >= 0; Tdense: list({float, int64, string}) >= 0; \
     dense_shapes: list(shape) >= 0", unknown, single_kernel;
};

fn single_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let forms = DenseForm::list(&setup.types("Tdense")?, &shapes(setup, "dense_shapes")?)?;
    let (sparse_keys, dense_keys) = (strings(setup, "sparse_keys")?, strings(setup, "dense_keys")?);
    let types = setup.types("sparse_types")?;
    same_length(sparse_keys.len(), types.len(), "len(sparse_keys) != len(sparse_types)")?;
    same_length(sparse_keys.len(), count(setup, "num_sparse")?, "len(sparse_keys) != num_sparse")?;
    same_length(dense_keys.len(), setup.types("Tdense")?.len(), "len(dense_keys) != len(dense_types)")?;
    same_length(dense_keys.len(), forms.len(), "len(dense_keys) != len(dense_shapes)")?;
    let sparse = sparses(sparse_keys, &types);
    Ok(many(move |_, mut inputs| {
        let serialized = inputs.tensor(0)?;
        if serialized.shape().rank() != 0 {
            return Err(invalid!("Expected serialized to be a scalar, got shape: {}", serialized.shape()));
        }
        let dense = denses(dense_keys.clone(), &forms, &inputs.tensors_from(1)?)?;
        let spec = Spec { dense, sparse: sparse.clone(), ragged: Vec::new() };
        single_outputs(&spec, read_single(&spec, &serialized.to_string_scalar()?)?)
    }))
}
