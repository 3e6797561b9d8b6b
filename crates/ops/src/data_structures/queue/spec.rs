//! The declared properties of a queue: its order, its capacity, the types and shapes of its elements.

use super::items::{Element, Heap, Items};
use super::padding::padded;
use crate::data_structures::arithmetic::{joined, row};
use crate::data_structures::named::listed;
use crate::random::stream::entropy;
use math::philox::Philox;
use op::Setup;
use status::{Result, invalid};
use std::collections::VecDeque;
use tensor::{DType, PartialShape, Shape, Tensor};

/// The declared properties of a queue. Without shapes, elements may have any shapes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub order: Order,
    pub name: String,
    pub capacity: usize,
    pub types: Vec<DType>,
    shapes: Vec<PartialShape>,
}

/// The order in which elements leave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// First in, first out.
    Fifo,
    /// First in, first out; the elements of one batch are padded to the same size.
    Padded,
    /// In random order, while more than `kept` elements are in the queue.
    Shuffled { kept: usize, seeds: (i64, i64) },
    /// By the number in the first component.
    Sorted,
}

impl Spec {
    /// Reads the attributes of a queue's node.
    pub fn of(setup: &Setup<'_>) -> Result<Spec> {
        let capacity = usize::try_from(setup.int("capacity")?).unwrap_or(i32::MAX as usize);
        let order = Order::of(setup, capacity)?;
        let (mut types, mut shapes) = (setup.types("component_types")?, setup.list("shapes")?.shapes.clone());
        match order {
            Order::Padded => check_ranks(&shapes)?,
            _ => shapes = known_shapes(&shapes)?,
        }
        if order == Order::Sorted {
            types.insert(0, DType::I64);
            if !shapes.is_empty() {
                shapes.insert(0, PartialShape::scalar());
            }
        }
        Ok(Spec { order, name: String::new(), capacity, types, shapes })
    }

    /// An unbounded queue whose elements have a priority before these components.
    pub fn sorted(types: &[DType], shapes: &[PartialShape]) -> Spec {
        let types = [&[DType::I64], types].concat();
        let shapes = [&[PartialShape::scalar()], shapes].concat();
        Spec { order: Order::Sorted, name: String::new(), capacity: i32::MAX as usize, types, shapes }
    }

    /// The same, for the queue of this name; an error if no queue can be like that.
    pub fn named(&self, name: &str) -> Result<Spec> {
        if !self.shapes.is_empty() && self.types.len() != self.shapes.len() {
            return Err(invalid!(
                "Different number of component types.  Types: {}, Shapes: {}",
                listed(&self.types),
                self.shape_list()
            ));
        }
        if self.order == Order::Padded && self.shapes.is_empty() {
            return Err(invalid!(
                "Shapes must be provided for all components, but received {} dtypes and 0 shapes.",
                self.types.len()
            ));
        }
        Ok(Spec { name: name.to_string(), ..self.clone() })
    }

