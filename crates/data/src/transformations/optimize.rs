//! ModelDataset, OptimizeDataset, OptimizeDatasetV2, RewriteDataset and NonSerializableDataset, which change how
//! TensorFlow runs a pipeline, and not its elements.

use super::pass_through::{Pass, PassThrough};
use crate::Pipeline;
use crate::attrs::{DATASET, dataset_kernel, dataset_ref_kernel, input_dataset, opaque_kernel, spec, string_scalar};
use crate::rewrite::{Rewrite, Rewrites, rewritten};
use op::shapes;
use op::{Grad, Inputs, Kernel, Op, Setup};
use status::{Result, invalid};
use std::sync::Arc;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ModelDataset(input_dataset: variant) -> handle: variant; algorithm: int = 0; cpu_budget: int = 0; \
              ram_budget: int = 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: model_kernel,
        facts: DATASET,
    },
    Op {
        def: "OptimizeDataset(input_dataset: variant, optimizations: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; optimization_configs: list(string) = []",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| optimize_kernel(setup, &["optimizations"]),
        facts: DATASET,
    },
    Op {
        def: "OptimizeDatasetV2(input_dataset: variant, optimizations_enabled: string, \
              optimizations_disabled: string, optimizations_default: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1; optimization_configs: list(string) = []",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: |setup| {
            optimize_kernel(setup, &["optimizations_enabled", "optimizations_disabled", "optimizations_default"])
        },
        facts: DATASET,
    },
    Op {
        def: "RewriteDataset(input_dataset: variant, rewrite_name: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: rewrite_kernel,
        facts: DATASET,
    },
    Op {
        def: "NonSerializableDataset(input_dataset: variant) -> handle: variant; output_types: list(type) >= 1; \
              output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: non_serializable_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalNonSerializableDataset(input_dataset: variant) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel: non_serializable_kernel,
        facts: DATASET,
    },
];

#[derive(Clone)]
struct Model {
    cpu_budget: Option<usize>,
    ram_budget: Option<u64>,
}

impl Model {
    /// Budgets of zero leave the choice to the runtime.
    fn of(setup: &Setup<'_>) -> Result<Model> {
        let budget = |name| setup.int(name).map(|budget| u64::try_from(budget).ok().filter(|&budget| budget > 0));
        let cpu_budget = budget("cpu_budget")?.and_then(|threads| usize::try_from(threads).ok());
        Ok(Model { cpu_budget, ram_budget: budget("ram_budget")? })
    }
}

impl Pass for Model {
    const KIND: &'static str = "Model";

    fn environment(&self, pipeline: &Arc<Pipeline>) -> Arc<Pipeline> {
        pipeline.with_budgets(self.cpu_budget, self.ram_budget)
    }
}

#[derive(Clone)]
struct NonSerializable;

impl Pass for NonSerializable {
    const KIND: &'static str = "NonSerializable";
}

fn model_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (spec, pass) = (spec(setup)?, Model::of(setup)?);
    dataset_kernel(setup, move |_, inputs| {
        Ok(PassThrough { input: input_dataset(inputs, 0)?, spec: spec.clone(), pass: pass.clone() })
    })
}

/// A dataset that TensorFlow compares with no other one.
fn non_serializable_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    opaque_kernel(move |_, inputs| {
        Ok(PassThrough { input: input_dataset(inputs, 0)?, spec: spec.clone(), pass: NonSerializable })
    })
}

/// The input, rewritten with those of the optimizations that have an effect here. The lists are those that are made, those
/// that are not, and those that are made unless they are in the second list.
fn optimize_kernel(setup: &Setup<'_>, names: &'static [&'static str]) -> Result<Kernel> {
    dataset_ref_kernel(setup, move |_, inputs| {
        let dataset = input_dataset(inputs, 0)?;
        let mut lists = Vec::new();
        for (place, name) in names.iter().enumerate() {
            check_list(inputs, 1 + place, name)?;
            let list = inputs.look(1 + place)?.strings()?;
            lists.push(list.iter().filter_map(|name| Rewrite::named(std::str::from_utf8(name).ok()?)).collect());
        }
        Ok(rewritten(&dataset, &selected(&lists)))
    })
}

fn selected(lists: &[Rewrites]) -> Rewrites {
    match lists {
        [enabled, disabled, default] => enabled | &(default - disabled),
        [enabled, ..] => enabled.clone(),
        [] => Rewrites::new(),
    }
}

fn check_list(inputs: &Inputs, index: usize, name: &str) -> Result<()> {
    if inputs.look(index)?.shape().rank() == 1 {
        return Ok(());
    }
    Err(invalid!("{name} must be a vector"))
}

fn rewrite_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_ref_kernel(setup, |_, inputs| {
        let dataset = input_dataset(inputs, 0)?;
        string_scalar(inputs, 1, "rewrite_name")?;
        Ok(dataset)
    })
}
