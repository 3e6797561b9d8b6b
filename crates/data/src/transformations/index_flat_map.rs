//! IndexFlatMapDataset: the parts of the results of a function, found by their index.

use super::rows::row;
use super::saved::{read_list, write_list};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar, spec};
use crate::function::{Call, Function, FunctionRun};
use crate::iterate::{IndexMapper, next_mapped};
use crate::{
    Cardinality, Dataset, DatasetRef, Element, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use smallvec::smallvec;
use status::{Result, failed_precondition, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "IndexFlatMapDataset(input_dataset: variant, map_func_other_args: [Tmap_func_args], \
          index_map_func_other_args: [Tindex_map_func_args], output_cardinality: int64) -> handle: variant; \
          map_func: func; index_map_func: func; Tmap_func_args: list(type) >= 0; \
          Tindex_map_func_args: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
          metadata: string = \"\"",
    shape: shapes::scalar,
    grad: Grad::Stop,
    kernel,
    facts: DATASET,
}];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    let (map, index_map) = (Function::of(setup, "map_func")?, Function::of(setup, "index_map_func")?);
    let (maps, index_maps) = (setup.types("Tmap_func_args")?.len(), setup.types("Tindex_map_func_args")?.len());
    dataset_kernel(setup, move |_, inputs| {
        let cardinality: i64 = scalar(inputs, 1 + maps + index_maps, "output_cardinality")?;
        Ok(IndexFlatMap {
            input: input_dataset(inputs, 0)?,
            map: map.capture(inputs.tensors(1, maps)?),
            index_map: index_map.capture(inputs.tensors(1 + maps, index_maps)?),
            cardinality: from_number(cardinality),
            spec: spec.clone(),
        })
    })
}

fn from_number(number: i64) -> Cardinality {
    match u64::try_from(number) {
        Ok(count) => Cardinality::Finite(count),
        Err(_) if number == Cardinality::Infinite.number() => Cardinality::Infinite,
        Err(_) => Cardinality::Unknown,
    }
}

struct IndexFlatMap {
    input: DatasetRef,
    map: Function,
    /// The position of the element of the input, and that of the part in it, for each position.
    index_map: Function,
    cardinality: Cardinality,
    spec: Spec,
}

