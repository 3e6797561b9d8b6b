//! StringNGrams: concatenations of neighbouring strings.

use graph::ShapeQuery;
use op::shapes::integers;
use op::{Grad, Kernel, Op, Outputs, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{Bytes, DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "StringNGrams(data: string, data_splits: Tsplits) -> ngrams: string, ngrams_splits: Tsplits; \
          separator: string; ngram_widths: list(int) >= 0; left_pad: string; right_pad: string; pad_width: int; \
          preserve_short_sequences: bool; Tsplits: {int32, int64} = int64",
    shape: ngrams_shape,
    grad: Grad::Stop,
    kernel: ngrams_kernel,
    facts: PLAIN,
}];

fn ngrams_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::of_rank(1), query.inputs[1].clone()])
}

/// How strings are joined.
struct NGrams {
    separator: Bytes,
    widths: Vec<i64>,
    left: Bytes,
    right: Bytes,
    padding: i64,
    keep_short: bool,
}

/// Most paddings and strings of a sequence together.
const MOST: i64 = i32::MAX as i64;

fn ngrams_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let wide = setup.dtype("Tsplits")? == DType::I64;
    let ngrams = NGrams {
        separator: setup.bytes("separator")?,
        widths: setup.ints("ngram_widths")?,
        left: setup.bytes("left_pad")?,
        right: setup.bytes("right_pad")?,
        padding: setup.int("pad_width")?,
        keep_short: setup.bool("preserve_short_sequences")?,
    };
    Ok(many(move |_, mut inputs| {
        let (data, splits) = (inputs.tensor(0)?, inputs.tensor(1)?);
        ngrams.run(&data, &splits, wide)
    }))
}

impl NGrams {
    fn run(&self, data: &Tensor, splits: &Tensor, wide: bool) -> Result<Outputs> {
        if self.widths.iter().any(|&width| width <= 0) {
            return Err(invalid!("ngram_widths must contain positive values"));
        }
        let strings = data.strings()?;
        let bounds = integers(splits)?;
        check_splits(&bounds, strings.len())?;
        let (mut found, mut ends) = (Vec::new(), vec![0; bounds.len().min(1)]);
        for pair in bounds.windows(2) {
            if !strings.is_empty() {
                self.sequence(&strings[pair[0] as usize..pair[1] as usize], &mut found)?;
            }
            ends.push(found.len() as i64);
        }
        let splits = match wide {
            true => Tensor::from_slice::<i64>(splits.shape(), &ends)?,
            false => Tensor::from_slice(splits.shape(), &ends.iter().map(|&end| end as i32).collect::<Vec<_>>())?,
        };
        Ok(outputs![Tensor::from_strings([found.len()], found)?, splits])
    }

    /// Paddings on either side for this width: one string less than it has at most.
    fn padding(&self, width: i64) -> i64 {
        if self.padding < 0 { width - 1 } else { self.padding.min(width - 1) }
    }

    fn sequence(&self, strings: &[Bytes], found: &mut Vec<Bytes>) -> Result<()> {
        let (before, length) = (found.len(), strings.len() as i64);
        for &width in &self.widths {
            let padding = self.padding(width);
            if padding > MOST / 2 - length {
                return Err(invalid!("Pad width could lead to integer overflow, got pad_width = {padding}"));
            }
            let count = (length + 2 * padding - width + 1).max(0);
            for start in 0..count {
                found.push(self.joined(strings, start - padding, width));
            }
        }
        if self.keep_short && length > 0 && found.len() == before {
            if self.padding < 0 {
                return Err(invalid!(
                    "Pad width should be >= 0 when preserve_short_sequences is True and ngram_widths are not provided, \
                     got {}",
                    self.padding
                ));
            }
            let padding = self.padding.min(MOST);
            found.push(self.joined(strings, -padding, length + 2 * padding));
        }
        Ok(())
    }

    /// `width` strings from `start` on, with padding beyond the ends.
    fn joined(&self, strings: &[Bytes], start: i64, width: i64) -> Bytes {
        let mut out = Vec::new();
        for place in start..start + width {
            if place > start {
                out.extend_from_slice(&self.separator);
            }
            let string = match usize::try_from(place) {
                Err(_) => &self.left,
                Ok(at) => strings.get(at).unwrap_or(&self.right),
            };
            out.extend_from_slice(string);
        }
        out.into()
    }
}

fn check_splits(bounds: &[i64], count: usize) -> Result<()> {
    let (Some(&first), Some(&last)) = (bounds.first(), bounds.last()) else { return Ok(()) };
    if first != 0 {
        return Err(invalid!("First split value must be 0, got {first}"));
    }
    if let Some(pair) = bounds.windows(2).find(|pair| pair[1] < pair[0] || pair[1] > count as i64) {
        return Err(invalid!("Invalid split value {}, must be in [{}, {count}]", pair[1], pair[0]));
    }
    if last != count as i64 {
        return Err(invalid!("Last split value must be data size. Expected {count}, got {last}"));
    }
    Ok(())
}
