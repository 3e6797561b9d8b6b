//! Datasets as graphs: TensorFlow's form of a dataset outside the process that made it.

mod external_state;
mod functions;
mod origin;
mod read;
mod resources;
mod write;

pub(crate) use external_state::check_external_state;
pub(crate) use origin::{Maker, Origin};
pub(crate) use read::{ENCODED, GraphReader};
pub(crate) use write::{graph_from, graph_of, shapes_attr, types_attr, without_devices};
