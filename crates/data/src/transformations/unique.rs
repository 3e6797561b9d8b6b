//! UniqueDataset: the elements without repetitions.

use super::saved::{read_input, read_list, write_input};
use crate::attrs::{DATASET, dataset_kernel, input_dataset};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
    full_name,
};
use op::shapes;
use op::{Grad, Kernel, Op, Setup};
use rustc_hash::FxHashSet;
use status::{Result, invalid};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::task::{Poll, ready};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "UniqueDataset(input_dataset: variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1; metadata: string = \"\"",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalUniqueDataset(input_dataset: variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let input = input_dataset(inputs, 0)?;
        match input.spec().types[..] {
            [DType::I32 | DType::I64 | DType::STRING] => Ok(Unique { input }),
            [_] => Err(invalid!(
                "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` component."
            )),
            _ => Err(invalid!("UniqueDataset only supports inputs with a single component.")),
        }
    })
}

struct Unique {
    input: DatasetRef,
}

impl Dataset for Unique {
    fn kind(&self) -> &'static str {
        "Unique"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let input = place.input(&self.input)?;
        Ok(Box::new(UniqueIterator { input, seen: FxHashSet::default(), prefix: place.prefix.clone() }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

/// A tensor that is compared by its values. It has strings or plain elements.
struct Value(Tensor);

impl Value {
    fn of(element: &[Tensor]) -> Result<Value> {
        match element {
            [tensor] if tensor.strings().is_ok() || tensor.buffer().is_some() => Ok(Value(tensor.clone())),
            _ => Err(invalid!("UniqueDataset only supports inputs with a single component.")),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.0.buffer().map_or(&[], |buffer| buffer.bytes())
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        let (one, other_tensor) = (&self.0, &other.0);
        one.dtype() == other_tensor.dtype()
            && one.shape() == other_tensor.shape()
            && one.strings().ok() == other_tensor.strings().ok()
            && self.bytes() == other.bytes()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.shape().dims().hash(state);
        self.bytes().hash(state);
        for string in self.0.strings().unwrap_or_default() {
            state.write(string);
        }
    }
}

struct UniqueIterator {
    input: Input,
    seen: FxHashSet<Value>,
    prefix: Arc<str>,
}

impl Iterate for UniqueIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        loop {
            let Some(element) = ready!(self.input.poll_next(ctx))? else { return Poll::Ready(Ok(None)) };
            if self.seen.insert(Value::of(&element)?) {
                return Poll::Ready(Ok(Some(element)));
            }
        }
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        let prefix = &*self.prefix;
        write_input(writer, prefix, &self.input)?;
        writer.int(prefix, &full_name(prefix, "unique_elements_size"), self.seen.len() as i64);
        for (index, value) in self.seen.iter().enumerate() {
            writer.tensor(prefix, &full_name(prefix, &format!("unique_elements[{index}]")), value.0.clone());
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        read_input(reader, &self.prefix, &mut self.input)?;
        let count = reader.count(&self.prefix, "unique_elements_size")?;
        for value in read_list(reader, &self.prefix, "unique_elements", count)? {
            if !self.seen.insert(Value::of(&[value])?) {
                return Err(invalid!("Checkpoint contained two unique elements with the same value."));
            }
        }
        Ok(())
    }
}
