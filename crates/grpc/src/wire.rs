//! Converts the messages of the two services to the types of `cluster`, and back.

pub(crate) mod buffers;
pub(crate) mod collectives;
pub(crate) mod extensions;
pub(crate) mod message_reader;
pub(crate) mod recv_batch;
pub(crate) mod recv_tensor;
pub(crate) mod server_def;
pub(crate) mod session_options;
pub(crate) mod stats;
pub(crate) mod tensor_list;
pub(crate) mod tensor_stream;

use bytes::Bytes;
use cluster::{
    CallableOptions, ClusterSpec, CreateWorkerSession, DeviceAttributes, RecvTensor, RegisterGraph, RunGraph,
    RunGraphAnswer, RunMetadata, RunOptions, RunStep, RunStepAnswer, SessionConfig, Task,
};
use prost::Message;
use proto::tensorflow as pb;
use proto::tensorflow::config_proto::Experimental;
use stats::{decode_run_metadata, decode_stats, encode_stats, run_metadata};
use status::{Code, Error, Result};
use std::time::Duration;
use tensor::wire::{decode_shape, decode_tensor};
use tensor::{Buffer, DType, Tensor};

/// The longest error text in a gRPC header.
const MAX_TEXT: usize = 3072;

/// The payload of an error that is only a consequence of another one.
const DERIVED: &str = "type.googleapis.com/tensorflow.DerivedStatus";
/// The payload of an error that says that the task may have restarted.
const RESTARTED: &str = "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted";

/// An error as gRPC carries it.
pub(crate) fn status(error: Error) -> tonic::Status {
    let details = details(&error);
    let mut text = error.message;
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(" ... [truncated]");
    }
    tonic::Status::with_details(tonic::Code::from_i32(error.code as i32), text, details)
}

/// The payloads of an error, besides its code and text.
fn details(error: &Error) -> bytes::Bytes {
    let mut payloads = pb::distributed_runtime::GrpcPayloadContainer::default();
    if error.derived {
        payloads.payloads.insert(DERIVED.to_string(), bytes::Bytes::new());
    }
    let restarted = ["Session handle is not found: ", "RecvTensor expects a different device incarnation: "];
    if error.code == Code::Aborted && restarted.iter().any(|text| error.message.starts_with(text)) {
        payloads.payloads.insert(RESTARTED.to_string(), bytes::Bytes::new());
    }
    payloads.encode_to_vec().into()
}

/// An error from gRPC's status.
pub(crate) fn error(status: tonic::Status) -> Error {
    let details = pb::distributed_runtime::GrpcPayloadContainer::decode(status.details());
    let mut error = Error::new(Code::from_number(status.code() as i32), status.message());
    error.derived = details.is_ok_and(|details| details.payloads.contains_key(DERIVED));
    error
}

pub(crate) fn device_attributes(device: DeviceAttributes) -> pb::DeviceAttributes {
    pb::DeviceAttributes {
        name: device.name,
        device_type: device.kind,
        memory_limit: device.memory_limit,
        incarnation: device.incarnation,
        locality: Some(pb::DeviceLocality::default()),
        ..pb::DeviceAttributes::default()
    }
}

pub(crate) fn decode_device(device: pb::DeviceAttributes) -> DeviceAttributes {
    DeviceAttributes {
        name: device.name,
        kind: device.device_type,
        memory_limit: device.memory_limit,
        incarnation: device.incarnation,
    }
}

/// The task whose devices an answer lists.
pub(crate) fn answering_task(answer: pb::GetStatusResponse) -> Option<String> {
    let device = graph::DeviceSpec::parse(&answer.device_attributes.first()?.name).ok()?;
    Task::of_device(&device).map(|task| task.to_string())
}

fn milliseconds(number: i64) -> Option<Duration> {
    u64::try_from(number).ok().filter(|&ms| ms > 0).map(Duration::from_millis)
}

/// TensorFlow's executor that knows no control flow: with it, conditionals stay functions.
const SINGLE_THREADED: &str = "SINGLE_THREADED_EXECUTOR";

