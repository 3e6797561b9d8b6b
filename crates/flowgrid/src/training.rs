//! The public types of models and training, with an example of each.
//!
//! These types come from several crates; their examples use all of them. Rustdoc puts the text of a
//! re-export before that of the type.

/// A part of a model: from one tensor to another, with variables of its own.
///
/// ```
/// use flowgrid::prelude::*;
///
/// /// Multiplies its input by a variable.
/// struct Scale;
///
/// impl Layer for Scale {
///     fn forward(&self, variables: &VariableScope, x: &Output, _: Phase) -> Output {
///         x * variables.get_with("factor", [1], Initializer::Constant(3.0), true).value()
///     }
/// }
///
/// let graph = Graph::new();
/// let x = graph.root().constant([1f32, 2.0]);
/// let y = Scale.forward(&VariableScope::new(&graph.root()).enter("scale"), &x, Phase::Inference);
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// assert_eq!(session.run::<[f32; 2]>(&y)?, [3.0, 6.0]);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use layers::Layer;

/// Layers that are applied one after the other.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let x = graph.root().placeholder(DType::F32, &[-1, 4]);
/// let model = Sequential::new().add(Dense::new(8).activation(TensorOps::relu)).add_named("logits", Dense::new(3));
/// let logits = model.apply(&VariableScope::new(&graph.root()), &x);
/// assert_eq!(logits.shape().to_string(), "[?,3]");
/// assert_eq!(trainable_variables(&graph)[2].name(), "logits/kernel");
/// ```
#[doc(inline)]
pub use layers::Sequential;

/// The settings of a new variable.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let count = Variable::builder(&graph.root(), "count").dtype(DType::I64).trainable(false).build();
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// assert_eq!(session.run::<i64>(&count)?, 0);
/// assert!(trainable_variables(&graph).is_empty());
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use layers::VariableBuilder;

/// Averages of variables that give recent values more weight.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let w = Variable::zeros(&graph.root(), "w", []);
/// let averages = ExponentialMovingAverage::new(0.75);
/// let update = averages.apply(&[w.clone()]).expect("one variable is averaged");
/// let average = averages.average(&w).expect("w is averaged");
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// session.execute(&w.assign(&graph.root().constant(8f32)))?;
/// session.execute(&update)?;
/// assert_eq!(session.run::<f32>(&average)?, 2.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::ExponentialMovingAverage;

/// Writes event files for TensorBoard.
///
/// ```
/// use flowgrid::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("flowgrid-doc-events-{}", std::process::id()));
/// let writer = FileWriter::new(&folder)?;
/// writer.add_scalar("loss", 0.5, 1)?;
/// writer.close()?;
/// assert!(writer.path().contains("events.out.tfevents"));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::FileWriter;

/// A gradient: a tensor, or the rows of one that are not zero.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let table = Variable::zeros(&graph.root(), "table", [1000, 4]);
/// let rows = table.gather(&graph.root().constant([3i32, 7]));
/// let gradients = Optimizer::new(GradientDescent::new(0.1)).compute_gradients(&rows.sum())?;
/// assert!(matches!(gradients[0].0, Some(Gradient::Sparse(_))));
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::Gradient;

/// Which variables an optimizer changes, and which step counter it increases.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let w = Variable::zeros(&graph.root(), "w", []);
/// let step = create_global_step(&graph)?;
/// let loss = (w.value() - 1.0).square();
/// let train = Optimizer::new(GradientDescent::new(0.5)).minimize_with(&loss, MinimizeOptions::new().step(&step))?;
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// session.execute(&train)?;
/// assert_eq!(session.run::<(f32, i64)>((&w, &step))?, (1.0, 1));
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::MinimizeOptions;

/// A session that initializes or restores its variables, runs hooks, and recovers from lost tasks.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let step = create_global_step(&graph)?;
/// let count = step.assign_add(&graph.root().constant(1i64));
/// let session = MonitoredTrainingSession::new(&graph).hook(hooks::StopAtStep::last_step(3)).start()?;
/// let mut calls = 0;
/// session.until_stop(|session| {
///     calls += 1;
///     session.run(&count)
/// })?;
/// assert_eq!(calls, 3);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::MonitoredTrainingSession;

/// Adds nodes that change variables so that a loss decreases.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let w = Variable::zeros(&graph.root(), "w", []);
/// let loss = (w.value() - 3.0).square();
/// let train = Optimizer::new(GradientDescent::new(0.5)).minimize(&loss)?;
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// session.execute(&train)?;
/// assert_eq!(session.run::<f32>(&w)?, 3.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::Optimizer;

/// Writes variables to checkpoints and restores them.
///
/// ```
/// use flowgrid::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("flowgrid-doc-saver-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let graph = Graph::new();
/// let w = Variable::zeros(&graph.root(), "w", [2]);
/// let saver = Saver::new(&graph)?;
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// let checkpoint = saver.save(&session, folder.join("model"), 1)?;
/// session.execute(&w.assign(&graph.root().constant([1f32, 2.0])))?;
/// saver.restore(&session, &checkpoint)?;
/// assert_eq!(session.run::<[f32; 2]>(&w)?, [0.0, 0.0]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::Saver;

/// Rows of a gradient that is zero elsewhere.
///
/// ```
/// use flowgrid::{Slices, prelude::*};
///
/// let graph = Graph::new();
/// let table = Variable::zeros(&graph.root(), "table", [1000, 4]);
/// let rows = table.gather(&graph.root().constant([3i32, 7]));
/// let gradients = Optimizer::new(GradientDescent::new(0.1)).compute_gradients(&rows.sum())?;
/// let Some(Gradient::Sparse(Slices { indices, .. })) = &gradients[0].0 else { panic!("two rows have a gradient") };
/// assert_eq!(Session::local(&graph).run::<[i32; 2]>(indices)?, [3, 7]);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use train::Slices;
