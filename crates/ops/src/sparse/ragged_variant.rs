//! A ragged tensor that is an element of a variant tensor.

use crate::data_structures::arithmetic::{row, zeros_like};
use op::shapes::integers;
use status::{Result, invalid};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tensor::{AddTensors, DType, Shape, Tensor, Variant, VariantData, VariantObject};

/// The type name of a ragged tensor in serialized variants.
pub(crate) const TYPE_NAME: &str = "RaggedTensorVariant";

/// Values, and where the rows of each level begin, outermost first.
#[derive(Clone)]
pub struct Ragged {
    /// The row splits of each level; one more number than there are rows.
    pub splits: Vec<Tensor>,
    /// The values of the innermost rows, one after the other.
    pub values: Tensor,
}

impl Ragged {
    /// The ragged tensor a variant is; none if it is something else.
    pub fn from_variant(variant: &Variant) -> Option<Ragged> {
        match variant {
            Variant::Data(data) => Ragged::decode(data),
            Variant::Object(_) => variant.object::<Ragged>().cloned(),
        }
    }

    /// A ragged tensor as it travelled: all splits, then the values.
    pub fn decode(data: &VariantData) -> Option<Ragged> {
        let (values, splits) = data.tensors.split_last()?;
        (data.type_name == TYPE_NAME).then(|| Ragged { splits: splits.to_vec(), values: values.clone() })
    }

    /// The number of rows.
    pub(super) fn len(&self) -> i64 {
        match self.splits.first() {
            Some(splits) => splits.elements() as i64 - 1,
            None => self.values.shape()[0] as i64,
        }
    }

    /// An error unless the rows of each level are all there is below.
    pub(super) fn check(&self) -> Result<()> {
        let mut below = match (self.splits.is_empty(), self.values.shape().first()) {
            (true, _) => return Ok(()),
            (false, Some(&rows)) => rows as i64,
            (false, None) => {
                return Err(invalid!(
                    "Requires flat_values to have rank>=1 when nested_row_splits is not empty, but is 0."
                ));
            }
        };
        for splits in self.splits.iter().rev() {
            check_splits(splits, Some(below))?;
            below = splits.elements() as i64 - 1;
        }
        Ok(())
    }

    /// An error unless element `i` has the ranks and types of the node.
    pub(super) fn check_kind(
        &self,
        i: usize,
        inner: usize,
        depth: usize,
        (values, splits): (DType, DType),
    ) -> Result<()> {
        if self.splits.len() != inner {
            return Err(invalid!(
                "Encoded input RaggedTensorVariant has ragged_rank={}.  Expected ragged_rank={inner}.",
                self.splits.len()
            ));
        }
        if self.values.dtype() != values {
            return Err(invalid!("Expected values Tensor dtype: {values}, found: {}", self.values.dtype()));
        }
        if self.values.shape().is_empty() && depth != 0 {
            return Err(invalid!(
                "Ragged values must have rank >= 1; encoded scalar element at index {i} has values Tensor: {:?}",
                self.values
            ));
        }
        if let Some(other) = self.splits.iter().find(|tensor| tensor.dtype() != splits) {
            return Err(invalid!("Expected row_splits Tensor dtype: {splits}, found: {}", other.dtype()));
        }
        self.check()
    }

    /// Its rows, each a ragged tensor of one level less.
    pub(super) fn rows(&self) -> Result<Vec<Ragged>> {
        let Some(first) = self.splits.first() else {
            let Some(&count) = self.values.shape().first() else {
                return Err(invalid!("Can't unbatch rank-0 tensor."));
            };
            let dense = |index| Ok(Ragged { splits: Vec::new(), values: row(&self.values, index)? });
            return (0..count).map(dense).collect();
        };
        let (dtype, first) = (first.dtype(), integers(first)?);
        let nested = self.splits[1..].iter().map(integers).collect::<Result<Vec<_>>>()?;
        first.windows(2).map(|pair| self.row(&nested, pair[0] as usize, pair[1] as usize, dtype)).collect()
    }

