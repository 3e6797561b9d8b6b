//! The elements of a queue, and the order in which they leave it.

use math::philox::Philox;
use std::collections::VecDeque;
use tensor::Tensor;

/// One element of a queue: a tensor for each component.
pub(crate) type Element = Vec<Tensor>;

/// Elements in the order in which they will leave.
pub(crate) enum Items {
    /// First in, first out.
    Fifo(VecDeque<Element>),
    /// Random order.
    Shuffled(Shuffled),
    /// The one with the smallest number in its first component.
    Sorted(Heap),
}

/// Elements that leave in random order.
pub(crate) struct Shuffled {
    elements: Vec<Element>,
    stream: Philox,
    drawn: u64,
}

impl Items {
    /// No elements; they will leave in an order that `stream` determines.
    pub fn shuffled(stream: Philox) -> Items {
        Items::Shuffled(Shuffled { elements: Vec::new(), stream, drawn: 0 })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Items::Fifo(elements) => elements.len(),
            Items::Shuffled(shuffled) => shuffled.elements.len(),
            Items::Sorted(heap) => heap.0.len(),
        }
    }

    /// Adds an element.
    pub fn push(&mut self, element: Element) {
        match self {
            Items::Fifo(elements) => elements.push_back(element),
            Items::Shuffled(shuffled) => shuffled.elements.push(element),
            Items::Sorted(heap) => heap.push(element),
        }
    }

    /// Removes the next element.
    pub fn pop(&mut self) -> Option<Element> {
        match self {
            Items::Fifo(elements) => elements.pop_front(),
            Items::Shuffled(shuffled) => shuffled.pop(),
            Items::Sorted(heap) => heap.pop(),
        }
    }

    /// Takes the first element that satisfies `takes`. Only first-in, first-out queues support it.
    pub fn pop_first(&mut self, takes: impl Fn(&Element) -> bool) -> Option<Element> {
        let Items::Fifo(elements) = self else { return None };
        let place = elements.iter().position(takes)?;
        elements.remove(place)
    }

    /// Drops all elements that do not satisfy `stays`. Only first-in, first-out queues support it.
    pub fn retain(&mut self, stays: impl Fn(&Element) -> bool) {
        if let Items::Fifo(elements) = self {
            elements.retain(stays);
        }
    }

    /// All elements of a first-in, first-out queue; none of other queues.
    pub fn iter(&self) -> impl Iterator<Item = &Element> {
        let elements = if let Items::Fifo(elements) = self { Some(elements) } else { None };
        elements.into_iter().flatten()
    }

    /// Puts elements back, given in the order in which they were taken, as if they had never been removed.
    pub fn restore(&mut self, elements: Vec<Element>) {
        for element in elements.into_iter().rev() {
            match &mut *self {
                Items::Fifo(items) => items.push_front(element),
                other => other.push(element),
            }
        }
    }
}

impl Shuffled {
    /// The last element takes the place of the one that leaves; the choice is TensorFlow's for the same seeds.
    fn pop(&mut self) -> Option<Element> {
        if self.elements.is_empty() {
            return None;
        }
        let word = self.stream.block(self.drawn / 4)[(self.drawn % 4) as usize];
        self.drawn += 1;
        Some(self.elements.swap_remove(word as usize % self.elements.len()))
    }
}

/// A binary heap, smallest number first. Elements of equal number leave in the same order as from the heap of the C++
/// standard library, because graphs may depend on TensorFlow's order.
#[derive(Default)]
pub(crate) struct Heap(Vec<(i64, Element)>);

impl Heap {
    fn push(&mut self, element: Element) {
        let number = element.first().and_then(|first| first.to_scalar::<i64>().ok()).unwrap_or_default();
        self.0.push((number, element));
        self.rise(self.0.len() - 1);
    }

    fn pop(&mut self) -> Option<Element> {
        let last = self.0.len().checked_sub(1)?;
        self.0.swap(0, last);
        let (_, element) = self.0.pop()?;
        let bottom = self.sink_to_bottom();
        self.rise(bottom);
        Some(element)
    }

    /// Moves an element up past larger ones.
    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.0[(place - 1) / 2].0 > self.0[place].0 {
            self.0.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// Moves the first element down to a leaf, whatever its number. The smaller child takes its place, and the right
    /// one if they are equal.
    fn sink_to_bottom(&mut self) -> usize {
        let mut place = 0;
        loop {
            let (left, right) = (2 * place + 1, 2 * place + 2);
            let child = match self.0.len() {
                len if right < len => {
                    if self.0[right].0 > self.0[left].0 {
                        left
                    } else {
                        right
                    }
                }
                len if left < len => left,
                _ => return place,
            };
            self.0.swap(place, child);
            place = child;
        }
    }
}
