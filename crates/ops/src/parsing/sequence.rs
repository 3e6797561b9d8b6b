//! Parses sequence examples, with a tensor for each feature of the context and each feature list.

use super::example::{raggeds, sparses};
use super::sequence_features::{Batch, Context, Lists, keys};
use super::spec::{Dense, DenseForm, Spec, count, same_length, shapes, strings};
use op::shapes::unknown;
use op::{Inputs, Kernel, Op, Outputs, Setup, Value, many};
use status::{Result, invalid};
use tensor::{Bytes, DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = parsers! {
    "ParseSequenceExample(serialized: string, debug_name: string, context_dense_defaults: [Tcontext_dense]) \
     -> context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: [context_sparse_types], \
     context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: [Tcontext_dense], \
     feature_list_sparse_indices: Nfeature_list_sparse * int64, \
     feature_list_sparse_values: [feature_list_sparse_types], \
     feature_list_sparse_shapes: Nfeature_list_sparse * int64, \
     feature_list_dense_values: [feature_list_dense_types], \
     feature_list_dense_lengths: Nfeature_list_dense * int64; \
     feature_list_dense_missing_assumed_empty: list(string) >= 0; context_sparse_keys: list(string) >= 0; \
     context_dense_keys: list(string) >= 0; feature_list_sparse_keys: list(string) >= 0; \
     feature_list_dense_keys: list(string) >= 0; Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; \
     Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; \
     context_sparse_types: list({float, int64, string}) >= 0 = []; \
     Tcontext_dense: list({float, int64, string}) >= 0 = []; \
     feature_list_dense_types: list({float, int64, string}) >= 0 = []; \
     context_dense_shapes: list(shape) >= 0 = []; \
     feature_list_sparse_types: list({float, int64, string}) >= 0 = []; \
     feature_list_dense_shapes: list(shape) >= 0 = []", unknown, sequence_kernel;
    "ParseSequenceExampleV2(serialized: string, debug_name: string, context_sparse_keys: string, \
     context_dense_keys: string, context_ragged_keys: string, feature_list_sparse_keys: string, \
     feature_list_dense_keys: string, feature_list_ragged_keys: string, \
     feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: [Tcontext_dense]) \
     -> context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: [context_sparse_types], \
     context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: [Tcontext_dense], \
     context_ragged_values: [context_ragged_value_types], context_ragged_row_splits: [context_ragged_split_types], \
     feature_list_sparse_indices: Nfeature_list_sparse * int64, \
     feature_list_sparse_values: [feature_list_sparse_types], \
     feature_list_sparse_shapes: Nfeature_list_sparse * int64, \
     feature_list_dense_values: [feature_list_dense_types], \
     feature_list_dense_lengths: Nfeature_list_dense * int64, \
     feature_list_ragged_values: [feature_list_ragged_value_types], \
     feature_list_ragged_outer_splits: [feature_list_ragged_split_types], \
     feature_list_ragged_inner_splits: [feature_list_ragged_split_types]; Ncontext_sparse: int >= 0 = 0; \
     Tcontext_dense: list({float, int64, string}) >= 0 = []; \
     context_sparse_types: list({float, int64, string}) >= 0 = []; \
     context_ragged_value_types: list({float, int64, string}) >= 0 = []; \
     context_ragged_split_types: list({int32, int64}) >= 0 = []; context_dense_shapes: list(shape) >= 0 = []; \
     Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; \
     feature_list_dense_types: list({float, int64, string}) >= 0 = []; \
     feature_list_sparse_types: list({float, int64, string}) >= 0 = []; \
     feature_list_ragged_value_types: list({float, int64, string}) >= 0 = []; \
     feature_list_ragged_split_types: list({int32, int64}) >= 0 = []; \
     feature_list_dense_shapes: list(shape) >= 0 = []", unknown, sequence_v2_kernel;
};

/// The attributes of the features of contexts, or of feature lists.
struct Forms {
    dense: Vec<DenseForm>,
    sparse: Vec<DType>,
    ragged: Vec<DType>,
    splits: Vec<DType>,
}

impl Forms {
    /// Reads the attributes whose names begin with `part`; the types of dense features are in `types`.
    fn of(setup: &Setup<'_>, part: &str, types: &str) -> Result<Forms> {
        let (types, shapes) = (setup.types(types)?, shapes(setup, &format!("{part}_dense_shapes"))?);
        let sparse = setup.types(&format!("{part}_sparse_types"))?;
        let optional = |name: String| setup.find(&name).map_or(Ok(Vec::new()), |_| setup.types(&name));
        let ragged = optional(format!("{part}_ragged_value_types"))?;
        let splits = optional(format!("{part}_ragged_split_types"))?;
        let number = count(setup, &format!("N{part}_sparse"))?;
        same_length(
            number,
            sparse.len(),
            &format!("num_{part}_sparse ({number}) must match the size of {part}_sparse_types ({})", sparse.len()),
        )?;
        same_length(
            types.len(),
            shapes.len(),
            &format!(
                "num_{part}_dense ({0}) must match the size of {part}_dense_types ({0}) and {part}_dense_shapes ({1})",
                types.len(),
                shapes.len()
            ),
        )?;
        same_length(
            ragged.len(),
            splits.len(),
            &format!(
                "num_{part}_ragged ({0}) must match the size of {part}_ragged_value_types ({0}) and \
             {part}_ragged_split_types ({1})",
                ragged.len(),
                splits.len()
            ),
        )?;
        Ok(Forms { dense: DenseForm::list(&types, &shapes)?, sparse, ragged, splits })
    }

    fn spec(&self, dense: Vec<Dense>, sparse: Vec<Bytes>, ragged: &[Bytes]) -> Spec {
        let sparse = sparses(sparse, &self.sparse);
        Spec { dense, sparse, ragged: raggeds(ragged, &self.ragged, &self.splits) }
    }
}

/// The requested features of sequence examples.
struct Wanted {
    context: Spec,
    lists: Spec,
    /// Which dense feature lists need not be there.
    may_miss: Vec<bool>,
}

fn sequence_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let context = Forms::of(setup, "context", "Tcontext_dense")?;
    let lists = Forms::of(setup, "feature_list", "feature_list_dense_types")?;
    let named = |part: &str, wanted: usize| {
        let keys = strings(setup, &format!("{part}_keys"))?;
        let complaint = format!("num_{part} ({wanted}) must match the size of {part}_keys ({})", keys.len());
        same_length(wanted, keys.len(), &complaint).map(|()| keys)
    };
    let context_sparse = named("context_sparse", context.sparse.len())?;
    let context_dense = named("context_dense", context.dense.len())?;
    let list_sparse = named("feature_list_sparse", lists.sparse.len())?;
    let list_dense = named("feature_list_dense", lists.dense.len())?;
    let missing = strings(setup, "feature_list_dense_missing_assumed_empty")?;
    let may_miss: Vec<bool> = list_dense.iter().map(|key| missing.contains(key)).collect();
    Ok(many(move |_, mut inputs| {
        let (serialized, names) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let dense = context_denses(&context_dense, &context.dense, &inputs.tensors_from(2)?)?;
        let wanted = Wanted {
            context: context.spec(dense, context_sparse.clone(), &[]),
            lists: lists.spec(list_denses(&list_dense, &lists.dense)?, list_sparse.clone(), &[]),
            may_miss: may_miss.clone(),
        };
        wanted.read(&serialized, &names)
    })
    .heavy())
}

