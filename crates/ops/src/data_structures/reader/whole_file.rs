//! ReadFile, WriteFile, MatchingFiles: whole files as values.

use crate::checkpoint::systems;
use graph::{Node, Output, ShapeQuery};
use io::fs::path::dirname;
use op::shapes::{none, scalar};
use op::{Kernel, Op, Setup, many, outputs, unary};
use status::{Result, invalid};
use tensor::{Bytes, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "ReadFile(filename: string) -> contents: string", scalar, read_kernel;
    "WriteFile(filename: string, contents: string); stateful", none, write_kernel;
    "MatchingFiles(pattern: string) -> filenames: string", vector, matching_kernel;
};

/// The contents of a file.
pub fn read_file(name: &Output) -> Output {
    name.scope().op("ReadFile").input(name).output()
}

/// Writes a file, or replaces it.
pub fn write_file(name: &Output, contents: &Output) -> Node {
    name.scope().op("WriteFile").input(name).input(contents).node()
}

/// The names of all files that match one of the patterns, sorted.
pub fn matching_files(patterns: &Output) -> Output {
    patterns.scope().op("MatchingFiles").input(patterns).output()
}

fn vector(_: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1)])
}

fn name_of(tensor: &Tensor) -> Result<String> {
    if tensor.shape().rank() != 0 {
        return Err(invalid!("Input filename tensor must be scalar, but had shape: {}", tensor.shape()));
    }
    Ok(String::from_utf8_lossy(&tensor.to_string_scalar()?).into_owned())
}

fn read_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    Ok(unary(move |_, name| Ok(Tensor::string(systems.read(&name_of(&name)?)?))).heavy())
}

fn write_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    Ok(many(move |_, mut inputs| {
        let (name, contents) = (name_of(&inputs.tensor(0)?)?, inputs.tensor(1)?);
        if contents.shape().rank() != 0 {
            return Err(invalid!("Contents tensor must be scalar, but had shape: {}", contents.shape()));
        }
        systems.create_dirs(dirname(&name))?;
        let mut file = systems.create(&name)?;
        file.append(&contents.to_string_scalar()?)?;
        file.close()?;
        Ok(outputs![])
    })
    .heavy())
}

fn matching_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    Ok(unary(move |_, patterns| {
        if patterns.shape().rank() > 1 {
            return Err(invalid!(
                "Input patterns tensor must be scalar or vector, but had shape: {}",
                patterns.shape()
            ));
        }
        let mut found = Vec::new();
        for pattern in patterns.strings()? {
            found.extend(systems.glob(&String::from_utf8_lossy(pattern))?);
        }
        found.sort();
        Tensor::from_strings([found.len()], found.into_iter().map(Bytes::from).collect())
    })
    .heavy())
}
