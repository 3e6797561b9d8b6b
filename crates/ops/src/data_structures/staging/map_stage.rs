//! Staging areas that return elements by key; the tensors of an element may be added and removed one by one.

use super::{Limits, Shelf, bytes_of, request_kernel};
use op::shapes::{none, scalar, unknown};
use op::{Inputs, Kernel, Op, Setup};
use status::{Result, invalid};
use std::collections::BTreeMap;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = rows! {
    "MapStage(key: int64, indices: int32, values: [fake_dtypes]); capacity: int >= 0 = 0; \
     memory_limit: int >= 0 = 0; dtypes: list(type); fake_dtypes: list(type) >= 1; container: string = \"\"; \
     shared_name: string = \"\"; stateful", none, stage_kernel;
    "MapPeek(key: int64, indices: int32) -> values: [dtypes]; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; \
     dtypes: list(type) >= 1; container: string = \"\"; shared_name: string = \"\"; stateful", unknown, peek_kernel;
    "MapUnstage(key: int64, indices: int32) -> values: [dtypes]; capacity: int >= 0 = 0; \
     memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = \"\"; shared_name: string = \"\"; \
     stateful", unknown, unstage_kernel;
    "MapUnstageNoKey(indices: int32) -> key: int64, values: [dtypes]; capacity: int >= 0 = 0; \
     memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = \"\"; shared_name: string = \"\"; \
     stateful", unknown, unstage_any_kernel;
    "MapSize() -> size: int32; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); \
     container: string = \"\"; shared_name: string = \"\"; stateful", scalar, size_kernel;
    "MapIncompleteSize() -> size: int32; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); \
     container: string = \"\"; shared_name: string = \"\"; stateful", scalar, incomplete_size_kernel;
    "MapClear(); capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = \"\"; \
     shared_name: string = \"\"; stateful", none, clear_kernel;
    "OrderedMapStage(key: int64, indices: int32, values: [fake_dtypes]); capacity: int >= 0 = 0; \
     memory_limit: int >= 0 = 0; dtypes: list(type); fake_dtypes: list(type) >= 1; container: string = \"\"; \
     shared_name: string = \"\"; stateful", none, stage_kernel;
    "OrderedMapPeek(key: int64, indices: int32) -> values: [dtypes]; capacity: int >= 0 = 0; \
     memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = \"\"; shared_name: string = \"\"; \
     stateful", unknown, peek_kernel;
    "OrderedMapUnstage(key: int64, indices: int32) -> values: [dtypes]; capacity: int >= 0 = 0; \
     memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = \"\"; shared_name: string = \"\"; \
     stateful", unknown, unstage_kernel;
    "OrderedMapUnstageNoKey(indices: int32) -> key: int64, values: [dtypes]; capacity: int >= 0 = 0; \
     memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; container: string = \"\"; shared_name: string = \"\"; \
     stateful", unknown, unstage_any_kernel;
    "OrderedMapSize() -> size: int32; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); \
     container: string = \"\"; shared_name: string = \"\"; stateful", scalar, size_kernel;
    "OrderedMapIncompleteSize() -> size: int32; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; \
     dtypes: list(type); container: string = \"\"; shared_name: string = \"\"; stateful",
        scalar, incomplete_size_kernel;
    "OrderedMapClear(); capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); \
     container: string = \"\"; shared_name: string = \"\"; stateful", none, clear_kernel;
};

/// Elements by key. An element moves from `incomplete` to `complete` when it has all its tensors, and is removed when
/// all of them are taken.
struct Map<const ORDERED: bool> {
    limits: Limits,
    tensors: usize,
    held: usize,
    complete: BTreeMap<i64, Element>,
    incomplete: BTreeMap<i64, Element>,
}

type Element = Vec<Option<Tensor>>;

enum Request {
    Put { key: i64, indices: Vec<i32>, values: Vec<Tensor> },
    Peek { key: i64, indices: Vec<i32> },
    Pop { key: i64, indices: Vec<i32> },
    PopAny { indices: Vec<i32> },
    Size,
    IncompleteSize,
    Clear,
}

impl<const ORDERED: bool> Shelf for Map<ORDERED> {
    type Request = Request;

    fn serve(&mut self, request: &mut Request) -> Option<Result<Vec<Tensor>>> {
        match request {
            Request::Put { key, indices, values } => {
                let whole = indices.len() == self.tensors;
                let (bytes, elements) = (bytes_of(&*values), if whole { self.complete.len() } else { 0 });
                match self.limits.is_full(elements, self.held, bytes) {
                    Err(error) => return Some(Err(error)),
                    Ok(true) => return None,
                    Ok(false) => {}
                }
                Some(self.put(*key, indices, std::mem::take(values)).map(|()| {
                    self.held += bytes;
                    Vec::new()
                }))
            }
            Request::Peek { key, indices } => {
                let element = self.complete.get_mut(key)?;
                Some(take_tensors(element, *key, indices, true))
            }
            Request::Pop { key, indices } => self.complete.contains_key(key).then(|| self.pop(*key, indices)),
            Request::PopAny { indices } => {
                let key = *self.complete.keys().next()?;
                Some(self.pop(key, indices).map(|mut tensors| {
                    tensors.insert(0, Tensor::scalar(key));
                    tensors
                }))
            }
            Request::Size => Some(Ok(vec![Tensor::scalar(self.complete.len() as i32)])),
            Request::IncompleteSize => Some(Ok(vec![Tensor::scalar(self.incomplete.len() as i32)])),
            Request::Clear => {
                self.complete.clear();
                self.incomplete.clear();
                self.held = 0;
                Some(Ok(Vec::new()))
            }
        }
    }
}