    fn row(&self, nested: &[Vec<i64>], mut start: usize, mut end: usize, dtype: DType) -> Result<Ragged> {
        let mut splits = Vec::with_capacity(nested.len());
        for level in nested {
            let base = level[start];
            splits.push(split_tensor(&level[start..=end].iter().map(|split| split - base).collect::<Vec<_>>(), dtype));
            (start, end) = (level[start] as usize, level[end] as usize);
        }
        let inner = &self.values.shape()[1..];
        let dims = [&[end - start], inner].concat();
        let values = self.values.slice_elements(start * inner.iter().product::<usize>(), Shape::from(dims))?;
        Ok(Ragged { splits, values })
    }
}

/// Splits as a tensor of their type.
pub(super) fn split_tensor(splits: &[i64], dtype: DType) -> Tensor {
    match dtype {
        DType::I32 => Tensor::vector(&splits.iter().map(|&split| split as i32).collect::<Vec<i32>>()),
        _ => Tensor::vector(splits),
    }
}

/// An error unless these are places that rows begin at, the last the number of rows below where that is known.
pub(super) fn check_splits(splits: &Tensor, below: Option<i64>) -> Result<()> {
    if splits.shape().rank() != 1 {
        return Err(invalid!(
            "Invalid ragged splits: ragged splits must be rank 1 but is rank {}",
            splits.shape().rank()
        ));
    }
    let splits = integers(splits)?;
    let (Some(first), Some(last)) = (splits.first(), splits.last()) else {
        return Err(invalid!("Invalid ragged splits: ragged splits must have at least one splits, but is empty"));
    };
    if *first != 0 {
        return Err(invalid!("Invalid ragged splits: first element of ragged splits  must be 0 but is {first}"));
    }
    if let Some(j) = (1..splits.len()).find(|&j| splits[j] < splits[j - 1]) {
        return Err(invalid!(
            "Invalid ragged splits: ragged splits must be monotonically increasing, but ragged_splits[{j}]={} is \
             smaller than row_splits[{}]={}",
            splits[j],
            j - 1,
            splits[j - 1]
        ));
    }
    match below {
        Some(below) if below != *last => Err(invalid!(
            "Invalid ragged splits: last element of ragged splits must be the number of ragged values({below}) but is \
             {last}"
        )),
        _ => Ok(()),
    }
}

impl VariantObject for Ragged {
    fn encode(&self) -> Result<VariantData> {
        let tensors = self.splits.iter().chain([&self.values]).cloned().collect();
        Ok(VariantData { type_name: TYPE_NAME.to_string(), tensors, ..VariantData::default() })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn zeros_like(&self) -> Result<Variant> {
        let values = zeros_like(&self.values)?;
        Ok(Variant::Object(Arc::new(Ragged { splits: self.splits.clone(), values })))
    }

    fn add(&self, other: &Variant, add: &AddTensors<'_>) -> Result<Variant> {
        let other = Ragged::from_variant(other);
        let other = other.ok_or_else(|| invalid!("Can't add something else to a RaggedTensorVariant"))?;
        if self.values.dtype() != other.values.dtype() {
            return Err(invalid!(
                "Can't add RaggedTensorVariants of different dtypes. One is {} and the other is {}",
                self.values.dtype(),
                other.values.dtype()
            ));
        }
        if self.splits.len() != other.splits.len() {
            return Err(invalid!(
                "Can't add RaggedTensorVariants of different ragged rank. One is {} and the other is {}",
                self.splits.len(),
                other.splits.len()
            ));
        }
        for (ours, theirs) in self.splits.iter().zip(&other.splits) {
            if integers(ours)? != integers(theirs)? {
                return Err(invalid!("Can't add RaggedTensorVariants with different row_splits."));
            }
        }
        let values = add(&self.values, &other.values)?;
        Ok(Variant::Object(Arc::new(Ragged { splits: self.splits.clone(), values })))
    }
}

impl fmt::Debug for Ragged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let splits = self.splits.last().map_or(DType::INVALID, Tensor::dtype);
        let (dtype, rank) = (self.values.dtype(), self.splits.len());
        write!(f, "RaggedTensorVariant(dtype={dtype}, ragged_rank={rank}, splits_dtype={splits}")
    }
}
