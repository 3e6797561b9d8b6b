//! What a step fetches: one value, or tuples, arrays, vectors and maps of values, which may be nested.

use crate::{FromTensor, Values};
use graph::{Fetch, Fetchable};
use status::{Result, internal};
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// Everything a step can fetch.
pub trait Fetches {
    /// Appends what is fetched, in order.
    fn ask(&self, asked: &mut Vec<Fetch>);
}

/// Fetches whose values can be read as a `V`.
pub trait FetchAs<V>: Fetches {
    /// Reads the values of these fetches, in the order of `ask`.
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

/// A tensor or a node by name, as for `&str`.
impl Fetches for String {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        self.as_str().ask(asked);
    }
}

impl<V: FromTensor> FetchAs<V> for String {
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
        answers.try_into().map_err(|_| internal!("the step returned a different number of values than was fetched"))
    }
}

// Both passes walk the same unchanged map, so they see the same order.
impl<K, F: Fetches, S> Fetches for HashMap<K, F, S> {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        self.values().for_each(|fetch| fetch.ask(asked));
    }
}

/// The values under the same keys.
impl<K: Clone + Eq + Hash, F: FetchAs<V>, V, S: BuildHasher + Default> FetchAs<HashMap<K, V, S>> for HashMap<K, F, S> {
    fn answer(&self, values: &mut Values) -> Result<HashMap<K, V, S>> {
        self.iter().map(|(key, fetch)| Ok((key.clone(), fetch.answer(values)?))).collect()
    }
}

impl<K, F: Fetches> Fetches for BTreeMap<K, F> {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        self.values().for_each(|fetch| fetch.ask(asked));
    }
}

/// The values under the same keys.
impl<K: Clone + Ord, F: FetchAs<V>, V> FetchAs<BTreeMap<K, V>> for BTreeMap<K, F> {
    fn answer(&self, values: &mut Values) -> Result<BTreeMap<K, V>> {
        self.iter().map(|(key, fetch)| Ok((key.clone(), fetch.answer(values)?))).collect()
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
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8, F9 V9 9)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8, F9 V9 9, F10 V10 10)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8, F9 V9 9, F10 V10 10, F11 V11 11)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8, F9 V9 9, F10 V10 10,
     F11 V11 11, F12 V12 12)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8, F9 V9 9, F10 V10 10,
     F11 V11 11, F12 V12 12, F13 V13 13)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8, F9 V9 9, F10 V10 10,
     F11 V11 11, F12 V12 12, F13 V13 13, F14 V14 14)
    (F0 V0 0, F1 V1 1, F2 V2 2, F3 V3 3, F4 V4 4, F5 V5 5, F6 V6 6, F7 V7 7, F8 V8 8, F9 V9 9, F10 V10 10,
     F11 V11 11, F12 V12 12, F13 V13 13, F14 V14 14, F15 V15 15)
}
