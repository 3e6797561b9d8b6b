//! Messages written by real TensorFlow and by this crate survive decoding and encoding.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use prost::bytes::Bytes;
use prost::{DecodeError, Message, Name};

use crate::tensorflow::*;

/// The bytes of a message after decoding and encoding.
type Survivor = fn(&[u8]) -> Result<Vec<u8>, DecodeError>;

fn survivor<M: Message + Name + Default>() -> (String, Survivor) {
    (M::full_name(), |bytes| Ok(M::decode(bytes)?.encode_to_vec()))
}

macro_rules! survivors {
    ($($message:ty),* $(,)?) => { BTreeMap::from([$(survivor::<$message>()),*]) };
}

macro_rules! enums {
    ($($name:literal: $enum:ty),* $(,)?) => {
        BTreeMap::from([$(($name, (|value| <$enum>::from_str_name(value).map(i32::from)) as fn(&str) -> Option<i32>)),*])
    };
}

#[test]
fn tensorflow_bytes_survive() {
    let survivors = messages();
    let mut seen = BTreeSet::new();
    for (name, bytes) in records() {
        let survived = survivors[&name](&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(survived, bytes, "{name}");
        seen.insert(name);
    }
    assert!(seen.iter().eq(survivors.keys()), "fixtures and table differ");
}

#[test]
fn enums_are_numbered_as_in_tensorflow() {
    let enums = enums();
    let text = fs::read_to_string(fixtures().join("enums.txt")).unwrap();
    for line in text.lines() {
        let [name, value, number] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(enums[name](value), number.parse().ok(), "{line}");
    }
}

#[test]
fn bytes_are_slices_of_the_message() {
    let content = Bytes::from(vec![7; 1 << 12]);
    let tensor = TensorProto { tensor_content: content.clone(), ..Default::default() };
    let message = Bytes::from(RecvTensorResponse { tensor: Some(tensor), ..Default::default() }.encode_to_vec());
    let decoded = RecvTensorResponse::decode(message.clone()).unwrap().tensor.unwrap();
    assert_eq!(decoded.tensor_content, content);
    assert!(message.as_ptr_range().contains(&decoded.tensor_content.as_ptr()));
}

#[test]
fn maps_encode_in_the_order_of_keys() {
    let attr = |number| AttrValue { value: Some(attr_value::Value::I(number)) };
    let node = |keys: [&str; 3]| NodeDef { attr: keys.map(|key| (key.into(), attr(1))).into(), ..Default::default() };
    assert_eq!(node(["a", "b", "c"]).encode_to_vec(), node(["c", "a", "b"]).encode_to_vec());
}

#[test]
fn a_type_url_names_the_message() {
    assert_eq!(RecvBufRespExtra::type_url(), "type.googleapis.com/tensorflow.RecvBufRespExtra");
}

fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// Name and bytes of every message in the fixtures.
fn records() -> Vec<(String, Vec<u8>)> {
    let mut records = Vec::new();
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            let data = fs::read(path).unwrap();
            let mut rest = &data[..];
            while !rest.is_empty() {
                let name = String::from_utf8(part(&mut rest)).unwrap();
                records.push((name, part(&mut rest)));
            }
        }
    }
    records
}

