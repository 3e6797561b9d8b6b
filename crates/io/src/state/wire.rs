//! Conversion of the checkpoint state message to the types of this crate.

use super::CheckpointState;
use crate::text::text_to_binary;
use prost::Message;
use proto::tensorflow as pb;
use status::{Result, invalid};

pub(super) fn parse_state(text: &str) -> Result<CheckpointState> {
    let bytes = text_to_binary("tensorflow.CheckpointState", text)?;
    let state = pb::CheckpointState::decode(bytes).map_err(|error| invalid!("not a checkpoint state: {error}"))?;
    let preserved = state.last_preserved_timestamp;
    Ok(CheckpointState {
        model_checkpoint_path: state.model_checkpoint_path,
        all_model_checkpoint_paths: state.all_model_checkpoint_paths,
        all_model_checkpoint_timestamps: state.all_model_checkpoint_timestamps,
        last_preserved_timestamp: (preserved != 0.0).then_some(preserved),
    })
}
