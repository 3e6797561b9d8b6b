//! Saved models: a graph, the values of its variables, and names for what goes in and comes out.

mod builder;
mod loader;

pub use builder::{MetaGraphOptions, SavedModelBuilder};
pub use io::saved_model::{Signature, TensorInfo};
pub use loader::{Loaded, load, load_on};

use graph::Output;
use io::saved_model::TensorName;

/// The tag of graphs that answer requests.
pub const SERVING: &str = "serve";
/// The tag of graphs that learn.
pub const TRAINING: &str = "train";
/// The signature that is called if none is named.
pub const DEFAULT_SIGNATURE: &str = "serving_default";
/// The kind of call that takes and gives any tensors.
pub const PREDICT: &str = "tensorflow/serving/predict";

/// The collection of the node that is run after variables were restored.
const MAIN_OP: &str = "saved_model_main_op";
/// The signature that means that node.
const INIT_OP_SIGNATURE: &str = "__saved_model_init_op";

/// A way to call a model: names for what goes in and what comes out.
pub fn predict_signature<'a>(
    inputs: impl IntoIterator<Item = (&'a str, &'a Output)>,
    outputs: impl IntoIterator<Item = (&'a str, &'a Output)>,
) -> Signature {
    let infos = |(name, output): (&str, &Output)| (name.to_string(), tensor_info(output));
    Signature {
        method: PREDICT.to_string(),
        inputs: inputs.into_iter().map(infos).collect(),
        outputs: outputs.into_iter().map(infos).collect(),
        defaults: Default::default(),
    }
}

/// What a signature says of a tensor.
pub fn tensor_info(output: &Output) -> TensorInfo {
    TensorInfo { tensor: TensorName::Dense(output.name()), dtype: output.dtype(), shape: output.shape() }
}
