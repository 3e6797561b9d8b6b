//! Variables by name: in a scope, the same name is the same variable.

use super::{Kind, PartitionedVariable, Partitioner, Variable, VariableBuilder, VariableCreator};
use crate::Initializer;
use graph::Scope;
use status::{Error, Result, invalid};
use std::sync::Arc;
use tensor::{DType, PartialShape, Shape};

/// Whether a scope creates variables or finds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// A new variable; it is an error if the name is in use.
    #[default]
    Never,
    /// The variable of that name; it is an error if there is none.
    Always,
    /// The variable of that name, or a new one.
    Auto,
}

/// A scope in which the variables of a graph are found by name, and the settings of new ones. Cloning it is cheap.
#[derive(Clone)]
pub struct VariableScope {
    scope: Scope,
    path: String,
    reuse: Reuse,
    kind: Kind,
    dtype: DType,
    initializer: Option<Initializer>,
    partitioner: Option<Partitioner>,
    creators: Vec<VariableCreator>,
}

impl VariableScope {
    /// The variables of a graph; nodes go to `scope`.
    pub fn new(scope: &Scope) -> VariableScope {
        VariableScope {
            scope: scope.clone(),
            path: scope.prefix().to_string(),
            reuse: Reuse::default(),
            kind: Kind::default(),
            dtype: DType::F32,
            initializer: None,
            partitioner: None,
            creators: Vec::new(),
        }
    }

    /// The scope called `name` inside this one. Variables are called `name/…`. So are other nodes, unless that name was
    /// used before.
    pub fn enter(&self, name: &str) -> VariableScope {
        VariableScope { scope: self.scope.named(name), path: format!("{}{name}/", self.path), ..self.clone() }
    }

    /// The same scope, which creates or finds variables by this rule.
    pub fn reuse(&self, reuse: Reuse) -> VariableScope {
        VariableScope { reuse, ..self.clone() }
    }

    /// The same scope, whose new variables are of this kind.
    pub fn kind(&self, kind: Kind) -> VariableScope {
        VariableScope { kind, ..self.clone() }
    }

    /// The same scope, whose new variables have this element type.
    pub fn dtype(&self, dtype: DType) -> VariableScope {
        VariableScope { dtype, ..self.clone() }
    }

    /// The same scope, whose new variables have this initializer.
    pub fn initializer(&self, initializer: Initializer) -> VariableScope {
        VariableScope { initializer: Some(initializer), ..self.clone() }
    }

    /// The same scope, whose new partitioned variables are split by this rule.
    pub fn partitioner(&self, partitioner: Partitioner) -> VariableScope {
        VariableScope { partitioner: Some(partitioner), ..self.clone() }
    }

    /// The same scope, in which `creator` creates new variables. It gets the settings of the variable and calls
    /// `build` on them, which reaches the creator that was added before, or adds the nodes; or it returns another
    /// variable. The creator that was added last is called first, as in TensorFlow's `variable_creator_scope`.
    ///
    /// ```
    /// # use flowgrid_layers as layers;
    /// # use graph::Graph;
    /// # use layers::{Initializer, VariableScope};
    /// let graph = Graph::with_ops(ops::registry());
    /// let variables = VariableScope::new(&graph.root())
    ///     .creator(|settings| settings.initializer(Initializer::Ones).trainable(false).build());
    /// assert!(!variables.get("w", [2, 3]).is_trainable());
    /// ```
    pub fn creator(&self, creator: impl Fn(VariableBuilder) -> Variable + Send + Sync + 'static) -> VariableScope {
        let mut scope = self.clone();
        scope.creators.push(Arc::new(creator));
        scope
    }

    /// The scope of the graph to which nodes go.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The variable called `name`. A new one has the initializer of the scope, or Glorot's.
    pub fn get(&self, name: &str, shape: impl Into<Shape>) -> Variable {
        self.get_with(name, shape, self.default_initializer(), true)
    }

    /// The initializer of new variables for which none is given.
    fn default_initializer(&self) -> Initializer {
        let fallback = match self.dtype.is_integer() || self.dtype == DType::BOOL {
            true => Initializer::Zeros,
            false => Initializer::glorot_uniform(),
        };
        self.initializer.clone().unwrap_or(fallback)
    }

