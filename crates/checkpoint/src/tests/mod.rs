//! Savers, meta graphs and saved models against the files and nodes of TensorFlow.

mod averages;
mod iterators;
mod meta_graph;
mod saver;
mod saver_options;
mod support;

use support::{Folder, counting, graph, nodes};
