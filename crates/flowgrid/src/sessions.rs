//! The public types of sessions, servers and clusters, with an example of each.
//!
//! These types come from several crates; their examples use all of them. Rustdoc puts the text of a
//! re-export before that of the type.

/// The addresses of a job's tasks: a list if the tasks are numbered without gaps.
///
/// ```
/// use flowgrid::{Addresses, ClusterSpec};
///
/// let cluster = ClusterSpec::parse("ps=a:1,b:1;worker=5:c:1")?;
/// assert_eq!(cluster.as_dict()["ps"], Addresses::List(vec!["a:1", "b:1"]));
/// assert!(matches!(cluster.as_dict()["worker"], Addresses::Map(_)));
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use session::Addresses;

/// A step that is prepared once and called many times.
///
/// ```
/// use flowgrid::{Callable, prelude::*};
///
/// let graph = Graph::new();
/// let x = graph.root().placeholder(DType::F32, &[]);
/// let y = x.square();
/// let session = Session::local(&graph);
/// let square: Callable<'_, &Output> = session.make_callable(&y, &[&x])?;
/// assert_eq!(square.call::<f32>(vec![3f32.into()])?, 9.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::Callable;

/// The jobs of a cluster and the addresses of their tasks.
///
/// ```
/// use flowgrid::ClusterSpec;
///
/// let cluster = ClusterSpec::parse("ps=host:2222;worker=host:2223,host:2224")?;
/// assert_eq!(cluster.num_tasks("worker")?, 2);
/// assert_eq!(cluster.task_address("worker", 1)?, "host:2224");
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use session::ClusterSpec;

/// A device of a session, as its task describes it.
///
/// ```
/// use flowgrid::{DeviceAttributes, prelude::*};
///
/// let devices: Vec<DeviceAttributes> = Session::local(&Graph::new()).list_devices()?;
/// assert_eq!(devices[0].name, "/job:localhost/replica:0/task:0/device:CPU:0");
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::DeviceAttributes;

#[doc(inline)]
pub use session::{DeviceType, DeviceTypes};

/// Values for the inputs of a step.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let x = graph.root().named("x").placeholder(DType::F32, &[]);
/// let feeds = Feeds::new().with(&x, 2f32);
/// assert!(feeds.names().eq([x.name()]));
/// assert_eq!(Session::local(&graph).run_with::<f32>(&x.square(), feeds)?, 4.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::Feeds;

/// Fetches whose values can be read as a type: the type of the result chooses it.
///
/// ```
/// use flowgrid::{FetchAs, prelude::*};
///
/// fn run<V>(graph: &Graph, fetches: impl FetchAs<V>) -> Result<V> {
///     Session::local(graph).run(fetches)
/// }
///
/// let graph = Graph::new();
/// let (a, b) = (graph.root().constant(1f32), graph.root().constant(2i64));
/// let (one, two): (f32, i64) = run(&graph, (&a, &b))?;
/// assert_eq!((one, two), (1.0, 2));
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::FetchAs;

/// What a step can fetch: outputs, nodes, names, and tuples, lists and maps of them.
///
/// ```
/// use flowgrid::{Fetches, prelude::*};
/// use std::collections::BTreeMap;
///
/// fn execute(graph: &Graph, fetches: impl Fetches) -> Result<()> {
///     Session::local(graph).execute(fetches)
/// }
///
/// let graph = Graph::new();
/// let a = graph.root().constant(1f32);
/// execute(&graph, (&a, [&a, &a]))?;
/// let named = BTreeMap::from([("a", &a)]);
/// let values: BTreeMap<&str, f32> = Session::local(&graph).run(named)?;
/// assert_eq!(values["a"], 1.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::Fetches;

/// A type as which a fetched tensor can be read.
///
/// ```
/// use flowgrid::{FromTensor, Tensor};
///
/// let rows = Vec::<[f32; 2]>::from_tensor(Tensor::from([[1f32, 2.0], [3.0, 4.0]]))?;
/// assert_eq!(rows[1], [3.0, 4.0]);
/// assert!(f64::from_tensor(Tensor::from(1f32)).is_err());
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use session::FromTensor;

/// Values that kernels find by their type, such as file systems.
///
/// ```
/// use flowgrid::{FileSystems, Extensions, SessionConfig};
///
/// let config = SessionConfig { extensions: Extensions::new().with(FileSystems::local()), ..SessionConfig::default() };
/// assert!(config.extensions.get::<FileSystems>().is_some());
/// ```
#[doc(inline)]
pub use session::Extensions;

/// A cluster whose servers run in this process.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)])?;
/// let graph = Graph::new();
/// let sum = graph.root().on("/job:ps").constant(1f32) + 2.0;
/// let session = Session::connect(&cluster.targets("worker")[0], &graph)?;
/// assert_eq!(session.run::<f32>(&sum)?, 3.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::LocalCluster;