impl<const ORDERED: bool> Map<ORDERED> {
    fn put(&mut self, key: i64, indices: &[i32], values: Vec<Tensor>) -> Result<()> {
        let mut element = match self.incomplete.get(&key) {
            Some(element) if indices.len() != self.tensors => element.clone(),
            _ => vec![None; self.tensors],
        };
        for (&index, value) in indices.iter().zip(values) {
            let slot = slot(&mut element, key, index)?;
            if slot.is_some() {
                return Err(invalid!(
                    "The tensor for index '{index}' for key '{key}' was already initialized '{}'.",
                    self.tensors
                ));
            }
            *slot = Some(value);
        }
        if element.iter().all(Option::is_some) {
            self.incomplete.remove(&key);
            self.complete.entry(key).or_insert(element);
        } else {
            self.incomplete.insert(key, element);
        }
        Ok(())
    }

    fn pop(&mut self, key: i64, indices: &[i32]) -> Result<Vec<Tensor>> {
        let Some(element) = self.complete.get_mut(&key) else { return Ok(Vec::new()) };
        let tensors = take_tensors(element, key, indices, false)?;
        if element.iter().all(Option::is_none) {
            self.complete.remove(&key);
        }
        self.held -= bytes_of(&tensors).min(self.held);
        Ok(tensors)
    }
}

fn slot(element: &mut Element, key: i64, index: i32) -> Result<&mut Option<Tensor>> {
    let size = element.len();
    let slot = usize::try_from(index).ok().and_then(|place| element.get_mut(place));
    slot.ok_or_else(|| invalid!("Index '{index}' for key '{key}' was out of bounds '{size}'."))
}

/// The tensors of an element at these positions; with `keep` they are not removed.
fn take_tensors(element: &mut Element, key: i64, indices: &[i32], keep: bool) -> Result<Vec<Tensor>> {
    let mut tensors = Vec::with_capacity(indices.len());
    for &index in indices {
        let slot = slot(element, key, index)?;
        let tensor = if keep { slot.clone() } else { slot.take() };
        let gone = || invalid!("Tensor at index '{index}' for key '{key}' has already been removed.");
        tensors.push(tensor.ok_or_else(gone)?);
    }
    Ok(tensors)
}

fn map(setup: &Setup<'_>, request: impl Fn(&mut Inputs) -> Result<Request> + Send + Sync + 'static) -> Result<Kernel> {
    match setup.def().op.starts_with("Ordered") {
        true => area::<true>(setup, request),
        false => area::<false>(setup, request),
    }
}

fn area<const ORDERED: bool>(
    setup: &Setup<'_>,
    request: impl Fn(&mut Inputs) -> Result<Request> + Send + Sync + 'static,
) -> Result<Kernel> {
    let (limits, tensors) = (Limits::of(setup)?, setup.types("dtypes")?.len());
    let make =
        move || Map::<ORDERED> { limits, tensors, held: 0, complete: BTreeMap::new(), incomplete: BTreeMap::new() };
    request_kernel(setup, make, request)
}

fn key(inputs: &mut Inputs) -> Result<i64> {
    let key = inputs.tensor(0)?;
    match key.shape().rank() {
        0 => key.to_scalar(),
        _ => Err(invalid!("key must be an int64 scalar: {}", key.shape())),
    }
}

/// Places of tensors in an element, strictly rising.
fn indices(inputs: &mut Inputs, input: usize) -> Result<Vec<i32>> {
    let indices = inputs.tensor(input)?.values::<i32>()?.to_vec();
    if indices.is_empty() {
        return Err(invalid!("Indices are empty"));
    }
    match indices.windows(2).all(|pair| pair[0] < pair[1]) {
        true => Ok(indices),
        false => Err(invalid!("Indices are not strictly ordered")),
    }
}

fn stage_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    map(setup, |inputs| {
        let key = inputs.tensor(0)?;
        if key.elements() == 0 {
            return Err(invalid!("key must not be empty"));
        }
        if key.elements() != 1 {
            return Err(invalid!("key must be an int64 scalar, got tensor with shape: {}", key.shape()));
        }
        let (indices, values) = (indices(inputs, 1)?, inputs.tensors_from(2)?);
        if indices.len() > values.len() {
            return Err(invalid!("{} indices come with {} values", indices.len(), values.len()));
        }
        Ok(Request::Put { key: key.to_scalar()?, indices, values })
    })
}

/// Reads the indices of the requested tensors; an error unless there are as many as outputs for them.
fn indices_of(setup: &Setup<'_>, input: usize, outputs: usize) -> impl Fn(&mut Inputs) -> Result<Vec<i32>> + use<> {
    let outputs = setup.output_types().len() - outputs;
    move |inputs| {
        let indices = indices(inputs, input)?;
        match indices.len() == outputs {
            true => Ok(indices),
            false => Err(invalid!("output/indices size mismatch: {outputs} vs. {}", indices.len())),
        }
    }
}

fn peek_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let indices = indices_of(setup, 1, 0);
    map(setup, move |inputs| Ok(Request::Peek { key: key(inputs)?, indices: indices(inputs)? }))
}

fn unstage_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let indices = indices_of(setup, 1, 0);
    map(setup, move |inputs| Ok(Request::Pop { key: key(inputs)?, indices: indices(inputs)? }))
}

fn unstage_any_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let indices = indices_of(setup, 0, 1);
    map(setup, move |inputs| Ok(Request::PopAny { indices: indices(inputs)? }))
}

fn size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    map(setup, |_| Ok(Request::Size))
}

fn incomplete_size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    map(setup, |_| Ok(Request::IncompleteSize))
}

fn clear_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    map(setup, |_| Ok(Request::Clear))
}
