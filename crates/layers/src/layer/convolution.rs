//! Convolutions and pooling of images, batch by height by width by channels.

use super::Activation;
use crate::{Initializer, VariableScope};
use graph::Output;
use ops::nn::avg_pool::avg_pool;
use ops::nn::bias::bias_add;
use ops::nn::conv2d::conv2d;
use ops::nn::max_pool::max_pool;

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
    /// This many filters of this window: step 1, no padding, Glorot weights, zero bias, no activation.
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

    /// With other steps.
    pub fn strides(mut self, strides: [i64; 2]) -> Conv2d {
        self.strides = strides;
        self
    }

    /// Padded so that step 1 keeps the size.
    pub fn same_padding(mut self) -> Conv2d {
        self.padding = "SAME";
        self
    }

    /// With an activation.
    pub fn activation(mut self, activation: Activation) -> Conv2d {
        self.activation = Some(activation);
        self
    }

    /// With other first weights.
    pub fn kernel(mut self, initializer: Initializer) -> Conv2d {
        self.kernel = initializer;
        self
    }

    /// With another first bias, or without one.
    pub fn bias(mut self, initializer: Option<Initializer>) -> Conv2d {
        self.bias = initializer;
        self
    }

    /// The layer on `images`, with its variables in `variables`.
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

/// The largest of each window.
pub fn max_pool2d(images: &Output, window: [i64; 2], strides: [i64; 2], padding: &str) -> Output {
    max_pool(images, [1, window[0], window[1], 1], [1, strides[0], strides[1], 1], padding)
}

/// The mean of each window.
pub fn avg_pool2d(images: &Output, window: [i64; 2], strides: [i64; 2], padding: &str) -> Output {
    avg_pool(images, [1, window[0], window[1], 1], [1, strides[0], strides[1], 1], padding)
}