fn sequence_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let context = Forms::of(setup, "context", "Tcontext_dense")?;
    let lists = Forms::of(setup, "feature_list", "feature_list_dense_types")?;
    Ok(many(move |_, mut inputs| {
        let (serialized, names) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let context_sparse = key_input(&mut inputs, 2, "context_sparse_keys", context.sparse.len(), "Ncontext_sparse")?;
        let context_dense =
            key_input(&mut inputs, 3, "context_dense_keys", context.dense.len(), "len(Tcontext_dense)")?;
        let ragged_types = "len(context_ragged_value_types)";
        let context_ragged = key_input(&mut inputs, 4, "context_ragged_keys", context.ragged.len(), ragged_types)?;
        let list_sparse =
            key_input(&mut inputs, 5, "feature_list_sparse_keys", lists.sparse.len(), "Nfeature_list_sparse")?;
        let list_dense =
            key_input(&mut inputs, 6, "feature_list_dense_keys", lists.dense.len(), "Nfeature_list_dense")?;
        let ragged_types = "len(feature_list_ragged_value_types)";
        let list_ragged = key_input(&mut inputs, 7, "feature_list_ragged_keys", lists.ragged.len(), ragged_types)?;
        let may_miss = inputs.tensor(8)?.values::<bool>()?.to_vec();
        same_length(
            may_miss.len(),
            lists.dense.len(),
            "Expected len(feature_list_dense_missing_assumed_empty to match Nfeature_list_dense",
        )?;
        let dense = context_denses(&context_dense, &context.dense, &inputs.tensors_from(9)?)?;
        let wanted = Wanted {
            context: context.spec(dense, context_sparse, &context_ragged),
            lists: lists.spec(list_denses(&list_dense, &lists.dense)?, list_sparse, &list_ragged),
            may_miss,
        };
        wanted.read(&serialized, &names)
    })
    .heavy())
}

fn key_input(inputs: &mut Inputs, index: usize, name: &str, wanted: usize, of: &str) -> Result<Vec<Bytes>> {
    let keys = inputs.tensor(index)?;
    same_length(keys.elements(), wanted, &format!("Expected len({name}) to match {of}"))?;
    Ok(keys.strings()?.to_vec())
}

fn context_denses(keys: &[Bytes], forms: &[DenseForm], defaults: &[Tensor]) -> Result<Vec<Dense>> {
    if defaults.len() != forms.len() {
        return Err(invalid!(
            "Expected len(context_dense_defaults) == len(context_dense_keys) but got: {} vs. {}",
            defaults.len(),
            forms.len()
        ));
    }
    let dense = |(index, ((key, form), default)): (usize, ((&Bytes, &DenseForm), &Tensor))| {
        if default.elements() > 0 && form.shape.known().as_ref() != Some(default.shape()) {
            return Err(invalid!(
                "default_value[{index}].shape() == {} != context_dense_shapes[{index}] == {}",
                default.shape(),
                form.shape
            ));
        }
        Ok(Dense { key: key.clone(), form: form.clone(), default: default.clone() })
    };
    keys.iter().zip(forms).zip(defaults).enumerate().map(dense).collect()
}

