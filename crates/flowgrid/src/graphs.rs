//! The public types that describe graphs, with an example of each.
//!
//! These types come from crates that cannot run a step, so their examples are here. Rustdoc puts the text of a
//! re-export before that of the type.

/// Options of [`gradients_with`](crate::gradients_with).
///
/// ```
/// use flowgrid::{GradientOptions, gradients_with, prelude::*};
///
/// let graph = Graph::new();
/// let x = graph.root().constant(3f32);
/// let y = x.square();
/// let z = &y + 1.0;
/// let options = GradientOptions { stop: vec![y], ..GradientOptions::default() };
/// assert!(gradients_with(&[&z], &[&x], &options)?[0].is_none());
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use gradient::GradientOptions;

/// A value of an attribute, made from a Rust value.
///
/// ```
/// use flowgrid::{AttrValue, DType};
///
/// assert_eq!(AttrValue::from(3i64), AttrValue::Int(3));
/// assert_eq!(AttrValue::from(DType::F32), AttrValue::Type(DType::F32));
/// ```
#[doc(inline)]
pub use graph::AttrValue;

/// A device name, whole or in part. Parts that are not set are filled from outer scopes.
///
/// ```
/// use flowgrid::DeviceSpec;
///
/// let inner = DeviceSpec::parse("/task:1/gpu:0")?;
/// let outer = DeviceSpec::parse("/job:worker/task:7")?;
/// assert_eq!(inner.or(&outer).to_string(), "/job:worker/task:1/device:GPU:0");
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use graph::DeviceSpec;

/// A function of a graph: nodes that other nodes call by name.
///
/// ```
/// use flowgrid::{FunctionDef, NodeDef, Signature, prelude::*};
///
/// let multiply = NodeDef {
///     name: "multiply".to_string(),
///     op: "Mul".to_string(),
///     inputs: vec!["x".to_string(), "x".to_string()],
///     attrs: [("T".to_string(), DType::F32.into())].into(),
///     ..NodeDef::default()
/// };
/// let graph = Graph::new();
/// graph.add_function(FunctionDef {
///     signature: Signature::parse("Squared(x: float) -> y: float")?,
///     nodes: vec![multiply.into()],
///     ret: [("y".to_string(), "multiply:z:0".to_string())].into(),
///     attrs: Default::default(),
///     control_ret: Default::default(),
///     arg_attrs: Default::default(),
///     resource_arg_unique_id: Default::default(),
///     encoded: Default::default(),
/// });
/// let nine = graph.root().op("Squared").input(&graph.root().constant(3f32)).output();
/// assert_eq!(Session::local(&graph).run::<f32>(&nine)?, 9.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use graph::FunctionDef;

/// A graph under construction. Nodes are added through its scopes.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let sum = graph.root().constant(1f32) + 2.0;
/// assert_eq!(Session::local(&graph).run::<f32>(&sum)?, 3.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use graph::Graph;

/// A graph as it is written to files and sent to servers.
///
/// ```
/// use flowgrid::{GraphDef, prelude::*, wire};
///
/// let graph = Graph::new();
/// let _one = graph.root().named("model").constant(1f32);
/// let def: GraphDef = graph.to_def()?;
/// assert_eq!(def.nodes[0].name, "model/Const");
/// assert_eq!(wire::read_graph(wire::write_graph(&def))?.nodes.len(), 1);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use graph::GraphDef;

/// Options of [`Graph::import`].
///
/// ```
/// use flowgrid::{ImportOptions, prelude::*};
///
/// let (source, target) = (Graph::new(), Graph::new());
/// let _one = source.root().constant(1f32);
/// let options = ImportOptions { prefix: "copy".to_string(), ..ImportOptions::default() };
/// let nodes = target.import(&source.to_def()?, &options)?;
/// assert_eq!(nodes[0].name(), "copy/Const");
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use graph::ImportOptions;

/// A node of a graph: an op with its inputs.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let sum = graph.root().constant(1f32) + 2.0;
/// assert_eq!(sum.node().num_outputs(), 1);
/// let found = Node::find(&graph.root(), &sum.node().name());
/// assert!(found.as_ref() == Some(sum.node()));
/// ```
#[doc(inline)]
pub use graph::Node;

/// A node as it is written to files.
///
/// ```
/// use flowgrid::{NodeDef, prelude::*};
///
/// let graph = Graph::new();
/// let value = graph.root().on("/job:ps").constant(1f32);
/// let def: &NodeDef = &value.node().def();
/// assert_eq!((&*def.op, &*def.device), ("Const", "/job:ps"));
/// ```
#[doc(inline)]
pub use graph::NodeDef;

