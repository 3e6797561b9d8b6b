//! TensorFlow's counter-based random numbers.
