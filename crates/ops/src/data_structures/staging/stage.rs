//! Staging areas that return elements in the order in which they were added.

use super::{Limits, Shelf, bytes_of, request_kernel};
use op::shapes::{none, scalar, unknown};
use op::{Kernel, Op, Setup};
use status::{Result, invalid};
use std::collections::VecDeque;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = rows! {
    "Stage(values: [dtypes]); capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; \
     container: string = \"\"; shared_name: string = \"\"; stateful", none, stage_kernel;
    "Unstage() -> values: [dtypes]; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type) >= 1; \
     container: string = \"\"; shared_name: string = \"\"; stateful", unknown, unstage_kernel;
    "StagePeek(index: int32) -> values: [dtypes]; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; \
     dtypes: list(type) >= 1; container: string = \"\"; shared_name: string = \"\"; stateful", unknown, peek_kernel;
    "StageSize() -> size: int32; capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); \
     container: string = \"\"; shared_name: string = \"\"; stateful", scalar, size_kernel;
    "StageClear(); capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; dtypes: list(type); container: string = \"\"; \
     shared_name: string = \"\"; stateful", none, clear_kernel;
};

/// Elements in the order in which they were added.
struct Buffer {
    limits: Limits,
    held: usize,
    elements: VecDeque<Vec<Tensor>>,
}

enum Request {
    Put(Vec<Tensor>),
    /// The first element, which must have this many tensors.
    Get(usize),
    Peek {
        index: i32,
        tensors: usize,
    },
    Size,
    Clear,
}

impl Shelf for Buffer {
    type Request = Request;

    fn serve(&mut self, request: &mut Request) -> Option<Result<Vec<Tensor>>> {
        match request {
            Request::Put(element) => {
                let bytes = bytes_of(&*element);
                match self.limits.is_full(self.elements.len(), self.held, bytes) {
                    Err(error) => return Some(Err(error)),
                    Ok(true) => return None,
                    Ok(false) => {}
                }
                self.held += bytes;
                self.elements.push_back(std::mem::take(element));
                Some(Ok(Vec::new()))
            }
            Request::Get(tensors) => {
                let element = self.elements.pop_front()?;
                self.held -= bytes_of(&element).min(self.held);
                Some(of_length(element, *tensors))
            }
            Request::Peek { index, tensors } => {
                let element = self.elements.get(usize::try_from(*index).ok()?)?;
                Some(of_length(element.clone(), *tensors))
            }
            Request::Size => Some(Ok(vec![Tensor::scalar(self.elements.len() as i32)])),
            Request::Clear => {
                self.elements.clear();
                self.held = 0;
                Some(Ok(Vec::new()))
            }
        }
    }
}

fn of_length(element: Vec<Tensor>, tensors: usize) -> Result<Vec<Tensor>> {
    match element.len() == tensors {
        true => Ok(element),
        false => Err(invalid!("Mismatch stage/unstage: {} vs. {tensors}", element.len())),
    }
}

fn buffer(
    setup: &Setup<'_>,
    request: impl Fn(&mut op::Inputs) -> Result<Request> + Send + Sync + 'static,
) -> Result<Kernel> {
    let limits = Limits::of(setup)?;
    request_kernel(setup, move || Buffer { limits, held: 0, elements: VecDeque::new() }, request)
}

fn stage_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    buffer(setup, |inputs| Ok(Request::Put(inputs.tensors_from(0)?)))
}

fn unstage_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let tensors = setup.output_types().len();
    buffer(setup, move |_| Ok(Request::Get(tensors)))
}

fn peek_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let tensors = setup.output_types().len();
    buffer(setup, move |inputs| {
        let index = inputs.tensor(0)?;
        if index.shape().rank() != 0 {
            return Err(invalid!("index must be scalar"));
        }
        Ok(Request::Peek { index: index.to_scalar()?, tensors })
    })
}

fn size_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    buffer(setup, |_| Ok(Request::Size))
}

fn clear_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    buffer(setup, |_| Ok(Request::Clear))
}
