//! Convolutions of images, which have the dimensions batch, height, width and channels.

use super::{Activation, Layer, Phase};
use crate::{Initializer, VariableScope};
use graph::Output;
use ops::nn::bias_add;
use ops::nn::conv2d;

/// A convolution with variables `kernel` and `bias`.
#[derive(Clone)]
pub struct Conv2d {
    filters: usize,
    window: [usize; 2],
    strides: [i64; 2],
    padding: &'static str,
    activation: Option<Activation>,
    kernel: Initializer,
    bias: Option<Initializer>,
}

impl Conv2d {
    /// This many filters of this size: stride 1, no padding, weights initialized by Glorot's rule, bias zero, no
    /// activation.
    pub fn new(filters: usize, window: [usize; 2]) -> Conv2d {
        Conv2d {
            filters,
            window,
            strides: [1, 1],
            padding: "VALID",
            activation: None,
            kernel: Initializer::glorot_uniform(),
            bias: Some(Initializer::Zeros),
        }
    }

    /// Sets the strides.
    pub fn strides(mut self, strides: [i64; 2]) -> Conv2d {
        self.strides = strides;
        self
    }

    /// Pads the images so that a stride of 1 keeps their size.
    pub fn same_padding(mut self) -> Conv2d {
        self.padding = "SAME";
        self
    }

    /// Applies a function to the result: `.activation(TensorOps::relu)`.
    pub fn activation(mut self, activation: Activation) -> Conv2d {
        self.activation = Some(activation);
        self
    }

    /// Sets the initializer of the weights.
    pub fn kernel(mut self, initializer: Initializer) -> Conv2d {
        self.kernel = initializer;
        self
    }

    /// Sets the initializer of the bias; `None` for a layer without a bias.
    pub fn bias(mut self, initializer: Option<Initializer>) -> Conv2d {
        self.bias = initializer;
        self
    }

    /// Applies the layer to `images`; the variables are called `kernel` and `bias` in `variables`.
    pub fn apply(&self, variables: &VariableScope, images: &Output) -> Output {
        let images = images.seen_from(variables.scope());
        let Some(channels) = images.shape().dim(3) else {
            let found = images.shape();
            let error = status::invalid!("The channel dimension of the inputs should be defined, found {found}");
            images.scope().graph().fail(error);
            return images;
        };
        let variables = variables.dtype(images.dtype());
        let shape = [self.window[0], self.window[1], channels, self.filters];
        let kernel = variables.get_with("kernel", shape, self.kernel.clone(), true);
        let mut y = conv2d(&images, &kernel, [1, self.strides[0], self.strides[1], 1], self.padding);
        if let Some(initializer) = &self.bias {
            y = bias_add(&y, &variables.get_with("bias", [self.filters], initializer.clone(), true));
        }
        self.activation.map_or_else(|| y.clone(), |activation| activation(&y))
    }
}

impl Layer for Conv2d {
    fn forward(&self, variables: &VariableScope, x: &Output, _: Phase) -> Output {
        self.apply(variables, x)
    }

    fn default_name(&self) -> &str {
        "conv2d"
    }
}
