//! Files that real TensorFlow wrote.
