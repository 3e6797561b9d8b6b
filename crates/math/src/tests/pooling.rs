//! Pooling against loops over every index.
