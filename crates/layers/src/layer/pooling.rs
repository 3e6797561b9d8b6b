//! Pooling of images, which have the dimensions batch, height, width and channels.

use super::{Layer, Phase};
use crate::VariableScope;
use graph::Output;
use ops::nn::avg_pool;
use ops::nn::max_pool;

/// The maximum of each window as a layer; see [`max_pool2d`].
#[derive(Clone, Copy, Debug)]
pub struct MaxPool2d {
    window: [i64; 2],
    strides: [i64; 2],
    padding: &'static str,
}

impl MaxPool2d {
    /// Windows of this size at these strides, without padding.
    pub fn new(window: [i64; 2], strides: [i64; 2]) -> MaxPool2d {
        MaxPool2d { window, strides, padding: "VALID" }
    }

    /// Pads the images so that a stride of 1 keeps their size.
    pub fn same_padding(self) -> MaxPool2d {
        MaxPool2d { padding: "SAME", ..self }
    }
}

impl Layer for MaxPool2d {
    fn forward(&self, variables: &VariableScope, x: &Output, _: Phase) -> Output {
        max_pool2d(&x.seen_from(variables.scope()), self.window, self.strides, self.padding)
    }

    fn default_name(&self) -> &str {
        "max_pooling2d"
    }
}

/// The mean of each window as a layer; see [`avg_pool2d`].
#[derive(Clone, Copy, Debug)]
pub struct AvgPool2d {
    window: [i64; 2],
    strides: [i64; 2],
    padding: &'static str,
}

impl AvgPool2d {
    /// Windows of this size at these strides, without padding.
    pub fn new(window: [i64; 2], strides: [i64; 2]) -> AvgPool2d {
        AvgPool2d { window, strides, padding: "VALID" }
    }

    /// Pads the images so that a stride of 1 keeps their size.
    pub fn same_padding(self) -> AvgPool2d {
        AvgPool2d { padding: "SAME", ..self }
    }
}

impl Layer for AvgPool2d {
    fn forward(&self, variables: &VariableScope, x: &Output, _: Phase) -> Output {
        avg_pool2d(&x.seen_from(variables.scope()), self.window, self.strides, self.padding)
    }

    fn default_name(&self) -> &str {
        "average_pooling2d"
    }
}

/// The maximum of each window.
pub fn max_pool2d(images: &Output, window: [i64; 2], strides: [i64; 2], padding: &str) -> Output {
    max_pool(images, [1, window[0], window[1], 1], [1, strides[0], strides[1], 1], padding)
}

/// The mean of each window.
pub fn avg_pool2d(images: &Output, window: [i64; 2], strides: [i64; 2], padding: &str) -> Output {
    avg_pool(images, [1, window[0], window[1], 1], [1, strides[0], strides[1], 1], padding)
}
