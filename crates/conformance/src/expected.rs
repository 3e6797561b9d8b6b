//! Expected tensors: all elements, samples of them, or only type and shape.

use crate::text::unquote;
use crate::values::{complex, head, tensor};
use status::{Result, invalid};
use tensor::{Complex64, DType, Shape, Tensor};

/// An expected tensor.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Element type.
    pub dtype: DType,
    /// Shape; not used if the elements are opaque.
    pub shape: Shape,
    /// The expected elements.
    pub elements: Elements,
}

/// The expected elements of a tensor.
#[derive(Clone, Debug)]
pub enum Elements {
    /// All elements.
    All(Tensor),
    /// Samples, the sum of the finite elements, and their sum weighted by position.
    Some {
        /// Positions, and a tensor of the elements there.
        samples: (Vec<usize>, Tensor),
        /// The sum.
        sum: Complex64,
        /// Each element times the fraction of its position times the golden ratio.
        mix: Complex64,
    },
    /// Any elements of this type and shape.
    Any,
    /// Handles, variants and uninitialised memory: anything of this type.
    Opaque,
    /// No tensor: an input without a gradient, or a variable without a value.
    None,
}

impl Elements {
    /// True if all elements are expected to be zero.
    pub fn are_zero(&self) -> bool {
        let zeros = |tensor: &Tensor| crate::values::wide(tensor).is_ok_and(|all| all.iter().all(|v| v.norm() == 0.0));
        match self {
            Elements::All(all) => zeros(all),
            Elements::Some { samples, sum, .. } => zeros(&samples.1) && sum.norm() == 0.0,
            _ => false,
        }
    }
}

impl Expected {
    /// Reads the words after `out name`.
    pub fn parse(words: &[&str]) -> Result<Expected> {
        let first = words.first().ok_or_else(|| invalid!("a tensor begins with its type"))?;
        if *first == "none" {
            return Ok(Expected { dtype: DType::INVALID, shape: Shape::scalar(), elements: Elements::None });
        }
        let (dtype, shape) = head(first)?;
        let elements = match &words[1..] {
            ["any"] if !first.contains('[') => Elements::Opaque,
            ["any"] => Elements::Any,
            rest if rest.last().is_some_and(|word| word.starts_with("mix=")) => sampled(dtype, rest)?,
            _ => Elements::All(tensor(words)?),
        };
        Ok(Expected { dtype, shape, elements })
    }
}

fn sampled(dtype: DType, words: &[&str]) -> Result<Elements> {
    let number = |text: &str| complex(text).ok_or_else(|| invalid!("{text} is not a number"));
    let (mut places, mut values, mut sum, mut mix) = (Vec::new(), Vec::new(), None, None);
    for word in words {
        match word.split_once('=') {
            Some(("sum", text)) => sum = Some(number(text)?),
            Some(("mix", text)) => mix = Some(number(text)?),
            Some((place, text)) => {
                places.push(place.parse().map_err(|_| invalid!("{word} is not a sample"))?);
                values.push(text);
            }
            None => return Err(invalid!("{word} is not a sample")),
        }
    }
    let head = format!("{dtype}[{}]", values.len());
    let samples = tensor(&[&[head.as_str()], values.as_slice()].concat())?;
    let missing = || invalid!("a sampled tensor has a sum and a mix");
    Ok(Elements::Some { samples: (places, samples), sum: sum.ok_or_else(missing)?, mix: mix.ok_or_else(missing)? })
}

/// The text of a quoted string.
pub fn sentence(text: &str) -> Result<String> {
    Ok(String::from_utf8_lossy(&unquote(text)?).into_owned())
}
