//! The tensor: an element type, a shape and shared elements.

use crate::buffer::has_room;
use crate::{Buffer, Bytes, DType, Element, MOST_NESTED, ResourceHandle, Shape, Variant};
use status::{Result, exhausted, internal, invalid};
use std::fmt;
use std::sync::Arc;

/// A value: `shape.elements()` elements of type `dtype` in row-major order.
///
/// Cloning shares the elements; writing to a shared tensor copies them first.
///
/// # Examples
///
/// ```
/// use flowgrid_tensor::Tensor;
///
/// let matrix = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(matrix.shape().dims(), [2, 2]);
/// assert_eq!(matrix.values::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// assert_eq!(matrix.reshaped([4])?.shape().rank(), 1);
/// # Ok::<(), status::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    data: Data,
}

/// Elements by kind of storage. Invariant: `shape.elements()` of them, stored as `dtype` requires.
#[derive(Clone)]
enum Data {
    Plain(Buffer),
    Strings(Arc<Vec<Bytes>>),
    Handles(Arc<Vec<ResourceHandle>>),
    Variants(Arc<Vec<Variant>>),
}

impl Tensor {
    /// A scalar.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        let mut buffer = Buffer::zeroed(size_of::<T>()).expect("small buffers need no memory");
        buffer.elements_mut::<T>().expect("small buffers are never shared")[0] = value;
        Tensor { dtype: T::DTYPE, shape: Shape::scalar(), data: Data::Plain(buffer) }
    }

    /// Zeros of type `T`.
    pub fn zeros<T: Element>(shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::zeros_of(T::DTYPE, shape)
    }

    /// Zeros, empty strings or empty handles of any type.
    pub fn zeros_of(dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::make(dtype, shape.into(), Buffer::zeroed)
    }

    /// Elements of unspecified value, for a result that is overwritten completely.
    pub fn scratch<T: Element>(shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::scratch_of(T::DTYPE, shape)
    }

    /// As `scratch`, for a type known at run time only.
    pub fn scratch_of(dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::make(dtype, shape.into(), Buffer::scratch)
    }

    /// A tensor whose elements all equal the single plain element of `value`. Large results take no memory until
    /// their elements are read or written.
    pub fn uniform(shape: impl Into<Shape>, value: &Tensor) -> Result<Tensor> {
        let (dtype, shape) = (value.dtype, shape.into());
        let Some(element) = value.buffer().filter(|_| value.elements() == 1) else {
            return Err(internal!("{value:?} has to be exactly one element of a plain type to be repeated"));
        };
        let bytes = shape.checked_elements()?.checked_mul(dtype.size());
        let buffer = bytes.and_then(|bytes| Buffer::uniform(element.bytes(), bytes));
        let buffer =
            buffer.ok_or_else(|| exhausted!("OOM when allocating tensor with shape{shape} and type {dtype}"))?;
        Ok(Tensor { dtype, shape, data: Data::Plain(buffer) })
    }

    fn make(dtype: DType, shape: Shape, allocate: fn(usize) -> Option<Buffer>) -> Result<Tensor> {
        let count = shape.checked_elements()?;
        let room = |size: usize| count.checked_mul(size).filter(|&bytes| bytes <= isize::MAX as usize - 4096);
        let out_of_memory = || exhausted!("OOM when allocating tensor with shape{shape} and type {dtype}");
        let data = match dtype {
            DType::STRING => Data::Strings(Arc::new(repeated(count, Bytes::new()).ok_or_else(out_of_memory)?)),
            DType::RESOURCE => {
                Data::Handles(Arc::new(repeated(count, ResourceHandle::default()).ok_or_else(out_of_memory)?))
            }
            DType::VARIANT => Data::Variants(Arc::new(repeated(count, Variant::default()).ok_or_else(out_of_memory)?)),
            plain if plain.is_plain() && !plain.is_ref() => {
                Data::Plain(room(plain.size()).and_then(allocate).ok_or_else(out_of_memory)?)
            }
            other => return Err(invalid!("Tensors of type {other} cannot be created")),
        };
        Ok(Tensor { dtype, shape, data })
    }

    /// A tensor of these values.
    pub fn from_slice<T: Element>(shape: impl Into<Shape>, values: &[T]) -> Result<Tensor> {
        let mut tensor = Tensor::scratch::<T>(shape)?;
        check_count(&tensor.shape, values.len())?;
        tensor.values_mut::<T>()?.copy_from_slice(values);
        Ok(tensor)
    }

    /// A vector of these values.
    pub fn vector<T: Element>(values: &[T]) -> Tensor {
        Tensor::from_slice([values.len()], values).expect("the values are already in memory")
    }

    /// A tensor of strings.
    pub fn from_strings(shape: impl Into<Shape>, values: Vec<Bytes>) -> Result<Tensor> {
        let shape = shape.into();
        check_count(&shape, values.len())?;
        Ok(Tensor { dtype: DType::STRING, shape, data: Data::Strings(Arc::new(values)) })
    }

    /// One string.
    pub fn string(value: impl Into<Bytes>) -> Tensor {
        Tensor { dtype: DType::STRING, shape: Shape::scalar(), data: Data::Strings(Arc::new(vec![value.into()])) }
    }

    /// A tensor of resource handles.
    pub fn from_handles(shape: impl Into<Shape>, values: Vec<ResourceHandle>) -> Result<Tensor> {
        let shape = shape.into();
        check_count(&shape, values.len())?;
        Ok(Tensor { dtype: DType::RESOURCE, shape, data: Data::Handles(Arc::new(values)) })
    }

    /// A tensor of variants.
    pub fn from_variants(shape: impl Into<Shape>, values: Vec<Variant>) -> Result<Tensor> {
        let shape = shape.into();
        check_count(&shape, values.len())?;
        if values.iter().any(|value| value.nesting() > MOST_NESTED) {
            return Err(exhausted!("Variants nest deeper than {MOST_NESTED}"));
        }
        Ok(Tensor { dtype: DType::VARIANT, shape, data: Data::Variants(Arc::new(values)) })
    }

    /// A tensor of plain elements from a buffer, little-endian and row-major.
    pub fn from_buffer(dtype: DType, shape: impl Into<Shape>, buffer: Buffer) -> Result<Tensor> {
        let shape = shape.into();
        let bytes = shape.checked_elements()?.checked_mul(dtype.size());
        if !dtype.is_plain() || bytes != Some(buffer.len()) {
            return Err(invalid!("{} bytes do not match dtype {dtype} and shape {shape}", buffer.len()));
        }
        if dtype == DType::BOOL && buffer.bytes().iter().any(|&byte| byte > 1) {
            return Tensor::from_slice(shape, &buffer.bytes().iter().map(|&byte| byte != 0).collect::<Vec<_>>());
        }
        Ok(Tensor { dtype, shape, data: Data::Plain(buffer) })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        match &self.data {
            Data::Plain(buffer) => buffer.len() / self.dtype.size(),
            Data::Strings(values) => values.len(),
            Data::Handles(values) => values.len(),
            Data::Variants(values) => values.len(),
        }
    }

    /// Size of the elements in bytes, including the contents of strings.
    pub fn byte_size(&self) -> usize {
        match &self.data {
            Data::Plain(buffer) => buffer.len(),
            Data::Strings(values) => values.iter().map(|value| value.len() + size_of::<Bytes>()).sum(),
            Data::Handles(values) => values.len() * size_of::<ResourceHandle>(),
            Data::Variants(values) => values.len() * size_of::<Variant>(),
        }
    }

    /// The elements as a slice; an error if the tensor does not store elements of type `T`.
    pub fn values<T: Element>(&self) -> Result<&[T]> {
        match &self.data {
            Data::Plain(buffer) if T::stores(self.dtype) => Ok(buffer.elements()),
            _ => Err(wrong_type(self.dtype, T::DTYPE)),
        }
    }

    /// The elements for writing; copied first if this tensor is shared.
    pub fn values_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        let (dtype, shape) = (self.dtype, &self.shape);
        match &mut self.data {
            Data::Plain(buffer) if T::stores(dtype) => buffer
                .elements_mut()
                .ok_or_else(|| exhausted!("OOM when allocating tensor with shape{shape} and type {dtype}")),
            _ => Err(wrong_type(dtype, T::DTYPE)),
        }
    }

    /// The element of a tensor that has exactly one; an error otherwise.
    pub fn to_scalar<T: Element>(&self) -> Result<T> {
        match self.values::<T>()? {
            [value] => Ok(*value),
            values => Err(invalid!("Expected one element, got {} (shape {})", values.len(), self.shape)),
        }
    }

    /// The strings of a string tensor.
    pub fn strings(&self) -> Result<&[Bytes]> {
        match &self.data {
            Data::Strings(values) => Ok(values),
            _ => Err(wrong_type(self.dtype, DType::STRING)),
        }
    }

    /// The string of a tensor that has exactly one; an error otherwise.
    pub fn to_string_scalar(&self) -> Result<Bytes> {
        match self.strings()? {
            [value] => Ok(value.clone()),
            values => Err(invalid!("Expected one string, got {} (shape {})", values.len(), self.shape)),
        }
    }

    /// The strings for writing.
    pub fn strings_mut(&mut self) -> Result<&mut Vec<Bytes>> {
        match &mut self.data {
            Data::Strings(values) => Ok(Arc::make_mut(values)),
            _ => Err(wrong_type(self.dtype, DType::STRING)),
        }
    }

    /// The handles of a resource tensor.
    pub fn handles(&self) -> Result<&[ResourceHandle]> {
        match &self.data {
            Data::Handles(values) => Ok(values),
            _ => Err(wrong_type(self.dtype, DType::RESOURCE)),
        }
    }

    /// The handles for writing.
    pub fn handles_mut(&mut self) -> Result<&mut [ResourceHandle]> {
        match &mut self.data {
            Data::Handles(values) => Ok(Arc::make_mut(values).as_mut_slice()),
            _ => Err(wrong_type(self.dtype, DType::RESOURCE)),
        }
    }

    /// The variants of a variant tensor.
    pub fn variants(&self) -> Result<&[Variant]> {
        match &self.data {
            Data::Variants(values) => Ok(values),
            _ => Err(wrong_type(self.dtype, DType::VARIANT)),
        }
    }

    /// The variants for writing.
    pub fn variants_mut(&mut self) -> Result<&mut [Variant]> {
        match &mut self.data {
            Data::Variants(values) => Ok(Arc::make_mut(values).as_mut_slice()),
            _ => Err(wrong_type(self.dtype, DType::VARIANT)),
        }
    }

    /// How many variants are inside each other; zero if there are none.
    pub fn nesting(&self) -> usize {
        match &self.data {
            Data::Variants(values) => values.iter().map(Variant::nesting).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The buffer of plain elements; `None` for strings, handles and variants.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.data {
            Data::Plain(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The raw bytes of plain elements for writing; an error for other kinds.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        let dtype = self.dtype;
        match &mut self.data {
            Data::Plain(buffer) => buffer.bytes_mut().ok_or_else(|| exhausted!("OOM when copying a tensor")),
            _ => Err(internal!("a tensor of type {dtype} does not store raw bytes")),
        }
    }

    /// True if writing needs no copy because this is the only owner.
    pub fn is_unique(&mut self) -> bool {
        match &mut self.data {
            Data::Plain(buffer) => buffer.is_unique(),
            Data::Strings(values) => Arc::get_mut(values).is_some(),
            Data::Handles(values) => Arc::get_mut(values).is_some(),
            Data::Variants(values) => Arc::get_mut(values).is_some(),
        }
    }

    /// The same elements with another shape of equal element count.
    pub fn reshaped(mut self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if shape.checked_elements()? != self.elements() {
            return Err(invalid!(
                "Input to reshape is a tensor with {} values, but the requested shape has {}",
                self.elements(),
                shape.elements()
            ));
        }
        self.shape = shape;
        Ok(self)
    }

    /// The elements from `start` on as a tensor of the given shape; plain elements are shared.
    pub fn slice_elements(&self, start: usize, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        let count = shape.checked_elements()?;
        if start.checked_add(count).is_none_or(|end| end > self.elements()) {
            return Err(internal!(
                "slice of {count} elements from {start} exceeds a tensor with {} elements",
                self.elements()
            ));
        }
        let range = start..start + count;
        let data = match &self.data {
            Data::Plain(buffer) => {
                let size = self.dtype.size();
                Data::Plain(buffer.slice(start * size, count * size))
            }
            Data::Strings(values) => Data::Strings(Arc::new(values[range].to_vec())),
            Data::Handles(values) => Data::Handles(Arc::new(values[range].to_vec())),
            Data::Variants(values) => Data::Variants(Arc::new(values[range].to_vec())),
        };
        Ok(Tensor { dtype: self.dtype, shape, data })
    }

    /// The same bytes reinterpreted as another plain type of the same width.
    pub fn retyped(mut self, dtype: DType) -> Result<Tensor> {
        if dtype.size() != self.dtype.size() || !dtype.is_plain() {
            return Err(internal!("{} cannot be read as {dtype}", self.dtype));
        }
        if dtype == DType::BOOL && self.dtype != DType::BOOL {
            return Err(internal!("{} cannot be read as bool", self.dtype));
        }
        self.dtype = dtype;
        Ok(self)
    }
}

/// `count` copies of a value; `None` if memory is exhausted.
fn repeated<T: Clone>(count: usize, value: T) -> Option<Vec<T>> {
    count.checked_mul(size_of::<T>()).filter(|&bytes| has_room(bytes))?;
    let mut values = Vec::new();
    values.try_reserve_exact(count).ok()?;
    values.resize(count, value);
    Some(values)
}

fn check_count(shape: &Shape, count: usize) -> Result<()> {
    if shape.checked_elements()? != count {
        return Err(invalid!("{count} values do not match shape {shape}"));
    }
    Ok(())
}

fn wrong_type(found: DType, wanted: DType) -> status::Error {
    invalid!("Expected a tensor of type {wanted}, got one of type {found}")
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<type: {} shape: {}>", self.dtype, self.shape)
    }
}
