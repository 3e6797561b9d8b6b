//! Sessions, hooks, supervisors and coordinators, on servers of this process.

mod await_ready;
mod coordination;
mod device_setter;
mod file_systems;
mod file_writer;
mod hook_events;
mod iterators;
mod log;
mod monitored;
mod monitoring;
mod recovery;
mod saving;
mod scaffold;
mod session_manager;
mod shared_state;
mod supervised;
mod supervisor;
mod supervisor_files;
mod sync_replicas;

#[path = "../../../checkpoint/src/tests/support.rs"]
mod support;

use support::{Folder, counting, graph, nodes};
