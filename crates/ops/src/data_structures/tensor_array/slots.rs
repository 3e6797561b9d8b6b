//! An array of tensors that lives for one step. Each element is written once, or sums all writes.

use crate::data_structures::arithmetic::add;
use op::{Ctx, Resource};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use tensor::{DType, PartialShape, Shape, Tensor};

/// An array of tensors.
pub(crate) struct TensorArray {
    pub name: String,
    pub dtype: DType,
    pub clear_after_read: bool,
    pub identical_element_shapes: bool,
    /// Collects gradients: writes to one place are summed, and a place never written holds zeros.
    pub is_grad: bool,
    state: Mutex<State>,
}

struct State {
    closed: bool,
    dynamic_size: bool,
    gradients_disallowed: bool,
    element_shape: PartialShape,
    /// The size after the last split, which the concat of a gradient array uses.
    marked_size: Option<usize>,
    size: usize,
    slots: FxHashMap<usize, Slot>,
}

/// A place of the array. A written one without a tensor holds zeros of its shape.
#[derive(Default)]
struct Slot {
    tensor: Option<Tensor>,
    shape: Shape,
    written: bool,
    read: bool,
    cleared: bool,
}

impl Resource for TensorArray {
    const TYPE_NAME: &'static str = "N10tensorflow11TensorArrayE";
}

impl TensorArray {
    /// An array of `size` elements, none of which is written.
    pub fn new(
        name: String,
        dtype: DType,
        size: usize,
        element_shape: PartialShape,
        dynamic_size: bool,
    ) -> TensorArray {
        TensorArray {
            name,
            dtype,
            clear_after_read: true,
            identical_element_shapes: false,
            is_grad: false,
            state: Mutex::new(State {
                closed: false,
                dynamic_size,
                gradients_disallowed: false,
                element_shape,
                marked_size: None,
                size,
                slots: FxHashMap::default(),
            }),
        }
    }

    /// The gradient array of this one; `prepend` is put before the shapes of its elements.
    pub fn gradients(&self, name: String, prepend: &Shape, with_shape: bool) -> Result<TensorArray> {
        let mut state = self.open()?;
        state.dynamic_size = false;
        if state.gradients_disallowed {
            return Err(invalid!(
                "Unable to create a gradients TensorArray for {}.  Perhaps you used the multiple_writes_aggregate flag \
                 on a previous write?  Gradient calculation is impossible when multiple writes are performed to the \
                 same index.",
                self.name
            ));
        }
        let longer = |shape: &Shape| -> Shape { prepend.iter().chain(shape.iter()).copied().collect() };
        let element_shape = match (with_shape, state.element_shape.dims()) {
            (false, _) => state.element_shape.clone(),
            (true, Some(dims)) => PartialShape::new(&[&prepend.to_i64(), dims].concat()),
            (true, None) => PartialShape::unknown(),
        };
        let array = TensorArray {
            is_grad: true,
            identical_element_shapes: self.identical_element_shapes,
            ..TensorArray::new(name, self.dtype, state.size, element_shape, false)
        };
        let written = state.slots.iter().filter(|(_, slot)| slot.written);
        let slots = written
            .map(|(&index, slot)| (index, Slot { shape: longer(&slot.shape), written: true, ..Slot::default() }));
        {
            let mut grad = array.state.lock();
            grad.slots = slots.collect();
            grad.marked_size = state.marked_size;
        }
        Ok(array)
    }

