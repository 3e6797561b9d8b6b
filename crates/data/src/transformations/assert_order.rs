//! AssertNextDataset and AssertPrevDataset: errors if other transformations surround a dataset than expected.

use super::assert_cardinality::with_rank;
use super::pass_through::{Pass, PassThrough};
use crate::attrs::{DATASET, dataset_kernel, input_dataset, spec};
use crate::{DatasetRef, Place, wire};
use graph::ShapeQuery;
use op::{Grad, Inputs, Kernel, Op, Setup};
use status::{Result, invalid, unimplemented_op};
use tensor::PartialShape;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "AssertNextDataset(input_dataset: variant, transformations: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: scalar_of_vector,
        grad: Grad::Stop,
        kernel: next_kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalAssertNextDataset(input_dataset: variant, transformations: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: scalar_of_vector,
        grad: Grad::Stop,
        kernel: next_kernel,
        facts: DATASET,
    },
    Op {
        def: "AssertPrevDataset(input_dataset: variant, transformations: string) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: scalar_of_vector,
        grad: Grad::Stop,
        kernel: previous_kernel,
        facts: DATASET,
    },
];

fn scalar_of_vector(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    with_rank(query, 1)?;
    Ok(vec![PartialShape::of_rank(0)])
}

/// The names in the second input.
fn names(inputs: &Inputs) -> Result<Vec<String>> {
    let names = inputs.look(1)?;
    if names.shape().rank() != 1 {
        return Err(invalid!("transformations must be a vector"));
    }
    Ok(names.strings()?.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// True if a name is an op's, without its version or with any.
fn matches_any_version(name: &str, op: &str) -> bool {
    op.strip_prefix(name).is_some_and(|version| {
        let number = version.strip_prefix('V').unwrap_or_default();
        version.is_empty() || !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[derive(Clone)]
struct Next(Vec<String>);

fn next_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        Ok(PassThrough { input: input_dataset(inputs, 0)?, spec: spec.clone(), pass: Next(names(inputs)?) })
    })
}

impl Pass for Next {
    const KIND: &'static str = "AssertNext";

    /// The prefix names what follows, the outermost first.
    fn check(&self, place: &Place, _: &DatasetRef) -> Result<()> {
        let stages: Vec<&str> = place.prefix.split("::").collect();
        let following = &stages[1..stages.len().saturating_sub(1).max(1)];
        let (asserted, found) = (self.0.len(), following.len());
        if asserted > found {
            return Err(invalid!("Asserted next {asserted} transformations but encountered only {found}."));
        }
        for (offset, (name, stage)) in self.0.iter().zip(following.iter().rev()).enumerate() {
            if !matches_any_version(name, stage) {
                return Err(invalid!(
                    "Asserted transformation matching {name} at offset {offset} but encountered {stage} \
                     transformation instead."
                ));
            }
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Previous(Vec<String>);

fn previous_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let spec = spec(setup)?;
    dataset_kernel(setup, move |_, inputs| {
        Ok(PassThrough { input: input_dataset(inputs, 0)?, spec: spec.clone(), pass: Previous(names(inputs)?) })
    })
}

impl Pass for Previous {
    const KIND: &'static str = "AssertPrev";

    fn check(&self, _: &Place, input: &DatasetRef) -> Result<()> {
        let mut previous = Some(input.clone());
        let asserted = self.0.len();
        for (offset, transformation) in self.0.iter().enumerate() {
            let Some(dataset) = previous else {
                return Err(invalid!("Asserted previous {asserted} transformations but encountered only {offset}."));
            };
            check_transformation(&dataset, transformation)
                .map_err(|error| invalid!("Failure checking transformations at offset {offset}: {}", error.message))?;
            previous = dataset.inputs().pop();
        }
        Ok(())
    }
}

/// Compares a dataset with the name and attributes in a NameAttrList message in text format.
fn check_transformation(dataset: &DatasetRef, transformation: &str) -> Result<()> {
    let (name, attrs) = io::text::text_to_binary("tensorflow.NameAttrList", transformation)
        .and_then(|message| wire::name_and_attrs(&message))
        .map_err(|_| invalid!("Couldn't parse transformation '{transformation}'."))?;
    let op = op_name(dataset.kind());
    if !matches_any_version(&name, &op) {
        return Err(invalid!("Asserted transformation matching '{name}', but found '{op}'."));
    }
    match attrs.first() {
        None => Ok(()),
        Some(attr) => Err(unimplemented_op!("The attribute '{attr}' of a dataset cannot be checked")),
    }
}

/// The op of a dataset: `BatchDatasetV2` for `BatchV2`, `TakeDataset` for `FiniteTake`.
fn op_name(kind: &str) -> String {
    let plain = ["Finite", "Forever", "Empty"].iter().find_map(|prefix| kind.strip_prefix(prefix)).unwrap_or(kind);
    let name = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    match name.strip_suffix('V').filter(|_| name.len() < plain.len()) {
        Some(base) => format!("{base}DatasetV{}", &plain[name.len()..]),
        None => format!("{plain}Dataset"),
    }
}
