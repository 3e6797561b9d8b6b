//! Non-maximum suppression of batches of boxes, class by class.

use super::nms::overlap;
use op::{Grad, Inputs, Kernel, Op, Outputs, PLAIN, Setup, ShapeQuery, many, outputs};
use status::{Result, invalid};
use tensor::{Element, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "CombinedNonMaxSuppression(boxes: float, scores: float, max_output_size_per_class: int32, \
          max_total_size: int32, iou_threshold: float, score_threshold: float) -> nmsed_boxes: float, \
          nmsed_scores: float, nmsed_classes: float, valid_detections: int32; pad_per_class: bool = false; \
          clip_boxes: bool = true",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let batch = query.inputs[0].dims().and_then(|dims| dims.first().copied()).unwrap_or(-1);
    let rows = PartialShape::new(&[batch, -1]);
    Ok(vec![PartialShape::new(&[batch, -1, 4]), rows.clone(), rows, PartialShape::new(&[batch])])
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (pad_per_class, clip) = (setup.bool("pad_per_class")?, setup.bool("clip_boxes")?);
    Ok(many(move |_, inputs| run(inputs, pad_per_class, clip)))
}

/// The one number of an input.
fn one<T: Element>(inputs: &mut Inputs, index: usize, name: &str) -> Result<T> {
    let tensor = inputs.tensor(index)?;
    match tensor.shape().rank() {
        0 => tensor.to_scalar::<T>(),
        _ => Err(invalid!("{name} must be 0-D, got shape {}", tensor.shape())),
    }
}

/// Sizes and thresholds.
struct Rule {
    boxes: usize,
    /// The boxes of each class, or one set of boxes for all classes.
    each: usize,
    classes: usize,
    per_class: usize,
    overlap: f32,
    score: f32,
}

/// A selected box.
struct Found {
    score: f32,
    class: usize,
    corners: [f32; 4],
}

fn run(mut inputs: Inputs, pad_per_class: bool, clip: bool) -> Result<Outputs> {
    let (boxes, scores) = (inputs.tensor(0)?, inputs.tensor(1)?);
    if boxes.shape().first() != scores.shape().first() {
        return Err(invalid!("boxes and scores must have same batch size"));
    }
    let per_class: i32 = one(&mut inputs, 2, "max_size_per_class")?;
    if per_class <= 0 {
        return Err(invalid!("max_size_per_class must be positive"));
    }
    let total: i32 = one(&mut inputs, 3, "max_total_size")?;
    if total <= 0 {
        return Err(invalid!("max_total_size must be > 0"));
    }
    let rule = checked(&mut inputs, &boxes, &scores, per_class)?;
    let most = (per_class as i64).saturating_mul(rule.classes as i64);
    let rows = if pad_per_class { i64::from(total).min(most) as usize } else { total as usize };
    let batch = boxes.shape()[0];
    let wide = Shape::checked(&[batch as i64, rows as i64, 4])?;
    let mut out_boxes = Tensor::zeros::<f32>(wide)?;
    let (mut out_scores, mut out_classes) =
        (Tensor::zeros::<f32>([batch, rows])?, Tensor::zeros::<f32>([batch, rows])?);
    let mut valid = Vec::new();
    for b in 0..batch {
        let found = detections(
            &rule,
            &boxes.values::<f32>()?[b * rule.boxes * rule.each * 4..],
            &scores.values::<f32>()?[b * rule.boxes * rule.classes..],
        );
        valid.push(found.len().min(rows) as i32);
        for (i, found) in found.iter().take(rows).enumerate() {
            let at = b * rows + i;
            out_scores.values_mut::<f32>()?[at] = found.score;
            out_classes.values_mut::<f32>()?[at] = found.class as f32;
            let corners = if clip { found.corners.map(|x| x.clamp(0.0, 1.0)) } else { found.corners };
            out_boxes.values_mut::<f32>()?[at * 4..][..4].copy_from_slice(&corners);
        }
    }
    Ok(outputs![out_boxes, out_scores, out_classes, Tensor::vector(&valid)])
}

fn checked(inputs: &mut Inputs, boxes: &Tensor, scores: &Tensor, per_class: i32) -> Result<Rule> {
    let overlap: f32 = one(inputs, 4, "iou_threshold")?;
    let score: f32 = one(inputs, 5, "score_threshold")?;
    if !(0.0..=1.0).contains(&overlap) {
        return Err(invalid!("iou_threshold must be in [0, 1]"));
    }
    let &[_, found, classes] = scores.shape().dims() else {
        return Err(invalid!("scores must be 3-D{}", scores.shape()));
    };
    let &[_, count, each, columns] = boxes.shape().dims() else {
        return Err(invalid!("boxes must be 4-D{}", boxes.shape()));
    };
    if each != 1 && each != classes {
        return Err(invalid!("third dimension of boxes must be either 1 or num classes"));
    }
    if columns != 4 {
        return Err(invalid!("boxes must have 4 columns"));
    }
    if found != count {
        return Err(invalid!("scores has incompatible shape"));
    }
    Ok(Rule { boxes: count, each, classes, per_class: per_class as usize, overlap, score })
}

/// The selected boxes of one image, in descending order of their scores.
fn detections(rule: &Rule, boxes: &[f32], scores: &[f32]) -> Vec<Found> {
    let mut all = Vec::new();
    for class in 0..rule.classes {
        let mut candidates: Vec<(usize, f32)> = (0..rule.boxes)
            .map(|i| (i, scores[i * rule.classes + class]))
            .filter(|(_, score)| *score > rule.score)
            .collect();
        candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
        let own = if rule.each > 1 { class } else { 0 };
        let corners = |i: usize| -> [f32; 4] {
            let at = (i * rule.each + own) * 4;
            [boxes[at], boxes[at + 1], boxes[at + 2], boxes[at + 3]]
        };
        let mut kept: Vec<[f32; 4]> = Vec::new();
        for (i, score) in candidates {
            if kept.len() == rule.per_class {
                break;
            }
            if kept.iter().rev().all(|other| overlap(corners(i), *other) <= rule.overlap) {
                kept.push(corners(i));
                all.push(Found { score, class, corners: corners(i) });
            }
        }
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    all
}