pub(crate) fn session_config(config: pb::ConfigProto, target: String) -> Result<SessionConfig> {
    session_options::warn_of_ignored(&config);
    let graph_options = config.graph_options.unwrap_or_default();
    let rewrite = graph_options.rewrite_options.unwrap_or_default();
    let level = graph_options.optimizer_options.map_or(0, |options| options.opt_level);
    let cluster = config.cluster_def.filter(|def| !def.job.is_empty()).map(cluster_spec).transpose()?;
    let executor = config.experimental.as_ref().map_or("", |options| &options.executor_type);
    let leader = config.experimental.as_ref().map_or("", |options| &options.collective_group_leader);
    Ok(SessionConfig {
        functional_conditionals: executor == SINGLE_THREADED,
        collective_group_leader: leader.to_string(),
        device_filters: config.device_filters,
        soft_placement: config.allow_soft_placement,
        log_placement: config.log_device_placement,
        isolate_state: is_isolated(config.isolate_session_state, cluster.is_some(), config.experimental.as_ref()),
        step_timeout: milliseconds(config.operation_timeout_in_ms),
        inter_op_threads: config.inter_op_parallelism_threads.max(0) as usize,
        intra_op_threads: config.intra_op_parallelism_threads.max(0) as usize,
        device_count: config.device_count.into_iter().map(|(kind, count)| (kind, count.max(0) as usize)).collect(),
        target,
        cluster,
        no_rewriting: rewrite.disable_meta_optimizer && level < 0,
        cost_graph_every: graph_options.build_cost_model,
        cost_graph_after: graph_options.build_cost_model_after,
        ..SessionConfig::default()
    })
}

pub(crate) fn encode_session_config(config: &SessionConfig) -> pb::ConfigProto {
    pb::ConfigProto {
        device_filters: config.device_filters.clone(),
        allow_soft_placement: config.soft_placement,
        log_device_placement: config.log_placement,
        isolate_session_state: config.isolate_state,
        operation_timeout_in_ms: config.step_timeout.map_or(0, |time| time.as_millis() as i64),
        inter_op_parallelism_threads: config.inter_op_threads as i32,
        intra_op_parallelism_threads: config.intra_op_threads as i32,
        device_count: config.device_count.iter().map(|(kind, count)| (kind.clone(), *count as i32)).collect(),
        cluster_def: config.cluster.as_ref().map(encode_cluster),
        experimental: experimental(config),
        graph_options: (config.cost_graph_every > 0).then(|| pb::GraphOptions {
            build_cost_model: config.cost_graph_every,
            build_cost_model_after: config.cost_graph_after,
            ..pb::GraphOptions::default()
        }),
        ..pb::ConfigProto::default()
    }
}

/// Whether a session has resources of its own. A session that brings its cluster has, unless it asks to share them.
fn is_isolated(asked: bool, own_cluster: bool, options: Option<&Experimental>) -> bool {
    let shared = options.is_some_and(|options| options.share_session_state_in_clusterspec_propagation);
    if own_cluster { !shared } else { asked }
}

fn experimental(config: &SessionConfig) -> Option<Experimental> {
    let options = Experimental {
        share_session_state_in_clusterspec_propagation: config.cluster.is_some() && !config.isolate_state,
        collective_group_leader: config.collective_group_leader.clone(),
        ..Experimental::default()
    };
    (config.cluster.is_some() || options != Experimental::default()).then_some(options)
}

fn cluster_spec(def: pb::ClusterDef) -> Result<ClusterSpec> {
    let mut spec = ClusterSpec::new();
    for job in def.job {
        for (index, address) in job.tasks {
            spec = spec.with_task(&job.name, task_number(index)?, &address)?;
        }
    }
    Ok(spec)
}

fn task_number(index: i32) -> Result<u32> {
    u32::try_from(index).map_err(|_| status::invalid!("Task {index} of a cluster: task indexes start at 0"))
}

fn encode_cluster(spec: &ClusterSpec) -> pb::ClusterDef {
    let job = |name: &str| pb::JobDef {
        name: name.to_string(),
        tasks: spec.job(name).into_iter().flatten().map(|(&index, address)| (index as i32, address.clone())).collect(),
    };
    pb::ClusterDef { job: spec.jobs().map(job).collect() }
}

fn run_options(options: pb::RunOptions) -> RunOptions {
    RunOptions {
        timeout: milliseconds(options.timeout_in_ms),
        trace: options.trace_level > 0,
        partition_graphs: options.output_partition_graphs,
        collective_graph_key: options.experimental.map_or(0, |options| options.collective_graph_key),
    }
}

/// Tensors with names, whose contents may be separate from their message.
fn named(
    tensors: Vec<pb::NamedTensorProto>,
    mut content: impl FnMut(usize) -> Option<Buffer>,
) -> Result<Vec<(String, Tensor)>> {
    let tensors = tensors.into_iter().enumerate();
    tensors.map(|(place, named)| Ok((named.name, with_content(named.tensor, content(place))?))).collect()
}

