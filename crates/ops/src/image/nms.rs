//! Non-maximum suppression: selects the boxes with the best scores that do not overlap much.

use super::pixel::Pixel;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, exhausted, invalid};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tensor::{DType, PartialShape, Tensor, f16};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "NonMaxSuppression(boxes: float, scores: float, max_output_size: int32) -> selected_indices: int32; \
              iou_threshold: float = 0.5",
        shape: vectors,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "NonMaxSuppressionV2(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold) -> \
              selected_indices: int32; T: {half, float} = float; T_threshold: {half, float} = float",
        shape: vectors,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "NonMaxSuppressionV3(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, \
              score_threshold: T_threshold) -> selected_indices: int32; T: {half, float} = float; \
              T_threshold: {half, float} = float",
        shape: vectors,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "NonMaxSuppressionV4(boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, \
              score_threshold: T_threshold) -> selected_indices: int32, valid_outputs: int32; \
              T: {half, float} = float; T_threshold: {half, float} = float; pad_to_max_output_size: bool = false",
        shape: vectors,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "NonMaxSuppressionV5(boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, \
              soft_nms_sigma: T) -> selected_indices: int32, selected_scores: T, valid_outputs: int32; \
              T: {half, float} = float; pad_to_max_output_size: bool = false",
        shape: vectors,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "NonMaxSuppressionWithOverlaps(overlaps: float, scores: float, max_output_size: int32, \
              overlap_threshold: float, score_threshold: float) -> selected_indices: int32",
        shape: vectors,
        grad: Grad::Stop,
        kernel: overlaps_kernel,
        facts: PLAIN,
    },
];

/// Indices and scores are vectors, a count is one number.
fn vectors(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let mut shapes = vec![PartialShape::of_rank(1); query.outputs];
    if query.outputs > 1 {
        shapes[query.outputs - 1] = PartialShape::scalar();
    }
    Ok(shapes)
}

/// The criteria that select boxes.
struct Rule {
    limit: usize,
    overlap: f32,
    score: f32,
    /// Scores sink with overlap, by a Gauss curve of this width, instead of boxes being dropped.
    sigma: f32,
    pad: bool,
}

/// The selected boxes, in descending order of their scores.
struct Selection {
    indices: Vec<i32>,
    scores: Vec<f32>,
    valid: usize,
}

#[derive(Clone, Copy)]
enum Version {
    First(f32),
    Two,
    Three,
    Four(bool),
    Five(bool),
}

fn version(setup: &Setup<'_>) -> Result<Version> {
    Ok(match setup.def().op.as_str() {
        "NonMaxSuppression" => Version::First(setup.float("iou_threshold")?),
        "NonMaxSuppressionV2" => Version::Two,
        "NonMaxSuppressionV3" => Version::Three,
        "NonMaxSuppressionV4" => Version::Four(setup.bool("pad_to_max_output_size")?),
        _ => Version::Five(setup.bool("pad_to_max_output_size")?),
    })
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let version = version(setup)?;
    let dtype = setup.dtype("T").unwrap_or(DType::F32);
    for_types!(setup, dtype, [f32, f16], T => Ok(many(move |_, inputs| run::<T>(version, inputs))))
}

fn run<T: Pixel>(version: Version, mut inputs: Inputs) -> Result<Outputs> {
    let (boxes, scores) = (inputs.tensor(0)?, inputs.tensor(1)?);
    let rule = rule(version, &mut inputs)?;
    let &[count, columns] = boxes.shape().dims() else {
        let (shape, rank) = (boxes.shape(), boxes.shape().rank());
        return Err(invalid!("boxes must be 2-D{shape} (Shape must be rank 2 but is rank {rank})"));
    };
    if columns != 4 {
        return Err(invalid!("boxes must have 4 columns (Dimension must be 4 but is {columns})"));
    }
    check_scores(count, &scores)?;
    let wide = |tensor: &Tensor| Ok::<_, status::Error>(tensor.values::<T>()?.iter().map(|x| x.to_f32()).collect());
    let (boxes, scores): (Vec<f32>, Vec<f32>) = (wide(&boxes)?, wide(&scores)?);
    let corners = |i: usize| [boxes[i * 4], boxes[i * 4 + 1], boxes[i * 4 + 2], boxes[i * 4 + 3]];
    // Half floats compare as half floats.
    let rounded = |x: f32| T::from_f32(x).to_f32();
    let found = select(&rule, &scores, rounded, |i, j| overlap(corners(i), corners(j)))?;
    let indices = Tensor::vector(&found.indices);
    let valid = Tensor::scalar(found.valid as i32);
    Ok(match version {
        Version::Five(_) => {
            let scores: Vec<T> = found.scores.iter().map(|&score| T::from_f32(score)).collect();
            outputs![indices, Tensor::vector(&scores), valid]
        }
        Version::Four(_) => outputs![indices, valid],
        _ => outputs![indices],
    })
}

fn rule(version: Version, inputs: &mut Inputs) -> Result<Rule> {
    let limit = limit(&inputs.tensor(2)?)?;
    let overlap = match version {
        Version::First(overlap) => overlap,
        _ => number("iou_threshold", &inputs.tensor(3)?)?,
    };
    if !(0.0..=1.0).contains(&overlap) {
        return Err(invalid!("iou_threshold must be in [0, 1]"));
    }
    let score = match version {
        Version::First(_) | Version::Two => f32::MIN,
        _ => number("score_threshold", &inputs.tensor(4)?)?,
    };
    let sigma = match version {
        Version::Five(_) => number("soft_nms_sigma", &inputs.tensor(5)?)?,
        _ => 0.0,
    };
    if sigma.is_nan() || sigma < 0.0 {
        return Err(invalid!("soft_nms_sigma_val must be >= 0"));
    }
    let pad = matches!(version, Version::Four(true) | Version::Five(true));
    Ok(Rule { limit, overlap, score, sigma, pad })
}

