//! Parses one sequence example, with the interface of the oldest op for it.

use super::sequence_features::required;
use super::spec::{DenseForm, shapes};
use super::values::Values;
use io::example::{Feature, feature, rows, sequence_entries};
use op::shapes::unknown;
use op::{Inputs, Kernel, Op, Outputs, Setup, Value, many};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::{Bytes, DType, Tensor};

pub(crate) const OPS: &[Op] = parsers! {
    "ParseSingleSequenceExample(serialized: string, feature_list_dense_missing_assumed_empty: string, \
     context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, \
     feature_list_sparse_keys: Nfeature_list_sparse * string, feature_list_dense_keys: Nfeature_list_dense * string, \
     context_dense_defaults: [Tcontext_dense], debug_name: string) \
     -> context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: [context_sparse_types], \
     context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: [Tcontext_dense], \
     feature_list_sparse_indices: Nfeature_list_sparse * int64, \
     feature_list_sparse_values: [feature_list_sparse_types], \
     feature_list_sparse_shapes: Nfeature_list_sparse * int64, \
     feature_list_dense_values: [feature_list_dense_types]; Ncontext_sparse: int >= 0 = 0; \
     Ncontext_dense: int >= 0 = 0; Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; \
     context_sparse_types: list({float, int64, string}) >= 0 = []; \
     Tcontext_dense: list({float, int64, string}) >= 0 = []; \
     feature_list_dense_types: list({float, int64, string}) >= 0 = []; \
     context_dense_shapes: list(shape) >= 0 = []; \
     feature_list_sparse_types: list({float, int64, string}) >= 0 = []; \
     feature_list_dense_shapes: list(shape) >= 0 = []", unknown, kernel;
};

/// The attributes of a node.
struct Forms {
    context_sparse: Vec<DType>,
    context_dense: Vec<DenseForm>,
    list_sparse: Vec<DType>,
    list_dense: Vec<DenseForm>,
}

/// The inputs of a node.
struct Request {
    message: Bytes,
    name: String,
    may_miss: Vec<Bytes>,
    context_sparse: Vec<Bytes>,
    context_dense: Vec<Bytes>,
    list_sparse: Vec<Bytes>,
    list_dense: Vec<Bytes>,
    defaults: Vec<Tensor>,
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let forms = Forms {
        context_sparse: setup.types("context_sparse_types")?,
        context_dense: DenseForm::list(&setup.types("Tcontext_dense")?, &shapes(setup, "context_dense_shapes")?)?,
        list_sparse: setup.types("feature_list_sparse_types")?,
        list_dense: DenseForm::list(
            &setup.types("feature_list_dense_types")?,
            &shapes(setup, "feature_list_dense_shapes")?,
        )?,
    };
    let counts = ["Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse", "Nfeature_list_dense"];
    let lengths =
        [forms.context_sparse.len(), forms.context_dense.len(), forms.list_sparse.len(), forms.list_dense.len()];
    let parts = ["context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense"];
    for ((count, length), part) in counts.into_iter().zip(lengths).zip(parts) {
        if usize::try_from(setup.int(count)?) != Ok(length) {
            return Err(invalid!("len({part}_keys) != len({part}_types)"));
        }
    }
    Ok(many(move |_, mut inputs| forms.read(&forms.request(&mut inputs)?)))
}

