//! The values that are fed to a step.

use graph::Output;
use tensor::Tensor;

/// Values for outputs of nodes, which then do not run. The macro `feeds!` makes them.
#[derive(Clone, Debug, Default)]
pub struct Feeds(pub(crate) Vec<(String, Tensor)>);

impl Feeds {
    /// No values.
    pub fn new() -> Feeds {
        Feeds::default()
    }

    /// Adds a value for an output.
    pub fn with(mut self, output: &Output, value: impl Into<Tensor>) -> Feeds {
        self.0.push((output.name(), value.into()));
        self
    }

    /// Adds a value for the tensor with this name (`x` or `x:0`).
    pub fn with_name(mut self, name: &str, value: impl Into<Tensor>) -> Feeds {
        let name = if name.contains(':') { name.to_string() } else { format!("{name}:0") };
        self.0.push((name, value.into()));
        self
    }

    /// Adds the values of other feeds.
    pub fn and(mut self, others: Feeds) -> Feeds {
        self.0.extend(others.0);
        self
    }

    /// The names of the tensors that are fed.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// Values for a step: `feeds! { &x => [[1.0f32, 2.0]], &y => batch }`.
#[macro_export]
macro_rules! feeds {
    ($($output:expr => $value:expr),* $(,)?) => {
        $crate::Feeds::new()$(.with($output, $value))*
    };
}