    /// As [`VariableScope::get`], with the initializer of a new variable and whether optimizers update it.
    pub fn get_with(&self, name: &str, shape: impl Into<Shape>, initializer: Initializer, trainable: bool) -> Variable {
        let (path, shape) = (format!("{}{name}", self.path), shape.into());
        let place = self.scope.reenter(self.path.trim_end_matches('/'));
        let known = Variable::find(&place, &path);
        if let Some(error) = self.refusal(&path, known.as_ref(), &shape) {
            self.scope.graph().fail(error);
        }
        if let Some(variable) = known {
            return variable;
        }
        self.settings(&place, name, shape).initializer(initializer).trainable(trainable).build()
    }

    /// What the scope says of a new variable.
    fn settings(&self, place: &Scope, name: &str, shape: Shape) -> VariableBuilder {
        let settings = Variable::builder(place, name).shape(shape).dtype(self.dtype).kind(self.kind);
        self.creators.iter().fold(settings, |settings, creator| settings.creator(creator.clone()))
    }

    /// The variable called `name` in parts, as the scope's partitioner says. A new one is initialized as by `get`.
    pub fn get_partitioned(&self, name: &str, shape: impl Into<Shape>) -> PartitionedVariable {
        self.get_partitioned_with(name, shape, self.default_initializer(), true)
    }

    /// As `get_partitioned`, with the initializer of a new variable and whether optimizers update it.
    pub fn get_partitioned_with(
        &self,
        name: &str,
        shape: impl Into<Shape>,
        initializer: Initializer,
        trainable: bool,
    ) -> PartitionedVariable {
        let (path, shape) = (format!("{}{name}", self.path), shape.into());
        let place = self.scope.reenter(self.path.trim_end_matches('/'));
        let known = PartitionedVariable::find(&place, &path);
        let split = self.split(&path, known.as_ref(), &shape);
        let (axis, count) = split.unwrap_or_else(|error| {
            self.scope.graph().fail(error);
            (0, 1)
        });
        if let Some(variable) = known {
            return variable;
        }
        self.settings(&place, name, shape).initializer(initializer).trainable(trainable).partitioned(axis, count)
    }

    /// How a variable is split, or why the name is refused.
    fn split(&self, path: &str, known: Option<&PartitionedVariable>, shape: &Shape) -> Result<(usize, usize)> {
        let parts = self.partitioner.map(|rule| rule.parts(shape, self.dtype)).transpose()?;
        let Some(known) = known else {
            return match (self.reuse, parts) {
                (Reuse::Always, _) => Err(invalid!(
                    "PartitionedVariable {path} does not exist, or was not created with tf.get_variable(). Did you \
                     mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
                )),
                (_, Some(parts)) => Ok(parts),
                (_, None) => Err(invalid!("No partitioner says how to split {path}")),
            };
        };
        let (found, dtype) = (known.shape(), known.parts()[0].dtype());
        let begin = format!("Trying to reuse partitioned variable {path}, but specified");
        match (known.axis(), known.parts().len()) {
            _ if self.reuse == Reuse::Never => Err(invalid!(
                "Partitioned variable with name {path} already exists. Did you mean to set reuse=True or \
                 reuse=tf.AUTO_REUSE in VarScope?"
            )),
            _ if found != *shape => Err(invalid!("{begin} shape {shape} and found shape {found}.")),
            _ if dtype != self.dtype => Err(invalid!("{begin} dtype {} and found dtype {dtype}.", self.dtype)),
            (axis, count) if parts.is_some_and(|(_, wanted)| wanted != count) => {
                let listed = |count| (0..shape.rank()).map(|of| if of == axis { count } else { 1 }).collect::<Vec<_>>();
                let wanted = listed(parts.map_or(0, |(_, count)| count));
                Err(invalid!("{begin} partitions {wanted:?} and found partitions {:?}.", listed(count)))
            }
            same => Ok(same),
        }
    }

    /// Why a name is refused.
    fn refusal(&self, path: &str, known: Option<&Variable>, shape: &Shape) -> Option<Error> {
        match (known, self.reuse) {
            (Some(_), Reuse::Never) => Some(invalid!(
                "Variable {path} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in \
                 VarScope?"
            )),
            (None, Reuse::Always) => Some(invalid!(
                "Variable {path} does not exist, or was not created with tf.get_variable(). Did you mean to set \
                 reuse=tf.AUTO_REUSE in VarScope?"
            )),
            (Some(variable), _) if !variable.shape().compatible(&PartialShape::from(shape)) => Some(invalid!(
                "Trying to share variable {path}, but specified shape {shape} and found shape {}.",
                variable.shape()
            )),
            (Some(variable), _) if variable.dtype() != self.dtype => Some(invalid!(
                "Trying to share variable {path}, but specified dtype {} and found dtype {}.",
                self.dtype,
                variable.dtype()
            )),
            _ => None,
        }
    }
}
