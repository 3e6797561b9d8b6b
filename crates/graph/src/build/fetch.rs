//! What a step can be asked for.

use crate::{Node, Output};

/// A name that a step is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fetch {
    /// The value of `node:index`.
    Value(String),
    /// That this node runs.
    Target(String),
}

/// Something a step can be asked for.
pub trait Fetchable {
    /// What to ask for.
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

impl Fetch {
    /// The node alone.
    pub fn node(&self) -> &str {
        match self {
            Fetch::Value(name) => name.rsplit_once(':').map_or(name, |(node, _)| node),
            Fetch::Target(name) => name,
        }
    }
}