fn limit(tensor: &Tensor) -> Result<usize> {
    if tensor.shape().rank() != 0 {
        let (shape, rank) = (tensor.shape(), tensor.shape().rank());
        return Err(invalid!(
            "max_output_size must be 0-D, got shape {shape} (Shape must be rank 0 but is rank {rank})"
        ));
    }
    usize::try_from(tensor.to_scalar::<i32>()?).map_err(|_| invalid!("output size must be non-negative"))
}

fn number(name: &str, tensor: &Tensor) -> Result<f32> {
    if tensor.shape().rank() != 0 {
        let (shape, rank) = (tensor.shape(), tensor.shape().rank());
        return Err(invalid!("{name} must be 0-D, got shape {shape} (Shape must be rank 0 but is rank {rank})"));
    }
    match tensor.dtype() {
        DType::F16 => Ok(tensor.to_scalar::<f16>()?.to_f32()),
        _ => tensor.to_scalar::<f32>(),
    }
}

fn check_scores(boxes: usize, scores: &Tensor) -> Result<()> {
    if scores.shape().rank() != 1 {
        let (shape, rank) = (scores.shape(), scores.shape().rank());
        return Err(invalid!("scores must be 1-D{shape} (Shape must be rank 1 but is rank {rank})"));
    }
    if scores.elements() != boxes {
        return Err(invalid!(
            "scores has incompatible shape (Dimensions must be equal, but are {boxes} and {})",
            scores.elements()
        ));
    }
    Ok(())
}

/// Intersection over union of two boxes, given by any two opposite corners.
pub(super) fn overlap(a: [f32; 4], b: [f32; 4]) -> f32 {
    let sides = |[y1, x1, y2, x2]: [f32; 4]| [y1.min(y2), x1.min(x2), y1.max(y2), x1.max(x2)];
    let (a, b) = (sides(a), sides(b));
    let area = |[top, left, bottom, right]: [f32; 4]| (bottom - top) * (right - left);
    if area(a) <= 0.0 || area(b) <= 0.0 {
        return 0.0;
    }
    let common = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0) * (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    common / (area(a) + area(b) - common)
}

/// A box that may still be selected; the best score first, of equal ones the first box.
#[derive(Clone, Copy)]
struct Candidate {
    index: usize,
    score: f32,
    /// How many of the selected boxes it was compared with.
    compared: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.score.total_cmp(&other.score).then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

fn select(
    rule: &Rule,
    scores: &[f32],
    rounded: impl Fn(f32) -> f32,
    similarity: impl Fn(usize, usize) -> f32,
) -> Result<Selection> {
    let candidates = scores.iter().enumerate().filter(|(_, score)| **score > rule.score);
    let mut queue: BinaryHeap<Candidate> =
        candidates.map(|(index, &score)| Candidate { index, score, compared: 0 }).collect();
    let (mut indices, mut kept) = (Vec::new(), Vec::new());
    while indices.len() < rule.limit {
        let Some(mut next) = queue.pop() else { break };
        let before = next.score;
        let mut dropped = false;
        for &other in indices[next.compared..].iter().rev() {
            let similar = rounded(similarity(next.index, other as usize));
            if rule.sigma > 0.0 {
                next.score = rounded(next.score * rounded((-0.5 / rule.sigma * similar * similar).exp()));
                if next.score <= rule.score {
                    break;
                }
            } else if similar > rule.overlap {
                dropped = true;
                break;
            }
        }
        next.compared = indices.len();
        if !dropped && next.score == before {
            indices.push(next.index as i32);
            kept.push(next.score);
        } else if !dropped && next.score > rule.score {
            queue.push(next);
        }
    }
    let valid = indices.len();
    if rule.pad && rule.limit > valid && rule.limit <= i32::MAX as usize {
        let out_of_memory = |_| exhausted!("OOM when allocating tensor with shape[{}] and type int32", rule.limit);
        indices.try_reserve_exact(rule.limit - valid).map_err(out_of_memory)?;
        kept.try_reserve_exact(rule.limit - valid).map_err(out_of_memory)?;
        indices.resize(rule.limit, 0);
        kept.resize(rule.limit, 0.0);
    }
    Ok(Selection { indices, scores: kept, valid })
}

fn overlaps_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let (overlaps, scores) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let limit = limit(&inputs.tensor(2)?)?;
        let overlap = number("overlap_threshold", &inputs.tensor(3)?)?;
        let score = number("score_threshold", &inputs.tensor(4)?)?;
        let &[count, columns] = overlaps.shape().dims() else {
            return Err(invalid!("overlaps must be 2-D{}", overlaps.shape()));
        };
        if columns != count {
            return Err(invalid!("overlaps must be square{}", overlaps.shape()));
        }
        check_scores(count, &scores)?;
        let rule = Rule { limit, overlap, score, sigma: 0.0, pad: false };
        let overlaps = overlaps.values::<f32>()?;
        let found = select(&rule, scores.values::<f32>()?, |x| x, |i, j| overlaps[i * count + j])?;
        Ok(outputs![Tensor::vector(&found.indices)])
    }))
}
