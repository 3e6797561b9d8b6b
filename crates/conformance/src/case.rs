//! A case of one node: the node, its inputs, and TensorFlow's answer.

use crate::expected::{Expected, sentence};
use crate::text::{inside, words};
use crate::values::{head, tensor};
use status::{Code, Result, invalid};
use tensor::{DType, Shape, Tensor};

/// A case as it is written in a file.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The file and the line of the op.
    pub place: String,
    /// The op.
    pub op: String,
    /// Attributes as written; those that follow from the inputs may be missing.
    pub attrs: Vec<(String, String)>,
    /// Inputs, each with the argument it belongs to.
    pub inputs: Vec<(String, Input)>,
    /// What to expect.
    pub want: Want,
    /// Gradients of `sum(out * ramp)`, by input.
    pub grads: Vec<(String, Expected)>,
    /// The tolerance, if it is not the default.
    pub tolerance: Option<f64>,
}

/// An input: a value, or a variable that holds it.
#[derive(Clone, Debug)]
pub struct Input {
    /// The kind of input.
    pub kind: Kind,
    /// Element type.
    pub dtype: DType,
    /// Declared shape.
    pub shape: Shape,
    /// The value; none for a variable that has never been assigned.
    pub value: Option<Tensor>,
}

/// Kinds of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tensor.
    Value,
    /// A reference to a variable.
    Ref,
    /// A handle of a variable.
    Resource,
}

/// TensorFlow's answer.
#[derive(Clone, Debug, Default)]
pub enum Want {
    /// TensorFlow has not been run yet.
    #[default]
    Unknown,
    /// Outputs in order, and the values of variables after the run.
    Outputs {
        /// Outputs with the name of their argument.
        outputs: Vec<(String, Expected)>,
        /// Variables by the argument they were passed to.
        after: Vec<(String, Expected)>,
    },
    /// An error whose message contains this text.
    Error(Code, String),
}

/// Reads the cases of one node in a file.
pub fn parse(file: &str, text: &str) -> Result<Vec<Case>> {
    let (mut cases, mut in_graph): (Vec<Case>, bool) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{file}:{}", number + 1);
        let words = words(line);
        in_graph = words[0] == "graph" || in_graph && words[0] != "op";
        if in_graph {
            continue; // `parse_graphs` reads it
        }
        if words[0] == "op" {
            cases.push(op_line(&place, &words[1..]).map_err(|error| located(error, &place))?);
            continue;
        }
        let case = cases.last_mut().ok_or_else(|| invalid!("{place}: a case begins with an op line"))?;
        case.line(&words).map_err(|error| located(error, &place))?;
    }
    Ok(cases)
}

/// The same error with its place at the start.
pub(crate) fn located(mut error: status::Error, place: &str) -> status::Error {
    error.message = format!("{place}: {}", error.message);
    error
}

fn op_line(place: &str, words: &[&str]) -> Result<Case> {
    let (op, attrs) = words.split_first().ok_or_else(|| invalid!("op which?"))?;
    let pair = |word: &&str| match word.split_once('=') {
        Some((name, value)) => Ok((name.to_string(), value.to_string())),
        None => Err(invalid!("{word} is not an attribute")),
    };
    let attrs = attrs.iter().map(pair).collect::<Result<_>>()?;
    Ok(Case { place: place.to_string(), op: op.to_string(), attrs, ..Case::default() })
}

impl Case {
    /// True if its file, line or op contains the text.
    pub fn is_named(&self, text: &str) -> bool {
        format!("{} {}", self.place, self.op).contains(text)
    }

    fn line(&mut self, words: &[&str]) -> Result<()> {
        match words {
            ["in", name, rest @ ..] => self.inputs.push((name.to_string(), input(rest)?)),
            ["after", name, rest @ ..] => self.want.outputs()?.1.push((name.to_string(), Expected::parse(rest)?)),
            ["grad", name, rest @ ..] => self.grads.push((name.to_string(), Expected::parse(rest)?)),
            ["tol", text] => self.tolerance = Some(text.parse().map_err(|_| invalid!("{text} is not a tolerance"))?),
            ["nograd"] | ["shapes"] | ["ranked"] | ["shaped", ..] | ["slopes"] => {} // for update.py
            ["like", _] | ["as", _] | ["any", ..] => {}                              // likewise
            _ => self.want.line(words)?,
        }
        Ok(())
    }
}

impl Want {
    /// Reads a line that TensorFlow wrote.
    pub(crate) fn line(&mut self, words: &[&str]) -> Result<()> {
        match words {
            ["out", name, rest @ ..] => self.outputs()?.0.push((name.to_string(), Expected::parse(rest)?)),
            ["error", code, text] => *self = Want::Error(code_named(code)?, sentence(text)?),
            ["ok"] => _ = self.outputs()?,
            _ => return Err(invalid!("what is '{}'?", words.join(" "))),
        }
        Ok(())
    }

    #[allow(clippy::type_complexity)]
    fn outputs(&mut self) -> Result<(&mut Vec<(String, Expected)>, &mut Vec<(String, Expected)>)> {
        if matches!(self, Want::Unknown) {
            *self = Want::Outputs { outputs: Vec::new(), after: Vec::new() };
        }
        match self {
            Want::Outputs { outputs, after } => Ok((outputs, after)),
            _ => Err(invalid!("a case has outputs or an error, not both")),
        }
    }
}

fn input(words: &[&str]) -> Result<Input> {
    let first = words.first().ok_or_else(|| invalid!("an input has a type"))?;
    for (open, kind) in [("ref(", Kind::Ref), ("resource(", Kind::Resource)] {
        let Some(inner) = inside(first, open, ')') else { continue };
        let inner = crate::text::words(inner);
        let (dtype, shape) = head(inner.first().ok_or_else(|| invalid!("a variable has a type"))?)?;
        let value = if inner.len() == 1 && shape.elements() > 0 { None } else { Some(tensor(&inner)?) };
        return Ok(Input { kind, dtype, shape, value });
    }
    let value = tensor(words)?;
    Ok(Input { kind: Kind::Value, dtype: value.dtype(), shape: value.shape().clone(), value: Some(value) })
}

fn code_named(name: &str) -> Result<Code> {
    (0..=16)
        .map(Code::from_number)
        .find(|code| format!("{code:?}") == name)
        .ok_or_else(|| invalid!("{name} is not an error code"))
}
