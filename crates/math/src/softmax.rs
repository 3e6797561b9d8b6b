//! Softmax and its relatives, row by row.
