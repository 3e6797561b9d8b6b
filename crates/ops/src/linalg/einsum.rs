//! Einsum: sums of products, with a letter for each axis.

use super::einsum_kernel::run;
use crate::array::nodes;
use graph::{AttrValue, Node, Output};
use op::{Grad, Grads, IntoGradient, Kernel, Op, PLAIN, Setup, ShapeQuery, grads, many, outputs};
use status::{Result, invalid};
use tensor::{Complex32, Complex64, DType, PartialShape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "Einsum(inputs: N * T) -> output: T; equation: string; N: int >= 1; T: type",
    shape: einsum_shape,
    grad: Grad::Rule(rule),
    kernel,
    facts: PLAIN,
}];

/// The sum of products of one or two operands that `equation` describes, such as `ab,bc->ac`.
pub fn einsum(equation: &str, inputs: &[&Output]) -> Output {
    inputs[0].scope().op("Einsum").inputs(inputs.iter().copied()).attr("equation", equation).output()
}

/// The axes of one operand: the letters before and after the ellipsis, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subscripts {
    pub before: Vec<u8>,
    /// None if there is no ellipsis.
    pub after: Option<Vec<u8>>,
}

impl Subscripts {
    fn parse(text: &str) -> Subscripts {
        match text.split_once("...") {
            Some((before, after)) => {
                Subscripts { before: before.bytes().collect(), after: Some(after.bytes().collect()) }
            }
            None => Subscripts { before: text.bytes().collect(), after: None },
        }
    }

    /// All letters, in order.
    pub(super) fn letters(&self) -> impl Iterator<Item = u8> + '_ {
        self.before.iter().chain(self.after.iter().flatten()).copied()
    }

    fn text(&self) -> String {
        let letters = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let after = self.after.as_ref().map(|after| format!("...{}", letters(after)));
        letters(&self.before) + &after.unwrap_or_default()
    }

    /// The subscripts without some letters.
    fn without(&self, left_out: &[u8]) -> Subscripts {
        let kept = |letters: &[u8]| letters.iter().copied().filter(|letter| !left_out.contains(letter)).collect();
        Subscripts { before: kept(&self.before), after: self.after.as_deref().map(kept) }
    }

    /// The axis of a letter, counted from the end if it follows the ellipsis.
    fn axis(&self, letter: u8) -> Option<i32> {
        let place = |letters: &[u8]| letters.iter().position(|&other| other == letter);
        place(&self.before).map(|place| place as i32).or_else(|| {
            let after = self.after.as_ref()?;
            place(after).map(|place| place as i32 - after.len() as i32)
        })
    }
}

/// A parsed equation.
#[derive(Clone, Debug)]
pub(super) struct Equation {
    pub inputs: Vec<Subscripts>,
    pub output: Subscripts,
}

impl Equation {
    pub(super) fn parse(text: &str) -> Result<Equation> {
        let sides: Vec<&str> = text.split("->").collect();
        let [inputs, output] = sides[..] else {
            return Err(invalid!("Expecting exactly one '->' in einsum equation: {text}"));
        };
        let inputs: Vec<Subscripts> = inputs.split(',').map(Subscripts::parse).collect();
        if inputs.len() > 2 {
            return Err(invalid!("Expecting 1 or 2 input subscripts in equation '{text}' but got: {}", inputs.len()));
        }
        let equation = Equation { inputs, output: Subscripts::parse(output) };
        let known = |letter: u8| equation.inputs.iter().any(|input| input.letters().any(|other| other == letter));
        let stray = equation.output.letters().find(|&letter| !known(letter));
        match stray {
            Some(letter) => Err(invalid!("Label '{}' of the output of '{text}' is in no input", letter as char)),
            None => Ok(equation),
        }
    }
}

fn equation_of(value: &AttrValue) -> Result<Equation> {
    match value {
        AttrValue::String(text) => Equation::parse(&String::from_utf8_lossy(text)),
        _ => Err(invalid!("attr 'equation' must be a string")),
    }
}

fn einsum_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let equation = equation_of(query.attr("equation")?)?;
    let unknown = Ok(vec![PartialShape::unknown()]);
    if equation.inputs.len() != query.inputs.len() {
        return Err(invalid!("Expected {} inputs but got: {}", equation.inputs.len(), query.inputs.len()));
    }
    let mut sizes = [-1_i64; 256];
    for (subscripts, shape) in equation.inputs.iter().zip(query.inputs) {
        let Some(dims) = shape.dims() else { return unknown };
        if subscripts.after.is_some() {
            return unknown;
        }
        if dims.len() != subscripts.before.len() {
            return Err(invalid!("Shape must be rank {} but is rank {}", subscripts.before.len(), dims.len()));
        }
        for (&letter, &dim) in subscripts.before.iter().zip(dims) {
            let size = &mut sizes[letter as usize];
            if *size >= 0 && dim >= 0 && *size != dim {
                return Err(invalid!("Dimensions must be equal, but are {size} and {dim}"));
            }
            *size = dim.max(*size);
        }
    }
    let dims: Vec<i64> = equation.output.letters().map(|letter| sizes[letter as usize]).collect();
    Ok(vec![PartialShape::new(&dims)])
}