impl Forms {
    fn request(&self, inputs: &mut Inputs) -> Result<Request> {
        let mut next = 2;
        let mut keys = |inputs: &mut Inputs, part: &str, count: usize| -> Result<Vec<Bytes>> {
            next += count;
            let tensors = inputs.tensors(next - count, count)?;
            tensors.iter().enumerate().map(|(index, key)| scalar(key, &format!("{part}_keys[{index}]"))).collect()
        };
        let context_sparse = keys(inputs, "context_sparse", self.context_sparse.len())?;
        let context_dense = keys(inputs, "context_dense", self.context_dense.len())?;
        let list_sparse = keys(inputs, "feature_list_sparse", self.list_sparse.len())?;
        let list_dense = keys(inputs, "feature_list_dense", self.list_dense.len())?;
        let may_miss = inputs.tensor(1)?;
        if may_miss.shape().rank() != 1 {
            let shape = may_miss.shape();
            let part = "feature_list_dense_missing_assumed_empty";
            return Err(invalid!("Expected {part} to be a vector, got shape: {shape}"));
        }
        let defaults = inputs.tensors(next, self.context_dense.len())?;
        let name = inputs.tensor(next + self.context_dense.len())?;
        let name = match name.elements() {
            0 => "<unknown>".to_string(),
            _ => String::from_utf8_lossy(&scalar(&name, "debug_name")?).into_owned(),
        };
        let message = scalar(&inputs.tensor(0)?, "serialized")?;
        let may_miss = may_miss.strings()?.to_vec();
        Ok(Request { message, name, may_miss, context_sparse, context_dense, list_sparse, list_dense, defaults })
    }

    fn read(&self, request: &Request) -> Result<Outputs> {
        let (context, lists) = sequence_entries(&request.message).ok_or_else(|| {
            invalid!("Could not parse example input, value: '{}'", String::from_utf8_lossy(&request.message))
        })?;
        let (context, lists): (FxHashMap<_, _>, FxHashMap<_, _>) =
            (context.into_iter().collect(), lists.into_iter().collect());
        let mut dense = Vec::new();
        for (index, form) in self.context_dense.iter().enumerate() {
            dense.push(request.context_dense(index, form, context.get(&*request.context_dense[index]).copied())?);
        }
        let mut sparse = Vec::new();
        for (key, &dtype) in request.context_sparse.iter().zip(&self.context_sparse) {
            sparse.push(request.context_sparse(key, dtype, context.get(&**key).copied())?);
        }
        let mut list_dense = Vec::new();
        for (key, form) in request.list_dense.iter().zip(&self.list_dense) {
            list_dense.push(request.list_dense(key, form, lists.get(&**key).copied())?);
        }
        let mut list_sparse = Vec::new();
        for (key, &dtype) in request.list_sparse.iter().zip(&self.list_sparse) {
            list_sparse.push(request.list_sparse(key, dtype, lists.get(&**key).copied())?);
        }
        let outputs = turned(sparse).into_iter().chain(dense).chain(turned(list_sparse)).chain(list_dense);
        Ok(outputs.map(Value::from).collect())
    }
}

impl Request {
    /// Adds the values of one feature, and returns their number; an error at `place` if they have another type.
    fn add(&self, value: &[u8], dtype: DType, values: &mut Values, place: &str) -> Result<usize> {
        let count = match feature(value) {
            Feature::List(found, list) if found == dtype => values.read(list, &self.message),
            _ => None,
        };
        count.ok_or_else(|| {
            invalid!("Name: {}, {place}.  Data types don't match. Expected type: {dtype}  Feature is: ", self.name)
        })
    }

    /// An error if a dense feature has not as many values as it should.
    fn check(&self, key: &[u8], index: usize, form: &DenseForm, count: usize) -> Result<()> {
        if count == form.stride && !form.is_variable {
            return Ok(());
        }
        let (kind, colon, size) = match form.dtype {
            DType::STRING => ("bytes", "", "Values"),
            DType::F32 => ("float", ":", "values"),
            _ => ("int64", ":", "values"),
        };
        Err(invalid!(
            "Name: {}, Key{colon} {}, Index: {index}.  Number of {kind} values != expected.  {size} size: {count} but \
             output shape: {}",
            self.name,
            String::from_utf8_lossy(key),
            form.shape
        ))
    }