    /// TensorFlow's name of such a queue.
    pub fn kind(&self) -> &'static str {
        match self.order {
            Order::Fifo => "FIFOQueue",
            Order::Padded => "PaddingFIFOQueue",
            Order::Shuffled { .. } => "RandomShuffleQueue",
            Order::Sorted => "PriorityQueue",
        }
    }

    /// An empty queue's elements.
    pub fn items(&self) -> Items {
        match self.order {
            Order::Fifo | Order::Padded => Items::Fifo(VecDeque::new()),
            Order::Shuffled { seeds: (0, 0), .. } => Items::shuffled(Philox::from_seeds(entropy(), entropy())),
            Order::Shuffled { seeds: (seed, seed2), .. } => {
                Items::shuffled(Philox::from_seeds(seed as u64, seed2 as u64))
            }
            Order::Sorted => Items::Sorted(Heap::default()),
        }
    }

    /// The number of elements that must remain in an open queue.
    pub fn min_after_dequeue(&self) -> usize {
        match self.order {
            Order::Shuffled { kept, .. } => kept,
            _ => 0,
        }
    }

    /// An error if a node of op `op` that declares the queue `wanted` cannot share this queue, which exists already.
    pub fn accepts(&self, op: &str, wanted: &Spec) -> Result<()> {
        let name = &self.name;
        if self.kind() != wanted.kind() {
            return Err(invalid!("Expected {}, found {op}", self.kind()));
        }
        if self.capacity != wanted.capacity {
            let (found, capacity) = (self.capacity, wanted.capacity);
            return Err(invalid!("Shared queue '{name}' has capacity {found} but requested capacity was {capacity}"));
        }
        self.accepts_order(&wanted.order)?;
        if self.types != wanted.types {
            return Err(invalid!(
                "Shared queue '{name}' has component types {} but requested component types were {}",
                listed(&self.types),
                listed(&wanted.types)
            ));
        }
        self.accepts_shapes(&wanted.shapes)
    }

    fn accepts_shapes(&self, wanted: &[PartialShape]) -> Result<()> {
        // A sorted queue always has a shape for the first component, the number it is sorted by.
        let wanted = match (&self.order, wanted) {
            (Order::Sorted, []) => vec![PartialShape::scalar()],
            _ => wanted.to_vec(),
        };
        let fits = match self.order {
            Order::Padded => {
                let mut both = self.shapes.iter().zip(&wanted);
                self.shapes.len() == wanted.len() && both.all(|(found, shape)| found.compatible(shape))
            }
            _ => self.shapes == wanted,
        };
        match fits {
            true => Ok(()),
            false => Err(invalid!(
                "Shared queue '{}' has component shapes {} but requested component shapes were {}",
                self.name,
                self.shape_list(),
                shape_list(&wanted)
            )),
        }
    }

    fn accepts_order(&self, wanted: &Order) -> Result<()> {
        let (Order::Shuffled { kept: has, seeds: (a, b) }, Order::Shuffled { kept, seeds: (seed, seed2) }) =
            (&self.order, wanted)
        else {
            return Ok(());
        };
        let name = &self.name;
        if has != kept {
            return Err(invalid!(
                "Shared queue '{name}' has min_after_dequeue {has} but requested min_after_dequeue was {kept}."
            ));
        }
        if (*seed, *seed2) != (0, 0) && (seed, seed2) != (a, b) {
            return Err(invalid!(
                "Shared queue '{name}' has random seeds ({a}, {b}) but requested seeds are ({seed}, {seed2})."
            ));
        }
        Ok(())
    }

    fn shape_list(&self) -> String {
        shape_list(&self.shapes)
    }

    /// Whether this is an element.
    pub fn check_element(&self, element: &[Tensor]) -> Result<()> {
        self.check_types(element)?;
        for (i, (tensor, shape)) in element.iter().zip(&self.shapes).enumerate() {
            if !shape.accepts(tensor.shape()) {
                return Err(mismatch(i, &shape.to_string(), tensor));
            }
        }
        Ok(())
    }

    /// Checks that the rows of these tensors are elements, and returns the number of rows.
    pub fn check_rows(&self, components: &[Tensor]) -> Result<usize> {
        self.check_types(components)?;
        let count = match components.first().map(|first| first.shape().dims()) {
            Some([count, ..]) => *count,
            _ => return Err(invalid!("Component 0 of a batch of elements has no 0th dimension")),
        };
        for (i, tensor) in components.iter().enumerate() {
            match self.shapes.get(i) {
                Some(shape) => {
                    let expected = PartialShape::new(&[&[count as i64], shape.dims().unwrap_or_default()].concat());
                    if !expected.accepts(tensor.shape()) {
                        return Err(mismatch(i, &expected.to_string(), tensor));
                    }
                }
                None if tensor.shape().first() != Some(&count) => {
                    return Err(invalid!(
                        "All input tensors must have the same size in the 0th dimension. Component {i} has {}, and \
                         should have {count}",
                        tensor.shape().first().unwrap_or(&0)
                    ));
                }
                None => {}
            }
        }
        Ok(count)
    }

    fn check_types(&self, tuple: &[Tensor]) -> Result<()> {
        if tuple.len() != self.types.len() {
            return Err(invalid!(
                "Wrong number of components in tuple. Expected {}, got {}",
                self.types.len(),
                tuple.len()
            ));
        }
        for (i, (tensor, &dtype)) in tuple.iter().zip(&self.types).enumerate() {
            if tensor.dtype() != dtype {
                return Err(invalid!("Type mismatch in tuple component {i}. Expected {dtype}, got {}", tensor.dtype()));
            }
        }
        Ok(())
    }

    /// Whether the number by which an element is sorted is one.
    pub fn check_priority(&self, element: &[Tensor]) -> Result<()> {
        match element.first() {
            Some(first) if self.order == Order::Sorted && first.shape().rank() != 0 => {
                Err(invalid!("Expected the priority element to be a scalar, but received shape: {}", first.shape()))
            }
            _ => Ok(()),
        }
    }

    /// Row `index` of every component, as an element. Where neighbours need not leave together it is a copy, so that
    /// one element does not keep a whole batch in memory.
    pub fn rows(&self, components: &[Tensor], index: usize) -> Result<Element> {
        let share = matches!(self.order, Order::Fifo | Order::Padded);
        let own = |component: &Tensor| {
            let mut row = row(component, index)?;
            if !share && row.buffer().is_some() {
                row.bytes_mut()?;
            }
            Ok(row)
        };
        components.iter().map(own).collect()
    }

    /// An error if elements cannot be batched because their shapes are not declared.
    pub fn check_batches(&self) -> Result<()> {
        match (self.shapes.is_empty(), &self.order) {
            (false, _) => Ok(()),
            (true, Order::Sorted) => {
                Err(invalid!("PriorityQueue's DequeueMany requires the components to have specified shapes."))
            }
            (true, _) => Err(invalid!(
                "{}'s DequeueMany and DequeueUpTo require the components to have specified shapes.",
                self.kind()
            )),
        }
    }

    /// Elements joined to one tensor for each component.
    pub fn batch(&self, elements: Vec<Element>) -> Result<Vec<Tensor>> {
        let count = elements.len();
        let mut columns: Vec<Vec<Tensor>> = self.types.iter().map(|_| Vec::with_capacity(count)).collect();
        for element in elements {
            columns.iter_mut().zip(element).for_each(|(column, tensor)| column.push(tensor));
        }
        let parts = self.types.iter().zip(&self.shapes).zip(&columns);
        parts.map(|((&dtype, shape), column)| join(dtype, shape, column)).collect()
    }
}