fn list_denses(keys: &[Bytes], forms: &[DenseForm]) -> Result<Vec<Dense>> {
    let dense = |(key, form): (&Bytes, &DenseForm)| {
        let default = Tensor::zeros_of(form.dtype, Shape::scalar())?;
        Ok(Dense { key: key.clone(), form: form.clone(), default })
    };
    keys.iter().zip(forms).map(dense).collect()
}

impl Wanted {
    fn read(&self, serialized: &Tensor, names: &Tensor) -> Result<Outputs> {
        if serialized.shape().rank() > 1 {
            return Err(invalid!("Expected serialized to be a scalar or vector, got shape: {}", serialized.shape()));
        }
        let is_batch = serialized.shape().rank() == 1;
        let batch = Batch { messages: serialized.strings()?, names: names.strings()?, is_batch };
        if !batch.names.is_empty() && batch.names.len() != batch.messages.len() {
            return Err(invalid!("example_names must be empty or have the correct number of elements"));
        }
        let (context, lists) = (&self.context, &self.lists);
        let context_keys = keys(&context.dense, &context.sparse, &context.ragged);
        let list_keys = keys(&lists.dense, &lists.sparse, &lists.ragged);
        let found = batch.find(&context_keys, &list_keys)?;
        let features = zipped(context, &context_keys, &found.0);
        let contexts = features.map(|(key, dtype, found)| Context::read(&batch, key, dtype, found));
        let contexts = contexts.collect::<Result<Vec<_>>>()?;
        let features = zipped(lists, &list_keys, &found.1);
        let columns = features.map(|(key, dtype, found)| Lists::read(&batch, key, dtype, found));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut outputs = self.context_outputs(&batch, contexts, &found.0)?;
        outputs.extend(self.list_outputs(&batch, columns, &found.1)?);
        Ok(outputs.into_iter().map(Value::from).collect())
    }

    fn context_outputs(
        &self,
        batch: &Batch<'_>,
        columns: Vec<Context>,
        found: &[Vec<Option<&[u8]>>],
    ) -> Result<Vec<Tensor>> {
        let spec = &self.context;
        let mut columns = columns.into_iter();
        let dense = spec.dense.iter().zip(found).zip(columns.by_ref());
        let dense = dense.map(|((dense, found), column)| column.dense(batch, dense, found));
        let dense = dense.collect::<Result<Vec<_>>>()?;
        let sparse = columns.by_ref().take(spec.sparse.len()).map(|column| column.sparse(batch));
        let sparse = sparse.collect::<Result<Vec<_>>>()?;
        let ragged = spec.ragged.iter().zip(columns).map(|(ragged, column)| column.ragged(batch, ragged));
        let ragged = ragged.collect::<Result<Vec<_>>>()?;
        Ok([turned(sparse), dense, turned(ragged)].concat())
    }

    fn list_outputs(
        &self,
        batch: &Batch<'_>,
        columns: Vec<Lists>,
        found: &[Vec<Option<&[u8]>>],
    ) -> Result<Vec<Tensor>> {
        let spec = &self.lists;
        let mut columns = columns.into_iter();
        let dense = spec.dense.iter().zip(&self.may_miss).zip(found).zip(columns.by_ref());
        let dense = dense.map(|(((dense, &may_miss), found), column)| column.dense(batch, dense, may_miss, found));
        let dense = dense.collect::<Result<Vec<_>>>()?;
        let sparse = columns.by_ref().take(spec.sparse.len()).map(|column| column.sparse(batch));
        let sparse = sparse.collect::<Result<Vec<_>>>()?;
        let ragged = spec.ragged.iter().zip(columns).map(|(ragged, column)| column.ragged(batch, ragged));
        let ragged = ragged.collect::<Result<Vec<_>>>()?;
        Ok([turned(sparse), turned(dense), turned(ragged)].concat())
    }
}

/// Keys, types and places of all features, in the order of `keys`.
fn zipped<'a>(
    spec: &'a Spec,
    keys: &'a [&'a Bytes],
    found: &'a [Vec<Option<&'a [u8]>>],
) -> impl Iterator<Item = (&'a [u8], DType, &'a [Option<&'a [u8]>])> {
    let dense = spec.dense.iter().map(|feature| feature.form.dtype);
    let sparse = spec.sparse.iter().map(|feature| feature.dtype);
    let types = dense.chain(sparse).chain(spec.ragged.iter().map(|feature| feature.dtype));
    keys.iter().zip(types).zip(found).map(|((key, dtype), found)| (&***key, dtype, &found[..]))
}

/// The first tensors of all, then the second ones, and so on.
fn turned<const N: usize>(groups: Vec<[Tensor; N]>) -> Vec<Tensor> {
    (0..N).flat_map(|part| groups.iter().map(move |group| group[part].clone())).collect()
}
