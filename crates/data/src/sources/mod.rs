//! Datasets that produce elements of their own.

mod csv;
mod csv_fields;
mod files;
mod fixed_length;
mod generator;
mod indexed;
mod list;
mod matching_files;
mod python;
mod random;
mod range;
mod snapshot;
mod sparse_tensor_slice;
mod sql;
mod tensor;
mod tensor_slice;
mod text_line;
mod tf_record;
mod to_files;

use op::Op;

pub(crate) const TABLES: &[&[Op]] = &[
    csv::OPS,
    fixed_length::OPS,
    generator::OPS,
    list::OPS,
    matching_files::OPS,
    python::OPS,
    random::OPS,
    range::OPS,
    snapshot::CHUNKS,
    snapshot::DATASET,
    snapshot::LOAD,
    snapshot::READER,
    snapshot::SAVE,
    sparse_tensor_slice::OPS,
    sql::OPS,
    tensor::OPS,
    tensor_slice::OPS,
    text_line::OPS,
    tf_record::OPS,
    to_files::OPS,
];
