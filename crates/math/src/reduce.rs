//! Reductions over some axes.