    /// Exclusive access; an error if the array is closed.
    fn open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        match state.closed {
            true => Err(invalid!("TensorArray {} has already been closed.", self.name)),
            false => Ok(state),
        }
    }

    /// The number of elements.
    pub fn size(&self) -> Result<usize> {
        Ok(self.open()?.size)
    }

    /// How many places concat takes.
    pub fn concat_size(&self) -> Result<usize> {
        let state = self.open()?;
        Ok(if self.is_grad { state.marked_size.unwrap_or(0) } else { state.size })
    }

    /// Remembers the size of a split.
    pub fn mark_size(&self, size: usize) -> Result<()> {
        let mut state = self.open()?;
        if !self.is_grad {
            state.marked_size = Some(size);
        }
        Ok(())
    }

    /// Whether writing past the end makes it longer.
    pub fn has_dynamic_size(&self) -> bool {
        self.state.lock().dynamic_size
    }

    /// Merges a shape into the known shape of all elements.
    pub fn merge_element_shape(&self, shape: &PartialShape) -> Result<()> {
        let mut state = self.state.lock();
        state.element_shape = crate::data_structures::tensor_list::merged(&state.element_shape, shape)?;
        Ok(())
    }

    /// Closes the array and drops its elements; any further use is an error.
    pub fn close(&self) {
        let slots = {
            let mut state = self.state.lock();
            state.closed = true;
            std::mem::take(&mut state.slots)
        };
        drop(slots); // outside the lock: freeing many takes time
    }

    /// Writes tensors to places, in order.
    pub fn write(&self, ctx: &Ctx<'_>, values: impl IntoIterator<Item = (i32, Tensor)>) -> Result<()> {
        let mut state = self.open()?;
        values.into_iter().try_for_each(|(index, value)| self.write_one(ctx, &mut state, index, value))
    }

    fn write_one(&self, ctx: &Ctx<'_>, state: &mut State, index: i32, value: Tensor) -> Result<()> {
        let place = self.place_to_write(state, index)?;
        self.check_value(state, index, &value)?;
        let slot = state.slots.entry(place).or_default();
        let refuse = |why: &str| {
            Err(invalid!(
                "TensorArray {}: Could not write to TensorArray index {index} because it has already been {why}.",
                self.name
            ))
        };
        if slot.read {
            return refuse("read");
        }
        if !slot.written {
            *slot = Slot { shape: value.shape().clone(), tensor: Some(value), written: true, ..Slot::default() };
            return Ok(());
        }
        if !self.is_grad {
            return refuse("written to");
        }
        if *value.shape() != slot.shape {
            return Err(invalid!(
                "TensorArray {}: Could not aggregate to TensorArray index {index} because the existing shape is {} but \
                 the new input shape is {}.",
                self.name,
                slot.shape,
                value.shape()
            ));
        }
        match slot.tensor.take() {
            None => slot.tensor = Some(value),
            Some(sum) => {
                slot.tensor = Some(add(ctx, sum, &value)?);
                state.gradients_disallowed = true;
            }
        }
        Ok(())
    }

    fn place_to_write(&self, state: &mut State, index: i32) -> Result<usize> {
        let place = usize::try_from(index).ok().filter(|&place| state.dynamic_size || place < state.size);
        let place = place.ok_or_else(|| {
            invalid!(
                "TensorArray {}: Tried to write to index {index} but array is not resizeable and size is: {}",
                self.name,
                state.size
            )
        })?;
        state.size = state.size.max(place + 1);
        Ok(place)
    }

    fn check_value(&self, state: &mut State, index: i32, value: &Tensor) -> Result<()> {
        let name = &self.name;
        if value.dtype() != self.dtype {
            return Err(invalid!(
                "TensorArray {name}: Could not write to TensorArray index {index} because the value dtype is {} but \
                 TensorArray dtype is {}.",
                value.dtype(),
                self.dtype
            ));
        }
        if !state.element_shape.accepts(value.shape()) {
            return Err(invalid!(
                "TensorArray {name}: Could not write to TensorArray index {index} because the value shape is {} which \
                 is incompatible with the TensorArray's inferred element shape: {} (consider setting \
                 infer_shape=False).",
                value.shape(),
                state.element_shape
            ));
        }
        if self.identical_element_shapes && state.element_shape.known().is_none() {
            state.element_shape = value.shape().into();
        }
        Ok(())
    }

    /// Reads places, in order.
    pub fn read(&self, indices: impl IntoIterator<Item = i32>) -> Result<Vec<Tensor>> {
        let mut state = self.open()?;
        indices.into_iter().map(|index| self.read_one(&mut state, index)).collect()
    }

    fn read_one(&self, state: &mut State, index: i32) -> Result<Tensor> {
        let place = usize::try_from(index).ok().filter(|&place| self.is_grad || place < state.size);
        let place =
            place.ok_or_else(|| invalid!("Tried to read from index {index} but array size is: {}", state.size))?;
        let slot = state.slots.get(&place);
        if !slot.is_some_and(|slot| slot.written) {
            let shape = self.shape_of_zeros(slot, &state.element_shape, index)?;
            state.slots.insert(place, Slot { shape, written: true, ..Slot::default() });
            state.size = state.size.max(place + 1);
        }
        let slot = state.slots.entry(place).or_default();
        if slot.cleared {
            return Err(invalid!(
                "TensorArray {}: Could not read index {index} twice because it was cleared after a previous read \
                 (perhaps try setting clear_after_read = false?).",
                self.name
            ));
        }
        slot.read = true;
        let tensor = match slot.tensor.take() {
            Some(tensor) => tensor,
            None => Tensor::zeros_of(self.dtype, &slot.shape)?,
        };
        match self.clear_after_read {
            true => slot.cleared = true,
            false => slot.tensor = Some(tensor.clone()),
        }
        Ok(tensor)
    }

    fn shape_of_zeros(&self, slot: Option<&Slot>, element_shape: &PartialShape, index: i32) -> Result<Shape> {
        match slot {
            Some(slot) if self.is_grad && slot.shape.rank() > 0 => Ok(slot.shape.clone()),
            _ => element_shape.known().ok_or_else(|| {
                invalid!(
                    "TensorArray {}: Could not read from TensorArray index {index}.  Furthermore, the element shape is \
                     not fully defined: {element_shape}.  It is possible you are working with a resizeable TensorArray \
                     and stop_gradients is not allowing the gradients to be written.  If you set the full \
                     element_shape property on the forward TensorArray, the proper all-zeros tensor will be returned \
                     instead of incurring this error.",
                    self.name
                )
            }),
        }
    }
}