/// Stacks tensors along a new first dimension; they are padded where the declared shape leaves a dimension open.
pub(crate) fn join(dtype: DType, shape: &PartialShape, column: &[Tensor]) -> Result<Tensor> {
    let dims = shape.dims().unwrap_or_default();
    let largest = |axis: usize| column.iter().filter_map(|part| part.shape().get(axis).copied()).max().unwrap_or(0);
    let one: Vec<usize> =
        dims.iter().enumerate().map(|(axis, &dim)| usize::try_from(dim).unwrap_or_else(|_| largest(axis))).collect();
    let shape = Shape::from([&[column.len()], &one[..]].concat());
    match column.iter().all(|part| part.shape().dims() == one) {
        true => joined(dtype, shape, column),
        false => padded(dtype, shape, column),
    }
}

impl Order {
    fn of(setup: &Setup<'_>, capacity: usize) -> Result<Order> {
        match setup.def().op.trim_end_matches("V2") {
            "PaddingFIFOQueue" => Ok(Order::Padded),
            "PriorityQueue" => Ok(Order::Sorted),
            "RandomShuffleQueue" => {
                let kept = setup.int("min_after_dequeue")?;
                let seeds = (setup.int("seed")?, setup.int("seed2")?);
                match usize::try_from(kept) {
                    Err(_) => Err(invalid!("min_after_dequeue {kept} must be >= 0")),
                    Ok(kept) if kept >= capacity => {
                        Err(invalid!("min_after_dequeue {kept} must be < capacity {capacity}"))
                    }
                    Ok(kept) => Ok(Order::Shuffled { kept, seeds }),
                }
            }
            _ => Ok(Order::Fifo),
        }
    }
}

/// Shapes as they stand in messages.
pub(crate) fn shape_list(shapes: &[PartialShape]) -> String {
    let shapes: Vec<String> = shapes.iter().map(PartialShape::to_string).collect();
    format!("[{}]", shapes.join(", "))
}

fn check_ranks(shapes: &[PartialShape]) -> Result<()> {
    match shapes.iter().find(|shape| shape.rank().is_none()) {
        Some(shape) => Err(invalid!("shape {shape} must have known rank.")),
        None => Ok(()),
    }
}

/// Shapes that must be known; one without a rank counts as that of one number.
pub(crate) fn known_shapes(shapes: &[PartialShape]) -> Result<Vec<PartialShape>> {
    let known = |shape: &PartialShape| match (shape.rank(), shape.known()) {
        (None, _) => Ok(PartialShape::scalar()),
        (_, Some(known)) => known.checked_elements().map(|_| shape.clone()),
        _ => Err(invalid!("Shape {shape} is not fully defined")),
    };
    shapes.iter().map(known).collect()
}

fn mismatch(component: usize, expected: &str, tensor: &Tensor) -> status::Error {
    invalid!("Shape mismatch in tuple component {component}. Expected {expected}, got {}", tensor.shape())
}