/// A tensor whose content may be separate from its message.
fn with_content(message: Option<pb::TensorProto>, content: Option<Buffer>) -> Result<Tensor> {
    let mut message = message.unwrap_or_default();
    let Some(content) = content else { return decode_tensor(message) };
    let dtype = DType::from_number(message.dtype).base();
    if dtype.is_plain() {
        return Tensor::from_buffer(dtype, decode_shape(message.tensor_shape.as_ref())?, content);
    }
    message.tensor_content = content.to_bytes();
    decode_tensor(message)
}

/// The layout of a step's request.
pub(crate) const RUN_STEP: message_reader::Layout = request(&[2, 2, 4]);
/// The layout of a callable's request.
pub(crate) const RUN_CALLABLE: message_reader::Layout = request(&[3, 4]);
/// The layout of a RunGraph request.
pub(crate) const RUN_GRAPH: message_reader::Layout = request(&[3, 2, 4]);

/// The layouts of answers.
pub(crate) const RUN_STEP_ANSWER: message_reader::Layout = answer(&[1, 2, 4]);
pub(crate) const RUN_CALLABLE_ANSWER: message_reader::Layout = answer(&[1, 4]);
pub(crate) const RUN_GRAPH_ANSWER: message_reader::Layout = answer(&[1, 2, 4]);

/// Smaller contents of tensors stay in the message.
const SEPARATE_FROM: usize = 16 << 10;

const fn request(path: &'static [u64]) -> message_reader::Layout {
    message_reader::Layout {
        path,
        separate_from: SEPARATE_FROM,
        broken: |what| status::invalid!("The request cannot be read: {what}"),
    }
}

const fn answer(path: &'static [u64]) -> message_reader::Layout {
    message_reader::Layout {
        path,
        separate_from: SEPARATE_FROM,
        broken: |what| status::internal!("The answer cannot be read: {what}"),
    }
}

/// The list of feeds in a request.
const fn feeds(field: u8) -> tensor_list::List {
    tensor_list::List {
        field,
        too_long: |length| {
            status::exhausted!("The feeds of this step have {length} bytes, and a request holds at most 2 GiB")
        },
    }
}

pub(crate) fn tensors_with_content(
    tensors: Vec<pb::TensorProto>,
    mut content: impl FnMut(usize) -> Option<Buffer>,
) -> Result<Vec<Tensor>> {
    tensors.into_iter().enumerate().map(|(place, message)| with_content(Some(message), content(place))).collect()
}

pub(crate) fn run_step(request: pb::RunStepRequest, content: impl FnMut(usize) -> Option<Buffer>) -> Result<RunStep> {
    Ok(RunStep {
        feeds: named(request.feed, content)?,
        fetches: request.fetch,
        targets: request.target,
        options: run_options(request.options.unwrap_or_default()),
        partial: (!request.partial_run_handle.is_empty()).then_some(request.partial_run_handle),
    })
}

fn encode_run_options(options: &RunOptions) -> pb::RunOptions {
    pb::RunOptions {
        timeout_in_ms: options.timeout.map_or(0, |time| time.as_millis() as i64),
        trace_level: if options.trace { 3 } else { 0 },
        output_partition_graphs: options.partition_graphs,
        experimental: (options.collective_graph_key != 0).then(|| pb::run_options::Experimental {
            collective_graph_key: options.collective_graph_key,
            ..pb::run_options::Experimental::default()
        }),
        ..pb::RunOptions::default()
    }
}

pub(crate) fn encode_run_step(session: &str, step: RunStep) -> Result<Vec<Bytes>> {
    let rest = pb::RunStepRequest {
        session_handle: session.to_string(),
        feed: Vec::new(),
        fetch: step.fetches,
        target: step.targets,
        options: Some(encode_run_options(&step.options)),
        partial_run_handle: step.partial.unwrap_or_default(),
        store_errors_in_response_body: true,
        request_id: 0,
    };
    tensor_list::encode(&feeds(2), &step.feeds, &rest)
}

pub(crate) fn encode_run_callable(session: &str, handle: i64, tensors: &[Tensor]) -> Result<Vec<Bytes>> {
    let session_handle = session.to_string();
    let rest = pb::RunCallableRequest { session_handle, handle, ..pb::RunCallableRequest::default() };
    tensor_list::encode(&feeds(3), tensors, &rest)
}

pub(crate) fn run_step_answer(answer: RunStepAnswer) -> Result<Vec<Bytes>> {
    let metadata = Some(run_metadata(answer.metadata));
    tensor_list::encode_answer(&answer.tensors, &pb::RunStepResponse { metadata, ..pb::RunStepResponse::default() })
}

