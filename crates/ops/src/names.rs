//! Names of ops by which programs find nodes in a graph that they did not build.

/// Writes tensors to a checkpoint.
pub const SAVE_V2: &str = "SaveV2";
/// Reads tensors from a checkpoint.
pub const RESTORE_V2: &str = "RestoreV2";
/// Names one of several files of a checkpoint.
pub const SHARDED_FILENAME: &str = "ShardedFilename";
/// Add to a variable, through a handle or a reference.
pub const ASSIGN_ADD: [&str; 2] = ["AssignAddVariableOp", "AssignAdd"];
/// Report whether a variable has a value, through a handle or a reference.
pub const IS_INITIALIZED: [&str; 2] = ["VarIsInitializedOp", "IsVariableInitialized"];

/// True for ops that create a queue with a resource handle.
pub fn creates_queue(op: &str) -> bool {
    op.ends_with("QueueV2")
}

/// True for ops that create a gradient accumulator.
pub fn creates_accumulator(op: &str) -> bool {
    op.ends_with("ConditionalAccumulator")
}
