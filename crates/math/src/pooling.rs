//! Max and average pooling.