pub(crate) fn run_step_error(error: Error) -> pb::RunStepResponse {
    pb::RunStepResponse {
        status_code: error.code as i32,
        status_error_message: error.message,
        ..pb::RunStepResponse::default()
    }
}

pub(crate) fn decode_run_step_answer(
    answer: pb::RunStepResponse,
    mut content: impl FnMut(usize) -> Option<Buffer>,
) -> Result<RunStepAnswer> {
    if answer.status_code != 0 {
        return Err(Error::new(Code::from_number(answer.status_code), answer.status_error_message));
    }
    let metadata = decode_run_metadata(answer.metadata.unwrap_or_default())?;
    let tensors = answer.tensor.into_iter().enumerate();
    let tensors = tensors.map(|(place, named)| Ok((named.name, with_content(named.tensor, content(place))?)));
    Ok(RunStepAnswer { tensors: tensors.collect::<Result<_>>()?, metadata })
}

/// The metadata of a step as a RunMetadata message, as event files store it.
pub fn run_metadata_message(metadata: &RunMetadata) -> tensor::Bytes {
    run_metadata(metadata.clone()).encode_to_vec().into()
}

pub(crate) fn callable_options(options: pb::CallableOptions) -> CallableOptions {
    CallableOptions {
        has_devices: !options.feed_devices.is_empty() || !options.fetch_devices.is_empty(),
        feeds: options.feed,
        fetches: options.fetch,
        targets: options.target,
        run: run_options(options.run_options.unwrap_or_default()),
    }
}

pub(crate) fn encode_callable_options(options: CallableOptions) -> pb::CallableOptions {
    pb::CallableOptions {
        run_options: Some(encode_run_options(&options.run)),
        feed: options.feeds,
        fetch: options.fetches,
        target: options.targets,
        ..pb::CallableOptions::default()
    }
}

pub(crate) fn create_worker_session(request: pb::CreateWorkerSessionRequest) -> Result<CreateWorkerSession> {
    let server = request.server_def.unwrap_or_default();
    let own = Task { job: server.job_name, index: task_number(server.task_index)? };
    let cluster = match server.cluster.filter(|cluster| !cluster.job.is_empty()) {
        Some(cluster) => Some((cluster_spec(cluster)?, own)),
        None => None,
    };
    Ok(CreateWorkerSession {
        session: request.session_handle,
        isolate_state: request.isolate_session_state,
        master_task: request.master_task,
        master_incarnation: request.master_incarnation,
        cluster,
    })
}

pub(crate) fn encode_create_worker_session(request: CreateWorkerSession) -> pb::CreateWorkerSessionRequest {
    let server_def = request.cluster.map(|(cluster, own)| pb::ServerDef {
        cluster: Some(encode_cluster(&cluster)),
        job_name: own.job,
        task_index: own.index as i32,
        protocol: "grpc".to_string(),
        ..pb::ServerDef::default()
    });
    pb::CreateWorkerSessionRequest {
        session_handle: request.session,
        server_def: Some(server_def.unwrap_or_default()),
        isolate_session_state: request.isolate_state,
        master_task: request.master_task,
        master_incarnation: request.master_incarnation,
        ..pb::CreateWorkerSessionRequest::default()
    }
}

pub(crate) fn register_graph(request: pb::RegisterGraphRequest) -> Result<RegisterGraph> {
    Ok(RegisterGraph {
        session: if request.create_worker_session_called { request.session_handle } else { String::new() },
        graph: graph::wire::decode_graph(request.graph_def.unwrap_or_default())?,
        no_rewriting: false,
        collective_graph_key: request.collective_graph_key,
        collective_group_leader: leader_of(request.config_proto),
    })
}

/// The leader of collective groups that a session's configuration names.
fn leader_of(config: Option<pb::ConfigProto>) -> String {
    config.and_then(|config| config.experimental).map_or(String::new(), |options| options.collective_group_leader)
}

pub(crate) fn encode_register_graph(request: RegisterGraph) -> pb::RegisterGraphRequest {
    pb::RegisterGraphRequest {
        create_worker_session_called: !request.session.is_empty(),
        session_handle: request.session,
        graph_def: Some(graph::wire::encode_graph(&request.graph)),
        graph_options: Some(pb::GraphOptions::default()),
        config_proto: Some(pb::ConfigProto {
            experimental: (!request.collective_group_leader.is_empty()).then(|| Experimental {
                collective_group_leader: request.collective_group_leader,
                ..Experimental::default()
            }),
            ..pb::ConfigProto::default()
        }),
        collective_graph_key: request.collective_graph_key,
        ..pb::RegisterGraphRequest::default()
    }
}

