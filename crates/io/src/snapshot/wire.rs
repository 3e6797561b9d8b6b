//! The metadata of saved datasets as a protobuf message.

use super::Metadata;
use crate::fs::data_loss;
use prost::Message;
use status::Result;
use tensor::DType;

#[derive(Clone, PartialEq, Message)]
struct SnapshotMetadataRecord {
    #[prost(string, tag = "1")]
    graph_hash: String,
    #[prost(string, tag = "2")]
    run_id: String,
    #[prost(int64, tag = "3")]
    creation_timestamp: i64,
    #[prost(int64, tag = "4")]
    version: i64,
    #[prost(int32, repeated, tag = "5")]
    dtype: Vec<i32>,
    #[prost(int64, tag = "6")]
    num_elements: i64,
    #[prost(bool, tag = "1000")]
    finalized: bool,
}

pub(super) fn encode(metadata: &Metadata) -> Vec<u8> {
    SnapshotMetadataRecord {
        graph_hash: metadata.graph_hash.clone(),
        run_id: metadata.run.clone(),
        creation_timestamp: metadata.created,
        version: metadata.version,
        dtype: metadata.types.iter().map(|dtype| dtype.number()).collect(),
        num_elements: metadata.elements,
        finalized: metadata.is_complete,
    }
    .encode_to_vec()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Metadata> {
    let message = SnapshotMetadataRecord::decode(bytes)
        .map_err(|error| data_loss(format!("Can't parse the metadata of a snapshot as binary proto: {error}")))?;
    Ok(Metadata {
        graph_hash: message.graph_hash,
        run: message.run_id,
        created: message.creation_timestamp,
        version: message.version,
        types: message.dtype.into_iter().map(DType::from_number).collect(),
        elements: message.num_elements,
        is_complete: message.finalized,
    })
}