    fn context_dense(&self, index: usize, form: &DenseForm, found: Option<&[u8]>) -> Result<Tensor> {
        let (key, default) = (&self.context_dense[index], &self.defaults[index]);
        if default.elements() > 0 && form.shape.known().as_ref() != Some(default.shape()) {
            return Err(invalid!(
                "def_value[{index}].shape() == {} != context_dense_shapes_[{index}] == {}",
                default.shape(),
                form.shape
            ));
        }
        let text = String::from_utf8_lossy(key);
        let Some(value) = found else {
            if default.elements() == 0 {
                let name = &self.name;
                return Err(invalid!("Name: {name}, Context feature '{text}' is required but could not be found."));
            }
            return Ok(default.clone());
        };
        let mut values = Values::empty(form.dtype)?;
        let count = self.add(value, form.dtype, &mut values, &format!("Context feature: {text}"))?;
        self.check(key, 0, form, count)?;
        values.tensor(form.dims())
    }

    fn context_sparse(&self, key: &[u8], dtype: DType, found: Option<&[u8]>) -> Result<[Tensor; 3]> {
        let mut values = Values::empty(dtype)?;
        if let Some(value) = found.filter(|value| feature(value) != Feature::Nothing) {
            let place = format!("Context feature: {}", String::from_utf8_lossy(key));
            self.add(value, dtype, &mut values, &place)?;
        }
        let count = values.len();
        let places: Vec<i64> = (0..count as i64).collect();
        let shape = Tensor::vector(&[count as i64]);
        Ok([Tensor::from_slice([count, 1], &places)?, values.tensor([count])?, shape])
    }

    fn rows<'a>(&self, found: Option<&'a [u8]>) -> Result<Vec<&'a [u8]>> {
        rows(found.unwrap_or_default()).ok_or_else(|| {
            invalid!("Could not parse example input, value: '{}'", String::from_utf8_lossy(&self.message))
        })
    }

    fn list_dense(&self, key: &Bytes, form: &DenseForm, found: Option<&[u8]>) -> Result<Tensor> {
        let text = String::from_utf8_lossy(key);
        if found.is_none() && !self.may_miss.contains(key) {
            return Err(required(&self.name, &text));
        }
        let (mut values, rows) = (Values::empty(form.dtype)?, self.rows(found)?);
        for (index, row) in rows.iter().enumerate() {
            let place = format!("Feature list: {text}, Index: {index}");
            let count = self.add(row, form.dtype, &mut values, &place)?;
            self.check(key, index, form, count)?;
        }
        values.tensor([&[rows.len()], &form.dims()[..]].concat())
    }

    fn list_sparse(&self, key: &[u8], dtype: DType, found: Option<&[u8]>) -> Result<[Tensor; 3]> {
        let (mut values, rows) = (Values::empty(dtype)?, self.rows(found)?);
        let (mut indices, mut widest) = (Vec::new(), 0);
        for (index, row) in rows.iter().enumerate().filter(|(_, row)| feature(row) != Feature::Nothing) {
            let place = format!("Feature List: {}, Index: {index}", String::from_utf8_lossy(key));
            let count = self.add(row, dtype, &mut values, &place)?;
            indices.extend((0..count as i64).flat_map(|place| [index as i64, place]));
            widest = widest.max(count);
        }
        let count = values.len();
        let shape = Tensor::vector(&[rows.len() as i64, widest as i64]);
        Ok([Tensor::from_slice([count, 2], &indices)?, values.tensor([count])?, shape])
    }
}

fn scalar(tensor: &Tensor, what: &str) -> Result<Bytes> {
    match tensor.shape().rank() {
        0 => tensor.to_string_scalar(),
        _ => Err(invalid!("Expected {what} to be a scalar, got shape: {}", tensor.shape())),
    }
}

/// The first tensors of all, then the second ones, then the third ones.
fn turned(groups: Vec<[Tensor; 3]>) -> Vec<Tensor> {
    (0..3).flat_map(|part| groups.iter().map(move |group| group[part].clone())).collect()
}