impl Dataset for IndexFlatMap {
    fn kind(&self) -> &'static str {
        "IndexFlatMap"
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        Ok(Box::new(IndexFlatMapIterator {
            input: place.input(&self.input)?,
            map: self.map.in_pipeline(&place.pipeline)?,
            index_map: self.index_map.in_pipeline(&place.pipeline)?,
            step: Step::Begin,
            returned: 0,
            current: 0,
            parts: Element::new(),
            dataset: self,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.cardinality
    }

    fn check_random_indexing(&self, _: Vec<Result<()>>) -> Result<()> {
        Ok(())
    }
}

struct IndexFlatMapIterator {
    input: Input,
    map: FunctionRun,
    index_map: FunctionRun,
    step: Step,
    /// The number of positions that were passed.
    returned: usize,
    /// The position of the element of the input whose parts are held.
    current: usize,
    parts: Element,
    dataset: Arc<IndexFlatMap>,
    prefix: Arc<str>,
}

/// What happens for the next element.
#[derive(Default)]
enum Step {
    #[default]
    Begin,
    Index(Call),
    Read(Spot),
    Map(Spot, Call),
}

/// The position of an element of the input, and of a part in it.
#[derive(Clone, Copy)]
struct Spot {
    element: usize,
    part: usize,
}

impl IndexFlatMapIterator {
    /// The position of the next element; none at the end.
    fn position(&mut self, map: Option<&IndexMapper>) -> Result<Option<usize>> {
        let Some(map) = map else { return Ok(Some(self.returned)) };
        if !matches!(self.dataset.cardinality, Cardinality::Finite(_)) {
            return Err(failed_precondition!(
                "Global shuffling requires finite cardinality. Got cardinality {} for dataset \
                 IndexFlatMapDatasetOp::Dataset.",
                self.dataset.cardinality.number()
            ));
        }
        next_mapped(map, &mut self.returned)
    }

    /// The next element of the input; in a global shuffle, the one at the position.
    fn poll_input(&mut self, ctx: &mut PollContext<'_>, element: usize) -> Next {
        if ctx.index_mapper.is_none() {
            return self.input.poll_next(ctx);
        }
        let mapper: IndexMapper = Arc::new(move |_| Ok(element));
        let mut inner = PollContext { index_mapper: Some(mapper), ..PollContext::new(ctx.pipeline, ctx.waker) };
        self.input.poll_next(&mut inner)
    }

    /// Does the next step of the way to an element, which is returned at the end of the way.
    fn poll_step(&mut self, ctx: &mut PollContext<'_>) -> Poll<Result<Option<Option<Element>>>> {
        let mapped = ctx.index_mapper.is_some();
        match &mut self.step {
            Step::Begin => {
                let Some(position) = self.position(ctx.index_mapper.as_ref())? else {
                    return Poll::Ready(Ok(Some(None)));
                };
                self.step = Step::Index(self.index_map.call(smallvec![Tensor::scalar(position as i64)]));
            }
            Step::Index(call) => {
                let result = ready!(call.poll(ctx));
                self.step = Step::Begin;
                let place = place(&result?)?;
                if !mapped && place.element <= self.current && !self.parts.is_empty() {
                    self.returned += 1;
                    return Poll::Ready(part(&self.parts, place.part).map(|part| Some(Some(part))));
                }
                self.step = Step::Read(place);
            }
            &mut Step::Read(place) => {
                self.parts.clear();
                let element = ready!(self.poll_input(ctx, place.element));
                self.step = Step::Begin;
                let Some(element) = element? else { return Poll::Ready(Ok(Some(None))) };
                self.step = Step::Map(place, self.map.call(element));
            }
            Step::Map(place, call) => {
                let (place, result) = (*place, ready!(call.poll(ctx)));
                self.step = Step::Begin;
                self.parts = result?;
                self.current = place.element;
                self.returned += usize::from(!mapped);
                return Poll::Ready(part(&self.parts, place.part).map(|part| Some(Some(part))));
            }
        }
        Poll::Ready(Ok(None))
    }
}

fn place(result: &Element) -> Result<Spot> {
    match result.as_slice() {
        [element, part] => Ok(Spot { element: index(element)?, part: index(part)? }),
        _ => Err(invalid!(
            "The `index_map_fn` for `index_flat_map` is expected to return two int values representing the element \
             index and an offset within the element. Got: {result:?}"
        )),
    }
}

fn index(tensor: &Tensor) -> Result<usize> {
    let number = tensor
        .to_scalar::<i64>()
        .or_else(|_| tensor.to_scalar::<i32>().map(i64::from))
        .or_else(|_| tensor.to_scalar::<u32>().map(i64::from))
        .or_else(|_| tensor.to_scalar::<u64>().map(|number| number as i64));
    number.ok().and_then(|number| usize::try_from(number).ok()).ok_or_else(|| {
        invalid!(
            "The `index_map_func` for `index_flat_map` is expected to return two int32/int64 values representing the \
             element index and an offset within the element. Got: {tensor:?}"
        )
    })
}

/// One part of the results of the function: one of several components, or a row of the only one.
fn part(parts: &Element, index: usize) -> Result<Element> {
    let wrong = |count: usize| {
        invalid!(
            "`index_flat_map` got invalid `index_map_func` which returns offset {index}, but the input element has \
             {count} elements: {parts:?}"
        )
    };
    match parts.as_slice() {
        [scalar] if scalar.shape().rank() == 0 => Ok(smallvec![scalar.clone()]),
        [rows] if index < rows.shape().dims()[0] => Ok(smallvec![row(rows, index)?]),
        [rows] => Err(wrong(rows.shape().dims()[0])),
        components => components.get(index).map(|part| smallvec![part.clone()]).ok_or_else(|| wrong(components.len())),
    }
}

impl Iterate for IndexFlatMapIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            if let Some(next) = ready!(self.poll_step(ctx))? {
                return Poll::Ready(Ok(next));
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        writer.int(prefix, "element_count", self.returned as i64);
        writer.int(prefix, "input_element_count", self.current as i64);
        writer.int(prefix, "input_unflattened_tensors_size", self.parts.len() as i64);
        write_list(writer, prefix, "input_unflattened_tensors", &self.parts);
        super::saved::write_input(writer, prefix, &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        let prefix = self.prefix.clone();
        self.returned = reader.count(&prefix, "element_count")?;
        self.current = reader.count(&prefix, "input_element_count")?;
        let count = reader.count(&prefix, "input_unflattened_tensors_size")?;
        self.parts = read_list(reader, &prefix, "input_unflattened_tensors", count)?;
        super::saved::read_input(reader, &prefix, &mut self.input)
    }
}
