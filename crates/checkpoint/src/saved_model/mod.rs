//! Saved models: graphs, the values of their variables, and named signatures.

mod builder;
mod loader;

pub use builder::{MetaGraphOptions, SavedModelBuilder};
pub use io::saved_model::{Signature, TensorInfo};
pub use loader::{Loaded, load, load_on};

use graph::Output;
use io::saved_model::TensorName;

/// The tag of graphs for serving.
pub const SERVING: &str = "serve";
/// The tag of graphs for training.
pub const TRAINING: &str = "train";
/// The name of the default signature.
pub const DEFAULT_SIGNATURE: &str = "serving_default";
/// The method of signatures with any inputs and outputs.
pub const PREDICT: &str = "tensorflow/serving/predict";

/// The collection of the node to run after the variables were restored.
const MAIN_OP: &str = "saved_model_main_op";
/// The signature that names that node.
const INIT_OP_SIGNATURE: &str = "__saved_model_init_op";

/// A signature with these inputs and outputs.
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

/// The description of a tensor in a signature.
pub fn tensor_info(output: &Output) -> TensorInfo {
    TensorInfo { tensor: TensorName::Dense(output.name()), dtype: output.dtype(), shape: output.shape() }
}
