//! What a step is asked for: one thing, or tuples, arrays and vectors of things.

use crate::{FromTensor, Values};
use graph::{Fetch, Fetchable};
use status::{Result, internal};

/// Things a step can be asked for.
pub trait Fetches {
    /// Adds what is asked for, in order.
    fn ask(&self, asked: &mut Vec<Fetch>);
}

/// Things a step can be asked for whose answer can be read as a `V`.
pub trait FetchAs<V>: Fetches {
    /// Reads as many answers as were asked for.
    fn answer(&self, values: &mut Values) -> Result<V>;
}

impl<F: Fetchable> Fetches for &F {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        asked.push(self.fetch());
    }
}

impl<F: Fetchable, V: FromTensor> FetchAs<V> for &F {
    fn answer(&self, values: &mut Values) -> Result<V> {
        values.take()
    }
}

/// A tensor or a node by name: `x:0`, or `x` for a node that only runs.
impl Fetches for &str {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        asked.push(match self.contains(':') {
            true => Fetch::Value(self.to_string()),
            false => Fetch::Target(self.to_string()),
        });
    }
}

impl<V: FromTensor> FetchAs<V> for &str {
    fn answer(&self, values: &mut Values) -> Result<V> {
        values.take()
    }
}

impl<F: Fetches> Fetches for Vec<F> {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        self.iter().for_each(|fetch| fetch.ask(asked));
    }
}

impl<F: FetchAs<V>, V> FetchAs<Vec<V>> for Vec<F> {
    fn answer(&self, values: &mut Values) -> Result<Vec<V>> {
        self.iter().map(|fetch| fetch.answer(values)).collect()
    }
}

impl<F: Fetchable> Fetches for &[F] {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        asked.extend(self.iter().map(Fetchable::fetch));
    }
}

impl<F: Fetchable, V: FromTensor> FetchAs<Vec<V>> for &[F] {
    fn answer(&self, values: &mut Values) -> Result<Vec<V>> {
        self.iter().map(|_| values.take()).collect()
    }
}

impl<F: Fetches, const N: usize> Fetches for [F; N] {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        self.iter().for_each(|fetch| fetch.ask(asked));
    }
}

impl<F: FetchAs<V>, V, const N: usize> FetchAs<[V; N]> for [F; N] {
    fn answer(&self, values: &mut Values) -> Result<[V; N]> {
        let answers = self.iter().map(|fetch| fetch.answer(values)).collect::<Result<Vec<V>>>()?;
        answers.try_into().map_err(|_| internal!("another number of answers than was asked for"))
    }
}

macro_rules! tuples {
    ($(($($F:ident $V:ident $place:tt),*))*) => {$(
        impl<$($F: Fetches),*> Fetches for ($($F,)*) {
            fn ask(&self, asked: &mut Vec<Fetch>) {
                $(self.$place.ask(asked);)*
            }
        }

        impl<$($F: FetchAs<$V>, $V),*> FetchAs<($($V,)*)> for ($($F,)*) {
            fn answer(&self, values: &mut Values) -> Result<($($V,)*)> {
                Ok(($(self.$place.answer(values)?,)*))
            }
        }
    )*};
}

tuples! {
    (F0 V0 0)
    (F0 V0 0, F1 V1 1)
    (F0 V0 0, F1 V1 1, F2 V2 2)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7)
}
