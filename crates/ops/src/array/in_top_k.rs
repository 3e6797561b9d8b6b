//! InTopK: whether a target is among the `k` best predictions.

use super::index::integer;
use graph::Output;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "InTopK(predictions: float, targets: T) -> precision: bool; k: int; T: {int32, int64} = int32",
        shape: in_top_k_shape,
        grad: Grad::Stop,
        kernel: in_top_k_kernel,
        facts: PLAIN,
    },
    Op {
        def: "InTopKV2(predictions: float, targets: T, k: T) -> precision: bool; T: {int32, int64} = int32",
        shape: in_top_k_shape,
        grad: Grad::Stop,
        kernel: in_top_k_kernel,
        facts: PLAIN,
    },
];

/// For each row whether fewer than `k` predictions are above that of its target.
pub fn in_top_k(predictions: &Output, targets: &Output, k: i64) -> Output {
    predictions.scope().op("InTopK").input(predictions).input(targets).attr("k", k).output()
}

fn in_top_k_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let predictions = query.inputs[0].merge(&PartialShape::of_rank(2))?;
    let rows = predictions.dims().map_or(-1, |dims| dims[0]);
    Ok(vec![query.inputs[1].merge(&PartialShape::new(&[rows]))?])
}

fn in_top_k_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let k = match setup.find("k") {
        Some(_) => Some(setup.int("k")?),
        None => None,
    };
    Ok(many(move |_, inputs| run(inputs, k)))
}

fn run(mut inputs: Inputs, k: Option<i64>) -> Result<Outputs> {
    let (predictions, targets) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let k = match k {
        Some(k) => k,
        None => {
            let k = inputs.tensor(2)?;
            integer(&k, || invalid!("k must be 0-D, got shape {}", k.shape()))?
        }
    };
    let &[rows, classes] = predictions.shape().dims() else {
        return Err(invalid!("predictions must be 2-dimensional"));
    };
    if targets.shape().rank() != 1 {
        return Err(invalid!("targets must be 1-dimensional"));
    }
    if rows != targets.elements() {
        return Err(invalid!(
            "First dimension of predictions {rows} must match length of targets {}",
            targets.elements()
        ));
    }
    let mut output = Tensor::zeros::<bool>([rows])?;
    let (values, targets) = (predictions.values::<f32>()?, op::shapes::integers(&targets)?);
    let answers = output.values_mut::<bool>()?.iter_mut().zip(&targets);
    for (row, (answer, &target)) in answers.enumerate() {
        *answer = is_in_top(&values[row * classes..][..classes], target, k);
    }
    Ok(outputs![output])
}

/// Rows with infinities or NaN have no ranking.
fn is_in_top(row: &[f32], target: i64, k: i64) -> bool {
    let Some(&mark) = usize::try_from(target).ok().and_then(|target| row.get(target)) else { return false };
    let mut above = 0;
    for value in row {
        if !value.is_finite() {
            return false;
        }
        above += i64::from(*value > mark);
        if above > k {
            break;
        }
    }
    above < k
}
