//! SdcaFprint: fingerprints of the ids of examples.

use crate::hashing::fingerprint128;
use graph::ShapeQuery;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] =
    &[Op { def: "SdcaFprint(input: string) -> output: int64", shape, grad: Grad::Stop, kernel, facts: PLAIN }];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let input = query.inputs[0].merge(&PartialShape::of_rank(1))?;
    Ok(vec![PartialShape::new(&[input.dim(0).map_or(-1, |count| count as i64), 2])])
}

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| {
        let &[count] = input.shape().dims() else {
            return Err(invalid!("Input must be a vector, got shape {}", input.shape()));
        };
        let fingerprints: Vec<i64> = input.strings()?.iter().flat_map(|text| fingerprint(text)).collect();
        Tensor::from_slice([count, 2], &fingerprints)
    }))
}

/// The first number is never 0 or 1, which hash tables may use for empty and deleted keys.
fn fingerprint(text: &[u8]) -> [i64; 2] {
    let [low, high] = fingerprint128(text);
    let low = if low >= 2 { low } else { low.wrapping_sub(2) };
    [low as i64, high as i64]
}
