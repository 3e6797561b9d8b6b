//! A list of tensors that is itself a value: changing it returns another list, in place if this is the only owner.

pub(crate) mod item;
pub(crate) mod join;
pub(crate) mod spread;

pub use self::item::{
    empty_tensor_list, tensor_list_element_shape, tensor_list_get_item, tensor_list_length, tensor_list_pop_back,
    tensor_list_push_back, tensor_list_reserve, tensor_list_resize, tensor_list_set_item,
};
pub use self::join::{tensor_list_gather, tensor_list_stack};
pub use self::spread::{tensor_list_from_tensor, tensor_list_scatter, tensor_list_split};

use crate::data_structures::arithmetic::zeros_like;
use status::{Result, exhausted, invalid};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tensor::wire::{partial_shape_from_bytes, partial_shape_to_bytes};
use tensor::{AddTensors, DType, PartialShape, Tensor, Variant, VariantData, VariantObject, nesting_of};

/// The type name of a list in serialized variants.
pub(crate) const TYPE_NAME: &str = "tensorflow::TensorList";

/// More places than this are refused: a number alone must not take all memory.
const MOST: usize = 1 << 24;

/// A list of tensors of one type; a place may be empty.
#[derive(Clone)]
pub struct TensorList {
    /// Type of the elements.
    pub dtype: DType,
    /// The known shape of all elements.
    pub element_shape: PartialShape,
    /// How many elements it may have; any number if that is negative.
    pub max_num_elements: i32,
    tensors: Arc<Vec<Option<Tensor>>>,
    /// At least that of the elements.
    nesting: usize,
}

impl TensorList {
    /// An empty list.
    pub fn new(dtype: DType, element_shape: PartialShape) -> TensorList {
        TensorList { dtype, element_shape, max_num_elements: -1, tensors: Arc::default(), nesting: 1 }
    }

    /// A list of these tensors.
    pub fn of(dtype: DType, element_shape: PartialShape, tensors: Vec<Option<Tensor>>) -> TensorList {
        let nesting = if dtype == DType::VARIANT { nesting_of(tensors.iter().flatten()) } else { 1 };
        TensorList { dtype, element_shape, max_num_elements: -1, tensors: Arc::new(tensors), nesting }
    }

    /// The elements.
    pub fn tensors(&self) -> &[Option<Tensor>] {
        &self.tensors
    }

    /// Adds an element at the end.
    pub fn push(&mut self, element: Tensor) {
        self.nest(&element);
        self.tensors_mut().push(Some(element));
    }

    /// Sets the element at a place; false if there is no such place.
    pub fn set(&mut self, place: usize, element: Tensor) -> bool {
        self.nest(&element);
        let place = self.tensors_mut().get_mut(place);
        place.map(|place| *place = Some(element)).is_some()
    }

    /// Adds the elements of another list at the end.
    pub fn extend(&mut self, other: &TensorList) {
        self.nesting = self.nesting.max(other.nesting);
        self.tensors_mut().extend_from_slice(other.tensors());
    }

    /// Removes the last element, which may be unset.
    pub fn pop(&mut self) -> Option<Tensor> {
        self.tensors_mut().pop().flatten()
    }

    fn nest(&mut self, element: &Tensor) {
        self.nesting = self.nesting.max(nesting_of([element]));
    }

    /// The elements, to be changed: copied first if another list shares them.
    fn tensors_mut(&mut self) -> &mut Vec<Option<Tensor>> {
        Arc::make_mut(&mut self.tensors)
    }

    /// Resizes the list, with unset elements at the end.
    pub fn resize(&mut self, len: usize) -> Result<()> {
        if len > MOST {
            return Err(exhausted!("OOM when allocating a list of {len} tensors"));
        }
        self.tensors_mut().resize(len, None);
        Ok(())
    }

    /// The list in a scalar variant; the tensor is consumed, so that its last owner changes the list in place.
    pub fn take(handle: Tensor) -> Result<TensorList> {
        if handle.shape().rank() != 0 {
            return Err(invalid!("Input list must be a scalar saw: {}", handle.shape()));
        }
        match handle.variants()? {
            [variant] => TensorList::from_variant(variant)
                .ok_or_else(|| invalid!("Input handle is not a list. Saw: '{variant:?}'"))?,
            _ => Err(invalid!("Input list must be a scalar saw: {}", handle.shape())),
        }
    }

    /// The list a variant is; none if it is something else.
    pub fn from_variant(variant: &Variant) -> Option<Result<TensorList>> {
        match variant {
            Variant::Data(data) => (data.type_name == TYPE_NAME).then(|| TensorList::decode(data)),
            Variant::Object(_) => variant.object::<TensorList>().cloned().map(Ok),
        }
    }

    /// As `take`, for a list that must have elements of type `dtype`.
    pub fn take_typed(handle: Tensor, dtype: DType) -> Result<TensorList> {
        let list = TensorList::take(handle)?;
        match list.dtype == dtype {
            true => Ok(list),
            false => Err(invalid!("Invalid data types; op elements {dtype} but list elements {}", list.dtype)),
        }
    }

