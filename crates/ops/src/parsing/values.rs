//! The values of a feature, collected from messages into a tensor.

use io::example::{bytes, floats, integers};
use status::{Result, internal, invalid};
use tensor::{Bytes, DType, Shape, Tensor};

/// Values of one of the three types that examples have.
#[derive(Clone)]
pub(super) enum Values {
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strings(Vec<Bytes>),
}

macro_rules! each {
    ($values:expr, $vec:ident => $body:expr) => {
        match $values {
            Values::Ints($vec) => $body,
            Values::Floats($vec) => $body,
            Values::Strings($vec) => $body,
        }
    };
}

impl Values {
    /// None yet, of this type.
    pub fn empty(dtype: DType) -> Result<Values> {
        Ok(match dtype {
            DType::I64 => Values::Ints(Vec::new()),
            DType::F32 => Values::Floats(Vec::new()),
            DType::STRING => Values::Strings(Vec::new()),
            other => return Err(invalid!("Invalid config dtype: {other}")),
        })
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        each!(self, values => values.len())
    }

    /// Adds the values of a list in `message`, and returns their number; none if it cannot be read.
    pub fn read(&mut self, list: &[u8], message: &Bytes) -> Option<usize> {
        let before = self.len();
        match self {
            Values::Ints(values) => integers(list, values)?,
            Values::Floats(values) => floats(list, values)?,
            Values::Strings(values) => bytes(list, message, values)?,
        }
        Some(self.len() - before)
    }

    /// Adds the elements of a tensor of the same type.
    pub fn extend(&mut self, tensor: &Tensor) -> Result<()> {
        match self {
            Values::Ints(values) => values.extend_from_slice(tensor.values()?),
            Values::Floats(values) => values.extend_from_slice(tensor.values()?),
            Values::Strings(values) => values.extend_from_slice(tensor.strings()?),
        }
        Ok(())
    }

    /// Adds others of the same type.
    pub fn append(&mut self, others: Values) -> Result<()> {
        match (self, others) {
            (Values::Ints(values), Values::Ints(mut others)) => values.append(&mut others),
            (Values::Floats(values), Values::Floats(mut others)) => values.append(&mut others),
            (Values::Strings(values), Values::Strings(mut others)) => values.append(&mut others),
            _ => return Err(internal!("features of one name have two types")),
        }
        Ok(())
    }

    /// A tensor of these.
    pub fn tensor(self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        match self {
            Values::Ints(values) => Tensor::from_slice(shape, &values),
            Values::Floats(values) => Tensor::from_slice(shape, &values),
            Values::Strings(values) => Tensor::from_strings(shape, values),
        }
    }

    /// The rows that end at `ends`, each made `width` long with `padding` or a zero.
    pub fn padded(self, ends: &[usize], width: usize, padding: Option<&Tensor>) -> Result<Values> {
        // Refused before anything is made: a few long rows among many short ones take much room.
        Shape::checked(&[ends.len() as i64, width as i64])?.checked_elements()?;
        Ok(match self {
            Values::Ints(values) => {
                let zero = padding.map_or(Ok(0), |padding| padding.to_scalar())?;
                Values::Ints(pad(values, ends, width, zero)?)
            }
            Values::Floats(values) => {
                let zero = padding.map_or(Ok(0.0), |padding| padding.to_scalar())?;
                Values::Floats(pad(values, ends, width, zero)?)
            }
            Values::Strings(values) => {
                let zero = padding.map_or(Ok(Bytes::new()), |padding| padding.to_string_scalar())?;
                Values::Strings(pad(values, ends, width, zero)?)
            }
        })
    }
}

fn pad<T: Clone>(values: Vec<T>, ends: &[usize], width: usize, padding: T) -> Result<Vec<T>> {
    let (mut padded, mut start) = (Vec::new(), 0);
    let size = ends.len().checked_mul(width);
    let room = size.is_some_and(|size| padded.try_reserve_exact(size).is_ok());
    if !room {
        return Err(status::exhausted!("OOM when allocating tensor with shape[{},{width}]", ends.len()));
    }
    for (row, &end) in ends.iter().enumerate() {
        padded.extend_from_slice(&values[start..end]);
        padded.resize((row + 1) * width, padding.clone());
        start = end;
    }
    Ok(padded)
}
