//! Permutation of axes.
