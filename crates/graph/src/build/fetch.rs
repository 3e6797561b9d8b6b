//! Fetches and targets of a step.

use crate::{Node, Output};

/// A name that a step is run for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fetch {
    /// The value of `node:index`.
    Value(String),
    /// Run this node, without a value.
    Target(String),
}

/// A value that can be fetched: an output, or a node as a target.
pub trait Fetchable {
    /// The name to fetch or run.
    fn fetch(&self) -> Fetch;
}

impl Fetchable for Output {
    fn fetch(&self) -> Fetch {
        Fetch::Value(self.name())
    }
}

impl Fetchable for Node {
    fn fetch(&self) -> Fetch {
        Fetch::Target(self.name())
    }
}

impl<F: Fetchable> Fetchable for &F {
    fn fetch(&self) -> Fetch {
        (*self).fetch()
    }
}

impl Fetch {
    /// The name of the node, without the output index.
    pub fn node(&self) -> &str {
        match self {
            Fetch::Value(name) => name.rsplit_once(':').map_or(name, |(node, _)| node),
            Fetch::Target(name) => name,
        }
    }
}
