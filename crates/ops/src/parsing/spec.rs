//! The requested features, and their forms.

use op::Setup;
use status::{Result, invalid};
use tensor::{Bytes, DType, PartialShape, Shape, Tensor};

/// A feature with as many values in every example, or with missing ones filled in.
#[derive(Clone)]
pub(super) struct Dense {
    pub key: Bytes,
    pub form: DenseForm,
    /// The default value; empty if the feature is required.
    pub default: Tensor,
}

/// The attributes of a dense feature.
#[derive(Clone)]
pub(super) struct DenseForm {
    pub dtype: DType,
    pub shape: PartialShape,
    /// The number of values, or a number of which it is a multiple.
    pub stride: usize,
    /// The first axis is as long as the example has values.
    pub is_variable: bool,
}

/// A feature with any number of values.
#[derive(Clone)]
pub(super) struct Sparse {
    pub key: Bytes,
    pub dtype: DType,
}

/// The same, to be given with splits of this type.
#[derive(Clone)]
pub(super) struct Ragged {
    pub key: Bytes,
    pub dtype: DType,
    pub splits: DType,
}

/// All requested features of an example.
pub(super) struct Spec {
    pub dense: Vec<Dense>,
    pub sparse: Vec<Sparse>,
    pub ragged: Vec<Ragged>,
}

impl DenseForm {
    /// The forms of types and shapes, one by one.
    pub fn list(types: &[DType], shapes: &[PartialShape]) -> Result<Vec<DenseForm>> {
        let form = |(index, (&dtype, shape)): (usize, (&DType, &PartialShape))| {
            let unknown = || invalid!("dense_shapes[{index}] has unknown rank or unknown inner dimensions: {shape}");
            let dims = shape.dims().ok_or_else(unknown)?;
            if dims.iter().skip(1).any(|&dim| dim < 0) {
                return Err(unknown());
            }
            let is_variable = dims.first().is_some_and(|&dim| dim < 0);
            let inner = if is_variable { &dims[1..] } else { dims };
            let stride = Shape::checked(inner)?.checked_elements()?;
            Ok(DenseForm { dtype, shape: shape.clone(), stride, is_variable })
        };
        types.iter().zip(shapes).enumerate().map(form).collect()
    }

    /// The dimensions but the first.
    pub fn inner_dims(&self) -> Vec<usize> {
        self.dims().split_first().map(|(_, inner)| inner.to_vec()).unwrap_or_default()
    }

    /// All dimensions; an unknown one is zero.
    pub fn dims(&self) -> Vec<usize> {
        self.shape.dims().unwrap_or_default().iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect()
    }
}

/// Completes the attributes of a feature with the inputs of the op. `index` counts all features.
pub(super) fn dense(index: usize, key: Bytes, form: &DenseForm, default: &Tensor) -> Result<Dense> {
    let shape = &form.shape;
    if form.is_variable {
        if default.elements() != 1 {
            return Err(invalid!(
                "dense_shape[{index}] is a variable length shape: {shape}, therefore def_value[{index}] must contain a \
                 single element (the padding element).  But its shape is: {}",
                default.shape()
            ));
        }
    } else if default.elements() > 0 && !shape.accepts(default.shape()) {
        return Err(invalid!(
            "def_value[{index}].shape() == {} is not compatible with dense_shapes_[{index}] == {shape}",
            default.shape()
        ));
    }
    if default.dtype() != form.dtype {
        return Err(invalid!(
            "dense_defaults[{index}].dtype() == {} != dense_types_[{index}] == {}",
            default.dtype(),
            form.dtype
        ));
    }
    Ok(Dense { key, form: form.clone(), default: default.clone() })
}

/// The shapes in a list attribute.
pub(super) fn shapes(setup: &Setup<'_>, name: &str) -> Result<Vec<PartialShape>> {
    Ok(setup.list(name)?.shapes.clone())
}

/// The strings in a list attribute.
pub(super) fn strings(setup: &Setup<'_>, name: &str) -> Result<Vec<Bytes>> {
    Ok(setup.list(name)?.strings.clone())
}

/// An integer attribute as a count.
pub(super) fn count(setup: &Setup<'_>, name: &str) -> Result<usize> {
    Ok(usize::try_from(setup.int(name)?).unwrap_or(0))
}

/// An error with this complaint if two lengths differ.
pub(super) fn same_length(left: usize, right: usize, complaint: &str) -> Result<()> {
    if left == right { Ok(()) } else { Err(invalid!("{complaint}")) }
}
