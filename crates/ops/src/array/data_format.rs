//! Converts axes and vectors of sizes between data formats: DataFormatDimMap, DataFormatVecPermute.

use graph::Output;
use op::shapes::{integers, unchanged};
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use tensor::{DType, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "DataFormatDimMap(x: T) -> y: T; T: {int32, int64} = int32; src_format: string = \"NHWC\"; \
              dst_format: string = \"NCHW\"",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: dim_map_kernel,
        facts: PLAIN,
    },
    Op {
        def: "DataFormatVecPermute(x: T) -> y: T; T: {int32, int64} = int32; src_format: string = \"NHWC\"; \
              dst_format: string = \"NCHW\"",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: vec_permute_kernel,
        facts: PLAIN,
    },
];

/// The number in `dst_format` of each axis that `x` names in `src_format`.
pub fn data_format_dim_map(x: &Output, src_format: &str, dst_format: &str) -> Output {
    let node = x.scope().op("DataFormatDimMap").input(x);
    node.attr("src_format", src_format).attr("dst_format", dst_format).output()
}

/// A vector with one entry (or row) for each axis, from the order of `src_format` to that of `dst_format`.
pub fn data_format_vec_permute(x: &Output, src_format: &str, dst_format: &str) -> Output {
    let node = x.scope().op("DataFormatVecPermute").input(x);
    node.attr("src_format", src_format).attr("dst_format", dst_format).output()
}

fn formats(setup: &Setup<'_>) -> Result<(String, String)> {
    let (src, dst) = (setup.string("src_format")?, setup.string("dst_format")?);
    if src.len() != 4 && src.len() != 5 {
        return Err(invalid!("Source format must be of length 4 or 5, received src_format = {src}"));
    }
    if dst.len() != 4 && dst.len() != 5 {
        return Err(invalid!("Destination format must be of length 4 or 5, received dst_format = {dst}"));
    }
    let once = |axis: u8, axes: &str| axes.bytes().filter(|&other| other == axis).count() == 1;
    let fits = src.len() == dst.len() && src.bytes().all(|axis| once(axis, &src) && once(axis, &dst));
    if !fits {
        return Err(invalid!("Destination and source format must determine a permutation, got {src} and {dst}"));
    }
    Ok((src, dst))
}

fn dim_map_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    let (src, dst) = formats(setup)?;
    let map: Vec<i64> =
        src.bytes().filter_map(|axis| dst.bytes().position(|other| other == axis)).map(|at| at as i64).collect();
    Ok(unary(move |_, x| {
        let rank = map.len() as i64;
        let mapped = |axis: i64| map[axis.rem_euclid(rank) as usize];
        int_tensor(dtype, x.shape().clone(), &integers(&x)?.into_iter().map(mapped).collect::<Vec<_>>())
    }))
}

fn vec_permute_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    let (src, dst) = formats(setup)?;
    Ok(unary(move |_, x| {
        let (rank, shape) = (x.shape().rank(), x.shape().clone());
        if rank != 1 && rank != 2 {
            return Err(invalid!("input must be a vector or 2D tensor, but got shape {shape}"));
        }
        let (full, spatial) = (src.len(), src.len() - 2);
        if shape[0] != full && shape[0] != spatial {
            return Err(match rank {
                1 => invalid!("1D input must be of size {spatial} or {full}, but got shape {shape}"),
                _ => invalid!("First dimension of 2D input must be of size {spatial} or {full}, but got shape {shape}"),
            });
        }
        if rank == 2 && shape[1] != 2 {
            return Err(invalid!("Second dimension of 2D input must be of size 2, but got shape {shape}"));
        }
        let axes = |format: &str| -> Vec<u8> {
            let is_spatial = |axis: &u8| matches!(axis, b'H' | b'W') || *axis == b'D' && spatial == 3;
            format.bytes().filter(|axis| shape[0] == full || is_spatial(axis)).collect()
        };
        let (from, to) = (axes(&src), axes(&dst));
        if from.len() != shape[0] {
            return Err(match spatial {
                3 => invalid!("Format specifier must contain D, H and W for 2D case"),
                _ => invalid!("Format specifier must contain H and W for 2D case"),
            });
        }
        let order = to.iter().filter_map(|axis| from.iter().position(|other| other == axis));
        let (values, width) = (integers(&x)?, if rank == 2 { 2 } else { 1 });
        let permuted: Vec<i64> = order.flat_map(|at| values[at * width..][..width].to_vec()).collect();
        int_tensor(dtype, shape, &permuted)
    }))
}

/// A tensor of int32 or int64.
fn int_tensor(dtype: DType, shape: Shape, values: &[i64]) -> Result<Tensor> {
    match dtype {
        DType::I64 => Tensor::from_slice(shape, values),
        _ => Tensor::from_slice(shape, &values.iter().map(|&value| value as i32).collect::<Vec<_>>()),
    }
}
