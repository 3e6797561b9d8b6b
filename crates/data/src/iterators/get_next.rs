//! IteratorGetNext and IteratorGetNextAsOptional: take the next element of an iterator.

use super::IteratorResource;
use crate::attrs::spec;
use crate::{Element, Spec};
use graph::ShapeQuery;
use op::shapes;
use op::{
    CancelToken, Ctx, Done, Grad, Home, Kernel, OnceCallback, Op, Outputs, PLAIN, Setup, Value, handle_of, later,
    outputs,
};
use ops::data_structures::optional_tensor;
use parking_lot::Mutex;
use status::{Result, invalid, out_of_range};
use std::sync::Arc;
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "IteratorGetNext(iterator: resource) -> components: [output_types]; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: element_shapes,
        grad: Grad::Stop,
        kernel: |setup| next_kernel(setup, components),
        facts: PLAIN,
    },
    Op {
        def: "IteratorGetNextSync(iterator: resource) -> components: [output_types]; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: element_shapes,
        grad: Grad::Stop,
        kernel: |setup| next_kernel(setup, components),
        facts: PLAIN,
    },
    Op {
        def: "IteratorGetNextAsOptional(iterator: resource) -> optional: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| next_kernel(setup, optional),
        facts: PLAIN,
    },
];

/// The shapes in the attribute `output_shapes`.
pub(crate) fn element_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let graph::AttrValue::List(list) = query.attr("output_shapes")? else { return shapes::unknown(query) };
    if list.shapes.len() != query.outputs {
        return Err(invalid!(
            "`output_shapes` must be the same length as `output_types` ({} vs. {})",
            list.shapes.len(),
            query.outputs
        ));
    }
    Ok(list.shapes.clone())
}

fn next_kernel(setup: &Setup<'_>, convert: fn(Option<Element>, &Spec) -> Result<Outputs>) -> Result<Kernel> {
    let (home, spec) = (Home::of(setup), Arc::new(spec(setup)?));
    Ok(later(move |ctx, inputs, done| {
        let running = inputs.look(0).and_then(handle_of).and_then(|handle| {
            home.find::<IteratorResource>(handle)?.running("GetNext() failed", "getting the next element")
        });
        let spec = spec.clone();
        match running {
            Err(error) => done(Err(error)),
            Ok(running) => cancellable(ctx, done, |done| {
                running.next(Box::new(move |next| done(next.and_then(|next| convert(next, &spec)))))
            }),
        }
    }))
}

/// Starts a request, and withdraws it if the step is cancelled before the answer.
pub(crate) fn cancellable(ctx: &Ctx<'_>, done: Done, start: impl FnOnce(Done) -> OnceCallback) {
    enum Request {
        Waiting,
        Registered(CancelToken),
        Answered,
    }
    let env = ctx.env.clone();
    let request = Arc::new(Mutex::new(Request::Waiting));
    let (held, cancel) = (request.clone(), env.cancel.clone());
    let withdraw = start(Box::new(move |result| {
        if let Request::Registered(token) = std::mem::replace(&mut *held.lock(), Request::Answered) {
            cancel.deregister(token);
        }
        let result = result.map_err(|error| cancel.reason().unwrap_or(error));
        done(result);
    }));
    let on_cancel = withdraw.clone();
    match env.cancel.register(move |_| on_cancel.run()) {
        Ok(token) => {
            let mut request = request.lock();
            match *request {
                // The answer came before the registration.
                Request::Answered => {
                    env.cancel.deregister(token);
                }
                _ => *request = Request::Registered(token),
            }
        }
        Err(_) => withdraw.run(),
    }
}

fn components(next: Option<Element>, spec: &Spec) -> Result<Outputs> {
    let element = next.ok_or_else(|| out_of_range!("End of sequence"))?;
    spec.check_element(&element)?;
    Ok(element.into_iter().map(Value::Tensor).collect())
}

fn optional(next: Option<Element>, spec: &Spec) -> Result<Outputs> {
    if let Some(element) = &next {
        spec.check_optional(element)?;
    }
    Ok(outputs![optional_tensor(next.map(|element| element.to_vec()))?])
}