    /// The shape of an element as far as `shape` and the elements that are set determine it.
    pub fn shape_of_all(&self, mut shape: PartialShape) -> Result<PartialShape> {
        for tensor in self.tensors.iter().flatten() {
            shape = merged(&shape, &tensor.shape().into())?;
        }
        Ok(shape)
    }

    /// Decodes a list from its serialized form.
    pub fn decode(data: &VariantData) -> Result<TensorList> {
        let broken = || invalid!("The metadata of a TensorList cannot be read");
        let mut rest = &data.metadata[..];
        let count = usize::try_from(varint(&mut rest).ok_or_else(broken)?).map_err(|_| broken())?;
        let len = count.checked_add(data.tensors.len()).filter(|&len| len <= MOST).ok_or_else(broken)?;
        let mut tensors = vec![None; len];
        let mut full = vec![true; len];
        for _ in 0..count {
            let index = varint(&mut rest).and_then(|index| usize::try_from(index).ok());
            *index.and_then(|index| full.get_mut(index)).ok_or_else(broken)? = false;
        }
        let mut values = data.tensors.iter();
        for place in (0..len).filter(|&place| full[place]) {
            tensors[place] = Some(values.next().ok_or_else(broken)?.clone());
        }
        let dtype = DType::from_number(varint(&mut rest).ok_or_else(broken)? as i32);
        let max_num_elements = varint(&mut rest).ok_or_else(broken)? as i32;
        let list = TensorList::of(dtype, partial_shape_from_bytes(rest)?, tensors);
        Ok(TensorList { max_num_elements, ..list })
    }
}

/// The merged shape, or TensorFlow's error if the shapes are incompatible.
pub(crate) fn merged(a: &PartialShape, b: &PartialShape) -> Result<PartialShape> {
    a.merge(b).map_err(|_| match (a.rank(), b.rank()) {
        (Some(x), Some(y)) if x != y => invalid!("PartialTensorShape: Incompatible ranks during merge: {x} vs. {y}"),
        _ => invalid!("PartialTensorShape: Incompatible shapes during merge: {a} vs. {b}"),
    })
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl VariantObject for TensorList {
    fn encode(&self) -> Result<VariantData> {
        let empty: Vec<usize> = (0..self.tensors.len()).filter(|&place| self.tensors[place].is_none()).collect();
        let mut metadata = Vec::new();
        put_varint(&mut metadata, empty.len() as u64);
        empty.iter().for_each(|&place| put_varint(&mut metadata, place as u64));
        put_varint(&mut metadata, self.dtype.number() as u64);
        put_varint(&mut metadata, i64::from(self.max_num_elements) as u64);
        metadata.extend(partial_shape_to_bytes(&self.element_shape));
        Ok(VariantData {
            type_name: TYPE_NAME.to_string(),
            metadata: metadata.into(),
            tensors: self.tensors.iter().flatten().cloned().collect(),
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn nesting(&self) -> usize {
        self.nesting
    }

    fn zeros_like(&self) -> Result<Variant> {
        let zeros: Result<Vec<Option<Tensor>>> =
            self.tensors.iter().map(|tensor| tensor.as_ref().map(zeros_like).transpose()).collect();
        Ok(Variant::Object(Arc::new(TensorList::of(self.dtype, self.element_shape.clone(), zeros?))))
    }

    fn add(&self, other: &Variant, add: &AddTensors<'_>) -> Result<Variant> {
        let other = TensorList::from_variant(other)
            .ok_or_else(|| invalid!("Input handle is not a list. Saw: '{other:?}'"))??;
        if self.dtype != other.dtype {
            return Err(invalid!(
                "Trying to add two lists of tensors of different dtypes. One is {} and the other is {}",
                self.dtype,
                other.dtype
            ));
        }
        let shape = self.element_shape.merge(&other.element_shape).map_err(|_| {
            invalid!(
                "Trying to add two lists of tensors with incompatible element shapes. One is {} and the other is {}",
                self.element_shape,
                other.element_shape
            )
        })?;
        if self.tensors.len() != other.tensors.len() {
            return Err(invalid!(
                "Trying to add two lists of tensors with different lengths. One is {} and the other is {}",
                self.tensors.len(),
                other.tensors.len()
            ));
        }
        let sum = |(a, b): (&Option<Tensor>, &Option<Tensor>)| match (a, b) {
            (Some(a), Some(b)) => add(a, b).map(Some),
            (a, b) => Ok(a.as_ref().or(b.as_ref()).cloned()),
        };
        let sums: Result<Vec<Option<Tensor>>> = self.tensors.iter().zip(other.tensors.iter()).map(sum).collect();
        Ok(Variant::Object(Arc::new(TensorList::of(self.dtype, shape, sums?))))
    }
}

impl fmt::Debug for TensorList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TensorList")
    }
}
