//! Stochastic dual coordinate ascent for linear models (Shalev-Shwartz and Zhang, 2013).

mod examples;
pub(crate) mod fprint;
mod loss;
mod model;
mod sample;
pub(crate) mod shrink;

use examples::Examples;
use graph::{AttrValue, ShapeQuery};
use loss::{Example, Loss};
use model::{Model, Regularization};
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, Value, many};
use sample::order;
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const STEPS: &[Op] = &[
    Op {
        def: "SdcaOptimizer(sparse_example_indices: num_sparse_features * int64, sparse_feature_indices: \
              num_sparse_features * int64, sparse_feature_values: num_sparse_features_with_values * float, \
              dense_features: num_dense_features * float, example_weights: float, example_labels: float, \
              sparse_indices: num_sparse_features * int64, sparse_weights: num_sparse_features * float, \
              dense_weights: num_dense_features * float, example_state_data: float) -> out_example_state_data: float, \
              out_delta_sparse_weights: num_sparse_features * float, out_delta_dense_weights: num_dense_features * \
              float; loss_type: {\"logistic_loss\", \"squared_loss\", \"hinge_loss\", \"smooth_hinge_loss\", \
              \"poisson_loss\"}; adaptative: bool = false; num_sparse_features: int >= 0; \
              num_sparse_features_with_values: int >= 0; num_dense_features: int >= 0; l1: float; l2: float; \
              num_loss_partitions: int >= 1; num_inner_iterations: int >= 1",
        shape,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "adaptative"),
        facts: PLAIN,
    },
    Op {
        def: "SdcaOptimizerV2(sparse_example_indices: num_sparse_features * int64, sparse_feature_indices: \
              num_sparse_features * int64, sparse_feature_values: num_sparse_features_with_values * float, \
              dense_features: num_dense_features * float, example_weights: float, example_labels: float, \
              sparse_indices: num_sparse_features * int64, sparse_weights: num_sparse_features * float, \
              dense_weights: num_dense_features * float, example_state_data: float) -> out_example_state_data: float, \
              out_delta_sparse_weights: num_sparse_features * float, out_delta_dense_weights: num_dense_features * \
              float; loss_type: {\"logistic_loss\", \"squared_loss\", \"hinge_loss\", \"smooth_hinge_loss\", \
              \"poisson_loss\"}; adaptive: bool = false; num_sparse_features: int >= 0; \
              num_sparse_features_with_values: int >= 0; num_dense_features: int >= 0; l1: float; l2: float; \
              num_loss_partitions: int >= 1; num_inner_iterations: int >= 1",
        shape,
        grad: Grad::Stop,
        kernel: |setup| kernel(setup, "adaptive"),
        facts: PLAIN,
    },
];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let groups = |name: &str| match query.attr(name) {
        Ok(AttrValue::Int(count)) => usize::try_from(*count).unwrap_or(0),
        _ => 0,
    };
    let weights = groups("num_sparse_features") + groups("num_dense_features");
    let last = query.inputs.len().saturating_sub(1);
    let mut shapes = vec![PartialShape::new(&[-1, 4])];
    shapes.extend_from_slice(&query.inputs[last.saturating_sub(weights)..last]);
    Ok(shapes)
}

/// The attributes.
struct Options {
    loss: Loss,
    adaptive: bool,
    /// The numbers of groups of sparse features, of those with values, and of dense features.
    groups: [usize; 3],
    partitions: f64,
    regularization: Regularization,
}

fn kernel(setup: &Setup<'_>, adaptive: &str) -> Result<Kernel> {
    let count = |name: &str| setup.int(name).map(|count| usize::try_from(count).unwrap_or(0));
    let groups =
        [count("num_sparse_features")?, count("num_sparse_features_with_values")?, count("num_dense_features")?];
    if groups[0] + groups[2] == 0 {
        return Err(invalid!("Requires at least one feature to train."));
    }
    let options = Options {
        loss: Loss::named(&setup.string("loss_type")?)?,
        adaptive: setup.bool(adaptive)?,
        groups,
        partitions: setup.int("num_loss_partitions")? as f64,
        regularization: Regularization::new(setup.float("l1")?, setup.float("l2")?),
    };
    Ok(many(move |_, inputs| options.run(inputs)).heavy())
}

impl Options {
    fn run(&self, mut inputs: Inputs) -> Result<Outputs> {
        let [sparse, valued, dense] = self.groups;
        let mut next = 0;
        let mut take = |count: usize| {
            next += count;
            inputs.tensors(next - count, count)
        };
        let features = [take(sparse)?, take(sparse)?, take(valued)?, take(dense)?];
        let (weights, labels) = (take(1)?, take(1)?);
        let (places, sparse_weights, dense_weights) = (take(sparse)?, take(sparse)?, take(dense)?);
        let mut state = take(1)?;
        let mut model = Model::new(&places, &sparse_weights, &dense_weights)?;
        let examples = Examples::new(&features, &weights[0], &labels[0], &model)?;
        check_state(&state[0], examples.len())?;
        self.step(&mut model, &examples, state[0].values_mut::<f32>()?)?;
        state.append(&mut model.into_deltas()?);
        Ok(state.into_iter().map(Value::from).collect())
    }

    /// Improves the dual variable of each example, in random order.
    fn step(&self, model: &mut Model<'_>, examples: &Examples<'_>, state: &mut [f32]) -> Result<()> {
        let order = order(self, model, examples, state)?;
        for number in order {
            let row = &mut state[number * 4..][..4];
            let (dual, weight) = (f64::from(row[0]), f64::from(examples.weights[number]));
            let label = self.loss.label(examples.labels[number])?;
            let (predicted, previous) = self.predictions(model, examples, number);
            let example = Example { label, weight, dual };
            let norm = examples.norms[number] / self.regularization.l2();
            let new = self.loss.updated_dual(&example, self.partitions * norm * weight, predicted);
            examples.add_to(model, number, (new - dual) * weight / self.regularization.l2());
            row[0] = new as f32;
            row[1] = self.loss.primal(&example, previous) as f32;
            row[2] = self.loss.dual(&example) as f32;
            row[3] = weight as f32;
        }
        Ok(())
    }

    /// What the changed weights predict for an example, and what the weights before this step do.
    fn predictions(&self, model: &Model<'_>, examples: &Examples<'_>, number: usize) -> (f64, f64) {
        examples.predictions(model, number, self.partitions as f32, &self.regularization)
    }
}

fn check_state(state: &Tensor, examples: usize) -> Result<()> {
    if state.shape().rank() != 2 {
        return Err(invalid!("example_state_data must be rank 2 but is rank {}", state.shape().rank()));
    }
    match state.shape().dims() == [examples, 4] {
        true => Ok(()),
        false => Err(invalid!("Expected shape [{examples},4] for example_state_data, got {}", state.shape())),
    }
}
