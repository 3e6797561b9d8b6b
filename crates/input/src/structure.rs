//! The structure of elements: one output, a tuple of them, or a list.

use graph::Output;
use status::{Result, invalid};

/// The components of an element as the functions of a pipeline see them.
///
/// ```
/// use flowgrid_input::{Dataset, Structure};
/// use graph::{Graph, Output};
///
/// let graph = Graph::with_ops(data::registry());
/// let numbers = Dataset::range(&graph.root(), 1..4);
/// let pairs = numbers.map(|x: Output| (x.clone(), &x * 10.0));
/// let sums = pairs.map(|(a, b): (Output, Output)| a + b);
/// assert_eq!(sums.values::<i64>()?.collect::<Result<Vec<_>, _>>()?, [11, 22, 33]);
/// # Ok::<(), status::Error>(())
/// ```
pub trait Structure: Sized {
    /// The structure of these components; an error if their number is wrong.
    fn pack(components: Vec<Output>) -> Result<Self>;

    /// The components, in order.
    fn unpack(self) -> Vec<Output>;
}

impl Structure for Output {
    fn pack(components: Vec<Output>) -> Result<Output> {
        let [one] = exactly(components)?;
        Ok(one)
    }

    fn unpack(self) -> Vec<Output> {
        vec![self]
    }
}

impl Structure for Vec<Output> {
    fn pack(components: Vec<Output>) -> Result<Vec<Output>> {
        Ok(components)
    }

    fn unpack(self) -> Vec<Output> {
        self
    }
}

impl<const N: usize> Structure for [Output; N] {
    fn pack(components: Vec<Output>) -> Result<[Output; N]> {
        exactly(components)
    }

    fn unpack(self) -> Vec<Output> {
        self.into()
    }
}

macro_rules! tuples {
    ($($count:literal: $($part:ident $place:ident),+;)*) => {$(
        impl Structure for ($(tuples!(@ $part),)+) {
            fn pack(components: Vec<Output>) -> Result<Self> {
                let [$($place),+] = exactly::<$count>(components)?;
                Ok(($($place,)+))
            }

            fn unpack(self) -> Vec<Output> {
                let ($($place,)+) = self;
                vec![$($place),+]
            }
        }
    )*};
    (@ $part:ident) => { Output };
}

tuples! {
    1: A a;
    2: A a, B b;
    3: A a, B b, C c;
    4: A a, B b, C c, D d;
    5: A a, B b, C c, D d, E e;
    6: A a, B b, C c, D d, E e, F f;
}

fn exactly<const N: usize>(components: Vec<Output>) -> Result<[Output; N]> {
    let found = components.len();
    components.try_into().map_err(|_| invalid!("An element has {found} components where the function takes {N}"))
}
