//! Parts of larger variables: what a checkpoint must know to keep them as one.

use graph::{AttrValue, Function};
use std::collections::BTreeMap;
use std::sync::Arc;
use tensor::Shape;

/// Which part of a larger variable a variable is. Checkpoints hold the larger one, so that it can be read with
/// another number of parts, or with one.
#[derive(Clone, Debug, PartialEq)]
pub struct SaveSlice {
    /// The name of the larger variable.
    pub full_name: String,
    /// Its shape.
    pub full_shape: Shape,
    /// Where the part begins along every axis.
    pub offset: Vec<usize>,
    /// The shape of the part.
    pub shape: Shape,
}

/// The kind of record, named as TensorFlow names its message.
const RECORD: &str = "SaveSliceInfoDef";

impl SaveSlice {
    /// As saving and restoring ops write it: `4 2 0,2:0,2` for the first two rows of four with two columns.
    pub fn spec(&self) -> String {
        let full: String = self.full_shape.dims().iter().map(|dim| format!("{dim} ")).collect();
        let extent = |(offset, length): (&usize, &usize)| format!("{offset},{length}");
        let extents: Vec<String> = self.offset.iter().zip(self.shape.dims()).map(extent).collect();
        full + &extents.join(":")
    }

    pub(super) fn to_record(&self) -> AttrValue {
        let numbers = |dims: &[usize]| AttrValue::from(dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>());
        let attrs = BTreeMap::from([
            ("full_name".to_string(), self.full_name.as_str().into()),
            ("full_shape".to_string(), numbers(self.full_shape.dims())),
            ("var_offset".to_string(), numbers(&self.offset)),
            ("var_shape".to_string(), numbers(self.shape.dims())),
        ]);
        AttrValue::Func(Arc::new(Function { name: RECORD.to_string(), attrs }))
    }

    pub(super) fn from_record(record: &AttrValue) -> Option<SaveSlice> {
        let AttrValue::Func(record) = record else { return None };
        let numbers = |name: &str| match record.attrs.get(name) {
            Some(AttrValue::List(list)) => list.ints.iter().map(|&dim| usize::try_from(dim).ok()).collect(),
            _ => None,
        };
        let Some(AttrValue::String(full_name)) = record.attrs.get("full_name") else { return None };
        let (full, offset, shape): (Vec<usize>, Vec<usize>, Vec<usize>) =
            (numbers("full_shape")?, numbers("var_offset")?, numbers("var_shape")?);
        Some(SaveSlice {
            full_name: String::from_utf8_lossy(full_name).into_owned(),
            full_shape: Shape::new(&full),
            offset,
            shape: Shape::new(&shape),
        })
    }
}
