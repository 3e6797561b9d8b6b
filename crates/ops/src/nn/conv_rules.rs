//! The gradient rules of convolutions, shared by Conv2D, Conv3D and the depthwise convolution.

use super::rules::{copied, shape_of};
use graph::{Node, Output};
use op::{Grads, NoGradient, grads};
use status::Result;

/// A convolution and its two derivatives, by op name.
///
/// Each of the three is linear in both of its tensor operands, so the gradient of one is built from the other two.
pub(super) struct ConvRules {
    pub forward: &'static str,
    pub backprop_input: &'static str,
    pub backprop_filter: &'static str,
    /// The attributes that all three share.
    pub attrs: &'static [&'static str],
}

impl ConvRules {
    fn forward(&self, op: &Node, input: &Output, filter: &Output) -> Result<Output> {
        Ok(copied(input.scope().op(self.forward).input(input).input(filter), op, self.attrs)?.output())
    }

    fn backprop_input(&self, op: &Node, sizes: &Output, filter: &Output, grad: &Output) -> Result<Output> {
        let builder = grad.scope().op(self.backprop_input).input(sizes).input(filter).input(grad);
        Ok(copied(builder, op, self.attrs)?.output())
    }

    fn backprop_filter(&self, op: &Node, input: &Output, sizes: &Output, grad: &Output) -> Result<Output> {
        let builder = grad.scope().op(self.backprop_filter).input(input).input(sizes).input(grad);
        Ok(copied(builder, op, self.attrs)?.output())
    }

    /// The gradient of the convolution itself.
    pub fn of_forward(&self, op: &Node, dy: &Output) -> Result<Grads> {
        let [input, filter] = op.inputs()?;
        Ok(grads![
            self.backprop_input(op, &shape_of(&input), &filter, dy)?,
            self.backprop_filter(op, &input, &shape_of(&filter), dy)?
        ])
    }

    /// The gradient of the derivative by the input, which is linear in the filter and in the incoming gradient.
    pub fn of_backprop_input(&self, op: &Node, dy: &Output) -> Result<Grads> {
        let [_, filter, grad] = op.inputs()?;
        let by_filter = self.backprop_filter(op, dy, &shape_of(&filter), &grad)?;
        Ok(grads![NoGradient, by_filter, self.forward(op, dy, &filter)?])
    }

    /// The gradient of the derivative by the filter, which is linear in the input and in the incoming gradient.
    pub fn of_backprop_filter(&self, op: &Node, dy: &Output) -> Result<Grads> {
        let [input, _, grad] = op.inputs()?;
        let by_input = self.backprop_input(op, &shape_of(&input), dy, &grad)?;
        Ok(grads![by_input, NoGradient, self.forward(op, &input, dy)?])
    }
}