/// Removes a length prefix and the bytes it announces from the front.
fn part(rest: &mut &[u8]) -> Vec<u8> {
    let (length, tail) = rest.split_first_chunk().unwrap();
    let (part, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
    *rest = tail;
    part.to_vec()
}

fn messages() -> BTreeMap<String, Survivor> {
    survivors![
        AttrValue,
        attr_value::ListValue,
        NameAttrList,
        BundleHeaderProto,
        BundleEntryProto,
        CheckpointState,
        data::CompressedComponentMetadata,
        data::CompressedElement,
        data::UncompressedElement,
        data::AutotuneOptions,
        data::DistributeOptions,
        data::OptimizationOptions,
        data::ServiceOptions,
        data::ThreadingOptions,
        data::Options,
        JobDef,
        ClusterDef,
        TaskDeviceFilters,
        JobDeviceFilters,
        ClusterDeviceFilters,
        GpuOptions,
        gpu_options::Experimental,
        gpu_options::experimental::VirtualDevices,
        gpu_options::experimental::StreamMergeOptions,
        OptimizerOptions,
        GraphOptions,
        ThreadPoolOptionProto,
        RpcOptions,
        SessionMetadata,
        CoordinatedJob,
        CoordinationServiceConfig,
        ConfigProto,
        config_proto::Experimental,
        BatchingOptions,
        RunOptions,
        run_options::Experimental,
        run_options::experimental::RunHandlerPoolOptions,
        RunMetadata,
        run_metadata::FunctionGraphs,
        TensorConnection,
        CallableOptions,
        ValuesDef,
        ControlFlowContextDef,
        CondContextDef,
        WhileContextDef,
        DebugTensorWatch,
        DebugOptions,
        DebuggedSourceFile,
        DebuggedSourceFiles,
        InterconnectLink,
        LocalLinks,
        DeviceLocality,
        DeviceAttributes,
        core::platform::ErrorSourceProto,
        Event,
        SourceMetadata,
        LogMessage,
        SessionLog,
        TaggedRunMetadata,
        BytesList,
        FloatList,
        Int64List,
        Feature,
        Features,
        FeatureList,
        FeatureLists,
        Example,
        SequenceExample,
        VersionDef,
        NodeDef,
        node_def::ExperimentalDebugInfo,
        FunctionDefLibrary,
        FunctionDef,
        function_def::ArgAttrs,
        GradientDef,
        RegisteredGradient,
        GraphDef,
        GraphDebugInfo,
        graph_debug_info::FileLineCol,
        graph_debug_info::StackTrace,
        CreateSessionRequest,
        CreateSessionResponse,
        ExtendSessionRequest,
        ExtendSessionResponse,
        PartialRunSetupRequest,
        PartialRunSetupResponse,
        RunStepRequest,
        RunStepResponse,
        CloseSessionRequest,
        CloseSessionResponse,
        ListDevicesRequest,
        ListDevicesResponse,
        ResetRequest,
        ResetResponse,
        MakeCallableRequest,
        MakeCallableResponse,
        RunCallableRequest,
        RunCallableResponse,
        ReleaseCallableRequest,
        ReleaseCallableResponse,
        SaverDef,
        CollectionDef,
        collection_def::NodeList,
        collection_def::BytesList,
        collection_def::Int64List,
        collection_def::FloatList,
        collection_def::AnyList,
        TensorInfo,
        tensor_info::CooSparse,
        tensor_info::CompositeTensor,
        SignatureDef,
        AssetFileDef,
        MetaGraphDef,
        meta_graph_def::MetaInfoDef,
        OpDef,
        op_def::ArgDef,
        op_def::AttrDef,
        OpDeprecation,
        OpList,
        distributed_runtime::GrpcPayloadContainer,
        distributed_runtime::GrpcPayloadsLost,
        distributed_runtime::WorkerPossiblyRestarted,
        AutoParallelOptions,
        ScopedAllocatorOptions,
        VerifierConfig,
        RewriterConfig,
        rewriter_config::CustomGraphOptimizer,
        SavedModel,
        FingerprintDef,
        SavedSliceMeta,
        SavedTensorSliceMeta,
        SavedSlice,
        SavedTensorSlices,
        ServerDef,
        AllocationDescription,
        TensorDescription,
        AllocationRecord,
        AllocatorMemoryUsed,
        NodeOutput,
        MemoryStats,
        NodeExecStats,
        DeviceStepStats,
        StepStats,
        CostGraphDef,
        cost_graph_def::Node,
        cost_graph_def::node::InputInfo,
        cost_graph_def::node::OutputInfo,
        cost_graph_def::AggregatedCost,
        HistogramProto,
        SummaryDescription,
        SummaryMetadata,
        summary_metadata::PluginData,
        Summary,
        summary::Image,
        summary::Audio,
        summary::Value,
        TensorShapeProto,
        tensor_shape_proto::Dim,
        TensorProto,
        VariantTensorDataProto,
        ResourceHandleProto,
        resource_handle_proto::DtypeAndShape,
        NamedTensorProto,
        TensorSliceProto,
        tensor_slice_proto::Extent,
        SerializedDType,
        FullTypeDef,
        SaveSliceInfoDef,
        VariableDef,
        QueueRunnerDef,
        GetStatusRequest,
        GetStatusResponse,
        CreateWorkerSessionRequest,
        CreateWorkerSessionResponse,
        DeleteWorkerSessionRequest,
        DeleteWorkerSessionResponse,
        RegisterGraphRequest,
        RegisterGraphResponse,
        DeregisterGraphRequest,
        DeregisterGraphResponse,
        RunGraphRequest,
        RunGraphResponse,
        CleanupGraphRequest,
        CleanupGraphResponse,
        CleanupAllRequest,
        CleanupAllResponse,
        RecvTensorRequest,
        RecvTensorResponse,
        MarkRecvFinishedRequest,
        MarkRecvFinishedResponse,
        LoggingRequest,
        LoggingResponse,
        TracingRequest,
        TracingResponse,
        RecvBufRequest,
        RecvBufResponse,
        GetStepSequenceRequest,
        GetStepSequenceResponse,
        CompleteGroupRequest,
        CompleteGroupResponse,
        CompleteInstanceRequest,
        CompleteInstanceResponse,
        ExecutorOpts,
        LabeledStepStats,
        TraceOpts,
        StepSequence,
        RecvBufRespExtra,
    ]
}

fn enums() -> BTreeMap<&'static str, fn(&str) -> Option<i32>> {
    enums![
        "tensorflow.BundleHeaderProto.Endianness": bundle_header_proto::Endianness,
        "tensorflow.OptimizerOptions.Level": optimizer_options::Level,
        "tensorflow.OptimizerOptions.GlobalJitLevel": optimizer_options::GlobalJitLevel,
        "tensorflow.ConfigProto.Experimental.MlirBridgeRollout": config_proto::experimental::MlirBridgeRollout,
        "tensorflow.RunOptions.TraceLevel": run_options::TraceLevel,
        "tensorflow.error.Code": error::Code,
        "tensorflow.core.platform.ErrorSourceProto.ErrorSource": core::platform::error_source_proto::ErrorSource,
        "tensorflow.LogMessage.Level": log_message::Level,
        "tensorflow.SessionLog.SessionStatus": session_log::SessionStatus,
        "tensorflow.SaverDef.CheckpointFormatVersion": saver_def::CheckpointFormatVersion,
        "tensorflow.VerifierConfig.Toggle": verifier_config::Toggle,
        "tensorflow.RewriterConfig.Toggle": rewriter_config::Toggle,
        "tensorflow.RewriterConfig.CpuLayout": rewriter_config::CpuLayout,
        "tensorflow.RewriterConfig.NumIterationsType": rewriter_config::NumIterationsType,
        "tensorflow.RewriterConfig.MemOptType": rewriter_config::MemOptType,
        "tensorflow.data.AutoShardPolicy": data::AutoShardPolicy,
        "tensorflow.data.ExternalStatePolicy": data::ExternalStatePolicy,
        "tensorflow.DataClass": DataClass,
        "tensorflow.DataType": DataType,
        "tensorflow.FullTypeId": FullTypeId,
        "tensorflow.VariableSynchronization": VariableSynchronization,
        "tensorflow.VariableAggregation": VariableAggregation,
    ]
}
