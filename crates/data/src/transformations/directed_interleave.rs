//! DirectedInterleaveDataset: the elements of several datasets, in the order that another one tells.

use super::concatenate::common_shape;
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader,
    StateWriter, full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::{DType, PartialShape};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DirectedInterleaveDataset(selector_input_dataset: variant, data_input_datasets: N * variant) -> \
              handle: variant; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1; \
              stop_on_empty_dataset: bool = false",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalDirectedInterleaveDataset(selector_input_dataset: variant, \
              data_input_datasets: N * variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; N: int >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let stops = setup.find("stop_on_empty_dataset").is_some() && setup.bool("stop_on_empty_dataset")?;
    dataset_kernel(setup, move |_, inputs| {
        let selector = input_dataset(inputs, 0)?;
        if !selects(selector.spec()) {
            return Err(invalid!("The selector input must be a dataset of scalar int64 elements."));
        }
        let parts = (1..inputs.len()).map(|index| input_dataset(inputs, index)).collect::<Result<Vec<_>>>()?;
        let spec = merged_spec(&parts)?;
        let endless = parts.iter().any(|part| part.cardinality() == Cardinality::Infinite);
        let cardinality = if endless { Cardinality::Infinite } else { Cardinality::Unknown };
        Ok(DirectedInterleave { selector, parts, stops, spec, cardinality })
    })
}

fn selects(spec: &Spec) -> bool {
    spec.types == [DType::I64] && spec.shapes.iter().all(|shape| shape.compatible(&PartialShape::scalar()))
}

fn merged_spec(parts: &[DatasetRef]) -> Result<Spec> {
    let Some((first, others)) = parts.split_first() else { return Err(invalid!("There must be a data input")) };
    let mut spec = first.spec().clone();
    for (index, other) in others.iter().enumerate() {
        if other.spec().types != spec.types {
            return Err(invalid!(
                "All inputs must have the same output_dtypes. First input has types {}, and input {} has types {}",
                type_names(&spec.types),
                index + 1,
                type_names(&other.spec().types)
            ));
        }
        let shapes = spec.shapes.iter().zip(&other.spec().shapes);
        spec.shapes = shapes.map(|(one, other)| common_shape(one, other)).collect();
    }
    Ok(spec)
}

/// Types as errors list them.
pub(crate) fn type_names(types: &[DType]) -> String {
    types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

struct DirectedInterleave {
    selector: DatasetRef,
    parts: Vec<DatasetRef>,
    /// Ends when a selected input has ended.
    stops: bool,
    spec: Spec,
    cardinality: Cardinality,
}

impl Dataset for DirectedInterleave {
    fn kind(&self) -> &'static str {
        "DirectedInterleave"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        std::iter::once(&self.selector).chain(&self.parts).cloned().collect()
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let parts = self.parts.iter().enumerate().map(|(index, part)| place.input_at(part, index));
        Ok(Box::new(DirectedInterleaveIterator {
            selector: place.input(&self.selector)?,
            parts: parts.collect::<Result<Vec<_>>>()?,
            selected: None,
            stops: self.stops,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.cardinality
    }
}

struct DirectedInterleaveIterator {
    selector: Input,
    parts: Vec<Input>,
    /// The input from which the next element comes, when it is known.
    selected: Option<usize>,
    stops: bool,
    prefix: Arc<str>,
}

impl DirectedInterleaveIterator {
    fn poll_selected(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<Option<usize>>> {
        if self.selected.is_none() {
            let Some(element) = ready!(self.selector.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            self.selected = Some(self.index(&element)?);
        }
        Poll::Ready(Ok(self.selected))
    }

    fn index(&self, element: &Element) -> Result<usize> {
        let count = self.parts.len();
        let index = super::group_by_window::number(element)
            .ok_or_else(|| invalid!("The selector input must be a dataset of scalar int64 elements."))?;
        let found = usize::try_from(index).ok().filter(|&index| index < count);
        found.ok_or_else(|| invalid!("Selector index out of range: {index} >= {count}"))
    }

    fn end(&mut self) {
        self.selector.end();
        self.parts.iter_mut().for_each(Input::end);
    }
}

impl Iterate for DirectedInterleaveIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        while !self.selector.has_ended() {
            let Some(index) = ready!(self.poll_selected(ctx))? else { break };
            let was_open = !self.parts[index].has_ended();
            let next = ready!(self.parts[index].poll_next(ctx));
            self.selected = None;
            if !matches!(next, Ok(None)) {
                return Poll::Ready(next);
            }
            if was_open && self.stops || self.parts.iter().all(Input::has_ended) {
                break;
            }
        }
        self.end();
        Poll::Ready(Ok(None))
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.selector.as_list().into_iter().chain(self.parts.iter_mut().flat_map(Input::as_list)).collect()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        self.selector.save(writer, prefix, &full_name(prefix, "selector_input_impl_empty"))?;
        for (index, part) in self.parts.iter().enumerate() {
            part.save(writer, prefix, &full_name(prefix, &format!("data_input_impl_empty[{index}]")))?;
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.selector.restore(reader, &self.prefix, "selector_input_impl_empty")?;
        for (index, part) in self.parts.iter_mut().enumerate() {
            part.restore(reader, &self.prefix, &format!("data_input_impl_empty[{index}]"))?;
        }
        Ok(())
    }
}
