//! AssertCardinalityDataset: an error if the input has another number of elements.

use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::dataset::only;
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, PendingElement, Pipeline, Place, PollContext,
    Spec, StateReader, StateWriter, full_name,
};
use graph::ShapeQuery;
use op::{Grad, Kernel, Op, Setup};
use status::{Code, Error, Result, failed_precondition, invalid, out_of_range};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[Op {
    def: "AssertCardinalityDataset(input_dataset: variant, cardinality: int64) -> handle: variant; \
          output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
    shape: scalar_of_scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

/// The shape of a dataset whose second input is a scalar.
pub(super) fn scalar_of_scalar(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    with_rank(query, 0)?;
    Ok(vec![PartialShape::of_rank(0)])
}

/// An error if the second input of a node has another rank.
pub(super) fn with_rank(query: &ShapeQuery<'_>, rank: usize) -> Result<()> {
    match query.inputs[1].rank() {
        Some(found) if found != rank => Err(invalid!("Shape must be rank {rank} but is rank {found}")),
        _ => Ok(()),
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        Ok(AssertCardinality { input, expected: scalar(inputs, 1, "cardinality")?, spec: spec.clone() })
    })
}

#[derive(Clone)]
struct AssertCardinality {
    input: DatasetRef,
    expected: i64,
    spec: Spec,
}

/// The number that means an infinite dataset.
const INFINITE: i64 = -1;

fn elements(count: i64) -> String {
    match count {
        INFINITE => "an infinite number of elements".to_string(),
        1 => "1 element".to_string(),
        count => format!("{count} elements"),
    }
}

impl Dataset for AssertCardinality {
    fn kind(&self) -> &'static str {
        "AssertCardinality"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn with_inputs(&self, inputs: Vec<DatasetRef>) -> Option<DatasetRef> {
        only(inputs).map(|input| -> DatasetRef { Arc::new(AssertCardinality { input, ..self.clone() }) })
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(AssertCardinalityIterator {
            input: place.input(&self.input)?,
            expected: self.expected,
            count: 0,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        match self.expected {
            INFINITE => Cardinality::Infinite,
            count => u64::try_from(count).map_or(Cardinality::Unknown, Cardinality::Finite),
        }
    }

    fn check_random_indexing(&self, inputs: Vec<Result<()>>) -> Result<()> {
        inputs.into_iter().collect()
    }

    fn element_at(&self, pipeline: &Arc<Pipeline>, index: usize) -> Result<PendingElement> {
        let expected = self.expected;
        if expected != INFINITE && index as i128 >= i128::from(expected) {
            return Err(out_of_range!("Index {index} greater than dataset size {expected}"));
        }
        let missing = move |error: Error| match error.code {
            Code::OutOfRange => failed_precondition!(
                "Input dataset was expected to contain {} but index {index} could not be retrieved: {}",
                elements(expected),
                error.message
            ),
            _ => error,
        };
        let mut element = self.input.element_at(pipeline, index).map_err(missing)?;
        Ok(Box::new(move |ctx| element(ctx).map_err(missing)))
    }
}

struct AssertCardinalityIterator {
    input: Input,
    expected: i64,
    count: i64,
    prefix: Arc<str>,
}

impl AssertCardinalityIterator {
    fn checked(&mut self, next: Option<Element>, is_shuffled: bool) -> Result<Option<Element>> {
        let expected = elements(self.expected);
        let Some(element) = next else {
            return match self.count == self.expected {
                true => Ok(None),
                false if is_shuffled => Err(failed_precondition!("Input dataset was expected to contain {expected}.")),
                false => Err(failed_precondition!(
                    "Input dataset was expected to contain {expected} but contained only {}.",
                    elements(self.count)
                )),
            };
        };
        self.count += 1;
        if self.expected != INFINITE && self.count > self.expected {
            return Err(failed_precondition!(
                "Input dataset was expected to contain {expected} but contained at least {}.",
                elements(self.count)
            ));
        }
        Ok(Some(element))
    }
}

impl Iterate for AssertCardinalityIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        let next = ready!(self.input.poll_kept(ctx));
        Poll::Ready(next.and_then(|next| self.checked(next, ctx.index_mapper.is_some())))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        writer.int(&self.prefix, &full_name(&self.prefix, "num_elements"), self.count);
        self.input.save_present(writer)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.count = reader.int(&self.prefix, "num_elements")?;
        self.input.restore_present(reader)
    }
}