/// Every operand's gradient is the sum of products of the result's gradient with the other operand.
fn rule(op: &Node, dy: &Output) -> Result<Grads> {
    let equation = equation_of(&op.attr("equation")?)?;
    let inputs = op.all_inputs();
    let output = &equation.output;
    if let ([x], [own]) = (&inputs[..], &equation.inputs[..]) {
        return Ok(grads![spread(dy, output, own, x)]);
    }
    let mut subscripts = equation.inputs.clone();
    if output.after.is_some() {
        subscripts.iter_mut().for_each(|input| input.after = input.after.take().or(Some(Vec::new())));
    }
    let mut grads = Grads::new();
    for (own, other) in [(0, 1), (1, 0)] {
        let factor = if dy.dtype().is_complex() { nodes::one("Conj", &inputs[other]) } else { inputs[other].clone() };
        let known = |letter: u8| output.letters().chain(subscripts[other].letters()).any(|found| found == letter);
        let lost: Vec<u8> = subscripts[own].letters().filter(|&letter| !known(letter)).collect();
        let kept = subscripts[own].without(&lost);
        let text = format!("{},{}->{}", output.text(), subscripts[other].text(), kept.text());
        let reduced = einsum(&text, &[dy, &factor]);
        let gradient = spread(&reduced, &kept, &subscripts[own], &inputs[own]);
        let gradient = match output.after.is_some() {
            true => sum_repeated(&gradient, [&inputs[own], &inputs[other]], [&subscripts[own], &subscripts[other]]),
            false => gradient,
        };
        grads.push(gradient.into_gradient());
    }
    Ok(grads)
}

/// A gradient with the axes `from` as one with the axes `to` of `x`: those it does not have are repeated.
fn spread(gradient: &Output, from: &Subscripts, to: &Subscripts, x: &Output) -> Output {
    let mut lost: Vec<u8> = to.letters().filter(|&letter| from.axis(letter).is_none()).collect();
    lost.sort_unstable();
    lost.dedup();
    if lost.is_empty() {
        return if from == to {
            gradient.clone()
        } else {
            einsum(&format!("{}->{}", from.text(), to.text()), &[gradient])
        };
    }
    let scope = gradient.scope();
    let dims = nodes::shape(x, DType::I32);
    let sizes: Vec<Output> = lost
        .iter()
        .map(|&letter| nodes::reshape(&nodes::element(&dims, to.axis(letter).unwrap_or(0)), &nodes::ints(scope, &[1])))
        .collect();
    let sizes = nodes::concat(&sizes.iter().collect::<Vec<_>>());
    let ones = scope.op("Fill").input(&sizes).input(&gradient.like(1.0)).output();
    let text = format!("{},{}->{}", from.text(), String::from_utf8_lossy(&lost), to.text());
    einsum(&text, &[gradient, &ones])
}

/// Sums over the axes of the dots along which the first operand was repeated.
fn sum_repeated(gradient: &Output, [own, other]: [&Output; 2], [subscripts, others]: [&Subscripts; 2]) -> Output {
    let dots = |x: &Output, subscripts: &Subscripts| {
        let after = subscripts.after.as_ref().map_or(0, Vec::len) as i32;
        let end = if after > 0 { Some(-after) } else { None };
        nodes::part(&nodes::shape(x, DType::I32), subscripts.before.len() as i32, end)
    };
    let scope = gradient.scope();
    let builder = scope.op("BroadcastGradientArgs").input(&dots(own, subscripts)).input(&dots(other, others));
    let axes = builder.node().output(0) + subscripts.before.len() as f64;
    nodes::reshape(&nodes::sum(gradient, &axes, false), &nodes::shape(own, DType::I32))
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let equation = equation_of(setup.attr("equation")?)?;
    if equation.inputs.len() as i64 != setup.int("N")? {
        return Err(invalid!("Expected {} inputs but got: {}", equation.inputs.len(), setup.int("N")?));
    }
    let kernel = for_core!(setup, [f32, f64, i32, i64, Complex32, Complex64], T => {
        let equation = equation.clone();
        Ok(many(move |ctx, mut inputs| {
            let inputs: Vec<Tensor> = inputs.tensors_from(0)?;
            Ok(outputs![run::<T>(ctx, &equation, &inputs)?])
        }))
    });
    Ok(kernel?.heavy())
}