/// The session and the graph in it.
pub(crate) fn deregister_graph(request: pb::DeregisterGraphRequest) -> (String, String) {
    let session = if request.create_worker_session_called { request.session_handle } else { String::new() };
    (session, request.graph_handle)
}

pub(crate) fn encode_deregister_graph(session: String, graph: String) -> pb::DeregisterGraphRequest {
    pb::DeregisterGraphRequest {
        create_worker_session_called: !session.is_empty(),
        session_handle: session,
        graph_handle: graph,
    }
}

pub(crate) fn run_graph(
    request: pb::RunGraphRequest,
    content: impl FnMut(usize) -> Option<Buffer>,
) -> Result<RunGraph> {
    Ok(RunGraph {
        session: if request.create_worker_session_called { request.session_handle } else { String::new() },
        graph: request.graph_handle,
        step_id: request.step_id as u64,
        send: named(request.send, content)?,
        recv: request.recv_key,
        trace: request.exec_opts.is_some_and(|options| options.record_timeline || options.record_costs),
        partial: request.is_partial,
        last_partial: request.is_last_partial_run,
        request_id: request.request_id,
    })
}

/// A RunStep request as TensorFlow prints it.
pub(crate) fn describe_run_step(request: &pb::RunStepRequest) -> String {
    format!("session_handle: \"{}\" request_id: {}", request.session_handle, request.request_id)
}

pub(crate) fn get_status() -> pb::GetStatusRequest {
    pb::GetStatusRequest {}
}

pub(crate) fn encode_run_graph(request: RunGraph) -> Result<Vec<bytes::Bytes>> {
    let rest = pb::RunGraphRequest {
        create_worker_session_called: !request.session.is_empty(),
        session_handle: request.session,
        graph_handle: request.graph,
        step_id: request.step_id as i64,
        exec_opts: Some(pb::ExecutorOpts {
            record_timeline: request.trace,
            record_costs: request.trace,
            ..pb::ExecutorOpts::default()
        }),
        recv_key: request.recv,
        is_partial: request.partial,
        is_last_partial_run: request.last_partial,
        store_errors_in_response_body: true,
        request_id: request.request_id,
        send: Vec::new(),
    };
    tensor_list::encode(&feeds(3), &request.send, &rest)
}

pub(crate) fn run_graph_answer(answer: RunGraphAnswer) -> Result<Vec<bytes::Bytes>> {
    let rest = pb::RunGraphResponse {
        step_stats: (!answer.stats.is_empty()).then(|| encode_stats(answer.stats)),
        ..pb::RunGraphResponse::default()
    };
    tensor_list::encode_answer(&answer.recv, &rest)
}

pub(crate) fn run_graph_error(error: Error) -> pb::RunGraphResponse {
    pb::RunGraphResponse {
        status_code: error.code as i32,
        status_error_message: error.message,
        ..pb::RunGraphResponse::default()
    }
}

pub(crate) fn decode_run_graph_answer(
    answer: pb::RunGraphResponse,
    content: impl FnMut(usize) -> Option<Buffer>,
    derived: bool,
) -> Result<RunGraphAnswer> {
    if answer.status_code != 0 {
        let mut error = Error::new(Code::from_number(answer.status_code), answer.status_error_message);
        error.derived = derived || error.message.contains("[_Derived_]") || error.code == Code::Cancelled;
        return Err(error);
    }
    Ok(RunGraphAnswer {
        recv: named(answer.recv, content)?,
        stats: decode_stats(answer.step_stats.unwrap_or_default()),
    })
}

pub(crate) fn decode_recv_tensor(message: bytes::Bytes) -> Result<RecvTensor> {
    let bad = |error| status::invalid!("The request of RecvTensor cannot be read: {error}");
    let request = pb::RecvTensorRequest::decode(message).map_err(bad)?;
    let (step_id, key, request_id) = (request.step_id as u64, request.rendezvous_key, request.request_id);
    Ok(RecvTensor { step_id, key, request_id })
}

pub(crate) fn encode_recv_tensor(request: RecvTensor) -> Vec<u8> {
    let message = pb::RecvTensorRequest {
        step_id: request.step_id as i64,
        rendezvous_key: request.key,
        request_id: request.request_id,
        ..pb::RecvTensorRequest::default()
    };
    message.encode_to_vec()
}