/// Builds a node of any op, by name.
///
/// ```
/// use flowgrid::{OpBuilder, prelude::*};
///
/// let graph = Graph::new();
/// let x = graph.root().constant([1f32, 4.0]);
/// let builder: OpBuilder = graph.root().op("Sqrt").named("root").input(&x);
/// let roots: [f32; 2] = Session::local(&graph).run(&builder.output())?;
/// assert_eq!(roots, [1.0, 2.0]);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use graph::OpBuilder;

/// A value that a node computes; operators and the methods of [`TensorOps`] add nodes.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let x: Output = graph.root().placeholder(DType::F32, &[-1, 2]);
/// let y = (&x * 2.0).sum();
/// assert_eq!((y.dtype(), y.shape()), (DType::F32, PartialShape::scalar()));
/// ```
#[doc(inline)]
pub use graph::Output;

/// Where nodes are added: a name prefix, a device, and nodes to wait for.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let scope: Scope = graph.root().named("model").on("/job:worker");
/// let value = scope.constant(1f32);
/// assert_eq!((value.name(), value.node().device()), ("model/Const:0".to_string(), "/job:worker".to_string()));
/// ```
#[doc(inline)]
pub use graph::Scope;

/// The inputs, outputs and attributes of an op or a function.
///
/// ```
/// use flowgrid::Signature;
///
/// let signature = Signature::parse("Neg(x: T) -> y: T; T: {float, double}")?;
/// assert_eq!((&*signature.name, signature.inputs.len()), ("Neg", 1));
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use graph::Signature;

/// The file systems of a process, by scheme.
///
/// ```
/// use flowgrid::FileSystems;
///
/// let systems = FileSystems::local();
/// systems.write("ram://greeting", b"hello")?;
/// assert_eq!(&systems.read("ram://greeting")?[..], b"hello");
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use io::FileSystems;

/// Methods of outputs that add nodes.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let x = graph.root().constant([[3f32, 4.0]]);
/// let norm = x.square().sum().sqrt();
/// assert_eq!(Session::local(&graph).run::<f32>(&norm)?, 5.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use layers::TensorOps;

/// Methods of scopes that add nodes without inputs.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let x = graph.root().placeholder(DType::F32, &[]);
/// let y = &x + &graph.root().constant(1f32);
/// assert_eq!(Session::local(&graph).run_with::<f32>(&y, feeds! { &x => 2f32 })?, 3.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use layers::ScopeOps;

/// How a variable gets its initial value.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let variables = VariableScope::new(&graph.root()).initializer(Initializer::Constant(7.0));
/// let seven = variables.get("seven", [2]);
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// assert_eq!(session.run::<[f32; 2]>(seven.value())?, [7.0, 7.0]);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use layers::Initializer;

/// How a variable is represented in the graph.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let variables = VariableScope::new(&graph.root());
/// assert_eq!(variables.get("new", [2]).handle().node().op(), "VarHandleOp");
/// assert_eq!(variables.kind(Kind::Reference).get("old", [2]).handle().node().op(), "VariableV2");
/// ```
#[doc(inline)]
pub use layers::Kind;

/// What a variable scope does with a name that is used already.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let variables = VariableScope::new(&graph.root());
/// let first = variables.get("w", [2]);
/// let again = variables.reuse(Reuse::Always).get("w", [2]);
/// assert_eq!(first.name(), again.name());
/// variables.get("w", [2]); // `Reuse::Never` is the default
/// assert!(graph.check().is_err());
/// ```
#[doc(inline)]
pub use layers::Reuse;

/// A value that lives on a device from one step to the next.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let count = Variable::zeros(&graph.root(), "count", Shape::scalar());
/// let increment = count.assign_add(&graph.root().constant(1f32));
/// let session = Session::local(&graph);
/// session.execute(&global_variables_initializer(&graph))?;
/// session.execute(&increment)?;
/// assert_eq!(session.run::<f32>(count.value())?, 1.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use layers::Variable;

/// Finds variables by name, or creates them.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let variables = VariableScope::new(&graph.root()).enter("layer");
/// let w = variables.get("w", [2, 3]);
/// assert_eq!(w.name(), "layer/w");
/// ```
#[doc(inline)]
pub use layers::VariableScope;
