//! Runs functions on devices of other tasks: the task registers a graph that calls the function, and runs it for each
//! call. Arguments travel with the request and results with the answer.

use crate::api::{RegisterGraph, RunGraph, from_task};
use crate::worker::Worker;
use crate::{ClusterSpec, Task, ids};
use exec::{RemoteFunction, RemoteTask};
use futures_channel::oneshot;
use futures_util::future::{Either, select};
use graph::builtin_ops::{RECV, SEND};
use graph::{AttrValue, GraphDef, NodeDef, RendezvousKeyPrefix};
use op::{Callable, Cancel, Ctx, Done, Forks, Inputs, Value};
use parking_lot::Mutex;
use status::{Error, Result, internal, unavailable};
use std::sync::{Arc, Weak};
use tensor::{DType, Tensor};

/// Values that come from or go to the client pass within one device, whose incarnation is not checked.
const INCARNATION: u64 = 1;

/// Another task of a session.
pub(crate) struct SessionTask {
    pub worker: Weak<Worker>,
    pub session: String,
    pub cluster: ClusterSpec,
    pub task: Task,
}

impl RemoteTask for SessionTask {
    fn function(&self, function: RemoteFunction) -> Result<Arc<dyn Callable>> {
        let SessionTask { worker, session, cluster, task } = self;
        let (worker, session, cluster, task) = (worker.clone(), session.clone(), cluster.clone(), task.clone());
        let graph = Mutex::default();
        Ok(Arc::new(Remote(Arc::new(Shared { worker, session, cluster, task, function, graph }))))
    }
}

struct Remote(Arc<Shared>);

/// A function with the handle of its graph, once the task has registered it.
struct Shared {
    worker: Weak<Worker>,
    session: String,
    cluster: ClusterSpec,
    task: Task,
    function: RemoteFunction,
    graph: Mutex<Option<String>>,
}

impl Callable for Remote {
    fn call(&self, ctx: &Ctx<'_>, mut args: Inputs, done: Done) {
        let (Some(worker), Ok(args)) = (self.0.worker.upgrade(), args.tensors_from(0)) else {
            return done(Err(internal!("the caller of function {} has ended", self.0.function.function.name)));
        };
        let (shared, cancel) = (self.0.clone(), ctx.env.cancel.clone());
        let runtime = worker.runtime.clone();
        runtime.spawn(Box::pin(async move {
            let call = Box::pin(shared.call(worker, args));
            let (on_cancel, cancelled) = oneshot::channel::<Error>();
            let registered = cancel.register(move |error| drop(on_cancel.send(error.clone())));
            let result = match registered {
                Err(error) => Err(error),
                Ok(token) => {
                    let result = until_cancelled(call, cancelled, &cancel).await;
                    cancel.deregister(token);
                    result
                }
            };
            done(result.map(|tensors| tensors.into_iter().map(Value::Tensor).collect()));
        }));
    }

    /// The other task keeps its state.
    fn fork(&self, _: &Forks) -> Result<Arc<dyn Callable>> {
        Ok(Arc::new(Remote(self.0.clone())))
    }
}

/// The result of a call, or the reason why its step was cancelled.
async fn until_cancelled(
    call: impl Future<Output = Result<Vec<Tensor>>> + Unpin,
    cancelled: oneshot::Receiver<Error>,
    cancel: &Cancel,
) -> Result<Vec<Tensor>> {
    match select(call, cancelled).await {
        Either::Left((result, _)) => result,
        Either::Right(_) => Err(cancel.reason().unwrap_or_else(|| unavailable!("the step has ended"))),
    }
}

impl Shared {
    async fn call(&self, worker: Arc<Worker>, args: Vec<Tensor>) -> Result<Vec<Tensor>> {
        let link = worker.link(&self.cluster, &self.task)?;
        let here = |error: Error| from_task(error, &self.task.to_string());
        let known = self.graph.lock().clone();
        let graph = match known {
            Some(graph) => graph,
            None => {
                let (session, graph) = (self.session.clone(), self.graph_def());
                let registered =
                    link.register_graph(RegisterGraph { session, graph, ..RegisterGraph::default() }).await;
                let registered = registered.map_err(here)?;
                self.graph.lock().get_or_insert(registered).clone()
            }
        };
        let step_id = ids::step_id();
        let request = RunGraph {
            session: self.session.clone(),
            graph,
            step_id,
            send: args.into_iter().enumerate().map(|(index, arg)| (self.key("arg", index), arg)).collect(),
            recv: (0..self.function.results.len()).map(|index| self.key("result", index)).collect(),
            ..RunGraph::default()
        };
        let answer = link.run_graph(request).await;
        let _ = link.cleanup_graph(step_id).await; // what is left of the step ends with its session
        let mut received = answer.map_err(here)?.recv;
        (0..self.function.results.len()).map(|index| take(&mut received, &self.key("result", index))).collect()
    }

    fn key(&self, what: &str, index: usize) -> String {
        let device = &self.function.device;
        RendezvousKeyPrefix::new(device, INCARNATION, device, &format!("{what}_{index}")).root_key()
    }

    /// A graph that receives the arguments, calls the function and sends the results.
    fn graph_def(&self) -> GraphDef {
        let RemoteFunction { functions, function, device, args, results } = &self.function;
        let receive = |(index, dtype): (usize, &DType)| self.exchanging(RECV, ("tensor_type", *dtype), "arg", index);
        let mut nodes: Vec<NodeDef> = args.iter().enumerate().map(receive).collect();
        let inputs = nodes.iter().map(|node| node.name.clone()).collect();
        nodes.push(NodeDef {
            name: "call".to_string(),
            op: function.name.clone(),
            inputs,
            device: device.clone(),
            attrs: function.attrs.clone(),
            ..NodeDef::default()
        });
        for (index, dtype) in results.iter().enumerate() {
            let mut send = self.exchanging(SEND, ("T", *dtype), "result", index);
            send.inputs = vec![format!("call:{index}")];
            nodes.push(send);
        }
        let nodes = nodes.into_iter().map(Arc::new).collect();
        GraphDef { nodes, library: (**functions).clone(), ..GraphDef::default() }
    }

    /// A node that receives an argument or sends a result.
    fn exchanging(&self, op: &str, dtype: (&str, DType), what: &str, index: usize) -> NodeDef {
        let device = self.function.device.as_str();
        let attrs: [(&str, AttrValue); 6] = [
            (dtype.0, dtype.1.into()),
            ("tensor_name", format!("{what}_{index}").as_str().into()),
            ("send_device", device.into()),
            ("send_device_incarnation", (INCARNATION as i64).into()),
            ("recv_device", device.into()),
            ("client_terminated", true.into()),
        ];
        NodeDef {
            name: format!("{what}_{index}"),
            op: op.to_string(),
            device: device.to_string(),
            attrs: attrs.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            ..NodeDef::default()
        }
    }
}

fn take(received: &mut Vec<(String, Tensor)>, key: &str) -> Result<Tensor> {
    let place = received.iter().position(|(found, _)| found == key);
    let place = place.ok_or_else(|| internal!("The answer of a function on another task has no {key}"))?;
    Ok(received.swap_remove(place).1)
}
