//! ShardedFilename, ShardedFilespec: the names of the files of a sharded checkpoint.

use graph::Output;
use op::shapes::scalar;
use op::{Grad, Kernel, Op, PLAIN, Setup, binary, many, outputs};
use status::{Result, invalid};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "ShardedFilename(basename: string, shard: int32, num_shards: int32) -> filename: string",
        shape: scalar,
        grad: Grad::Stop,
        kernel: filename_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ShardedFilespec(basename: string, num_shards: int32) -> filename: string",
        shape: scalar,
        grad: Grad::Stop,
        kernel: filespec_kernel,
        facts: PLAIN,
    },
];

/// The op of `sharded_filename`, after which savers name their nodes.
pub const SHARDED_FILENAME: &str = "ShardedFilename";

/// The name of one file of a sharded checkpoint.
pub fn sharded_filename(basename: &Output, shard: &Output, shards: &Output) -> Output {
    basename.scope().op(SHARDED_FILENAME).input(basename).input(shard).input(shards).output()
}

/// The pattern of the names of all files of a sharded checkpoint.
pub fn sharded_filespec(basename: &Output, shards: &Output) -> Output {
    basename.scope().op("ShardedFilespec").input(basename).input(shards).output()
}

fn filename_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let (name, shard, shards) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let (name, shard, shards) = (text(&name, 0)?, number(&shard, 1)?, number(&shards, 2)?);
        Ok(outputs![Tensor::string(format!("{name}-{shard:05}-of-{shards:05}").into_bytes())])
    }))
}

fn filespec_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|_, name, shards| {
        Ok(Tensor::string(format!("{}-?????-of-{:05}", text(&name, 0)?, number(&shards, 1)?).into_bytes()))
    }))
}

fn text(tensor: &Tensor, place: usize) -> Result<String> {
    check(tensor, place)?;
    Ok(String::from_utf8_lossy(&tensor.to_string_scalar()?).into_owned())
}

fn number(tensor: &Tensor, place: usize) -> Result<i32> {
    check(tensor, place)?;
    tensor.to_scalar::<i32>()
}

fn check(tensor: &Tensor, place: usize) -> Result<()> {
    match tensor.shape().rank() {
        0 => Ok(()),
        _ => {
            let names = ["basename", "shard", "num_shards"];
            Err(invalid!("{} must be a scalar, got shape {}", names[place.min(2)], tensor.shape()))
        }
    }
}