/// A step that is run in pieces.
///
/// ```
/// use flowgrid::{PartialRun, prelude::*};
///
/// let graph = Graph::new();
/// let x = graph.root().placeholder(DType::F32, &[]);
/// let y = graph.root().placeholder(DType::F32, &[]);
/// let (first, second) = (&x + 1.0, &x * &y);
/// let session = Session::local(&graph);
/// let step: PartialRun<'_> = session.partial_run((&first, &second), &[&x, &y])?;
/// let value: f32 = step.run_with(&first, feeds! { &x => 2f32 })?;
/// assert_eq!(step.run_with::<f32>(&second, feeds! { &y => value })?, 6.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::PartialRun;

/// What a step reports about itself.
///
/// ```
/// use flowgrid::{RunMetadata, prelude::*};
///
/// let graph = Graph::new();
/// let sum = graph.root().constant(1f32) + 2.0;
/// let options = RunOptions { trace: true, ..RunOptions::default() };
/// let (_, metadata): (f32, RunMetadata) = Session::local(&graph).run_with_options(&sum, feeds! {}, options)?;
/// assert!(!metadata.stats.is_empty());
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::RunMetadata;

/// Options of one step.
///
/// ```
/// use flowgrid::prelude::*;
/// use std::time::Duration;
///
/// let graph = Graph::new();
/// let one = graph.root().constant(1f32);
/// let options = RunOptions { timeout: Some(Duration::from_secs(60)), ..RunOptions::default() };
/// let (value, _): (f32, _) = Session::local(&graph).run_with_options(&one, feeds! {}, options)?;
/// assert_eq!(value, 1.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::RunOptions;

/// A task of a cluster that serves clients and other tasks.
///
/// ```
/// use flowgrid::{ClusterSpec, prelude::*};
///
/// let cluster = ClusterSpec::parse("worker=127.0.0.1:0")?;
/// let task = cluster.task(None, None)?;
/// let server = Server::start(ServerOptions::new(cluster, task))?;
/// let graph = Graph::new();
/// let one = graph.root().constant(1f32);
/// assert_eq!(Session::connect(server.target(), &graph)?.run::<f32>(&one)?, 1.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::Server;

/// TensorFlow's description of a server, read from its message.
///
/// ```
/// use flowgrid::ServerDef;
///
/// let error = ServerDef::read(b"not a message", None, None).unwrap_err();
/// assert!(error.message.contains("ServerDef"));
/// ```
#[doc(inline)]
pub use session::ServerDef;

/// Options of a server.
///
/// ```
/// use flowgrid::{ClusterSpec, ServerOptions};
///
/// let cluster = ClusterSpec::parse("ps=host:2222;worker=host:2223")?;
/// let task = cluster.task(Some("ps"), Some(0))?;
/// let options = ServerOptions { inter_op_threads: 2, ..ServerOptions::new(cluster, task) };
/// assert_eq!(options.devices, 1);
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use session::ServerOptions;

/// Runs the steps of a graph.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let x = graph.root().placeholder(DType::F32, &[]);
/// let session = Session::local(&graph);
/// assert_eq!(session.run_with::<f32>(&x.square(), feeds! { &x => 3f32 })?, 9.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::Session;

/// Options of a session.
///
/// ```
/// use flowgrid::prelude::*;
///
/// let graph = Graph::new();
/// let one = graph.root().on("/gpu:0").constant(1f32);
/// let config = SessionConfig { soft_placement: true, ..SessionConfig::default() };
/// assert_eq!(Session::with_config("", &graph, config)?.run::<f32>(&one)?, 1.0);
/// # Ok::<(), Error>(())
/// ```
#[doc(inline)]
pub use session::SessionConfig;

/// How the gradients of synchronous training are counted.
///
/// ```
/// use flowgrid::SyncPolicy;
///
/// let policy: SyncPolicy = "exact".parse()?;
/// assert_eq!(policy, SyncPolicy::Exact);
/// assert_eq!(SyncPolicy::default(), SyncPolicy::Tf);
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use session::SyncPolicy;

/// A task of a cluster, by job and number.
///
/// ```
/// use flowgrid::Task;
///
/// let task = Task { job: "worker".to_string(), index: 1 };
/// assert_eq!(task.to_string(), "/job:worker/replica:0/task:1");
/// ```
#[doc(inline)]
pub use session::Task;

/// What the environment variable `TF_CONFIG` says.
///
/// ```
/// use flowgrid::TfConfig;
///
/// let text = r#"{"cluster": {"worker": ["host:2222"]}, "task": {"type": "worker", "index": 0}}"#;
/// let config = TfConfig::parse(text)?;
/// assert_eq!((config.job.as_deref(), config.index), (Some("worker"), Some(0)));
/// # Ok::<(), flowgrid::Error>(())
/// ```
#[doc(inline)]
pub use session::TfConfig;
