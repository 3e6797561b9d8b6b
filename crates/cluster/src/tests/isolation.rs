//! Sessions with isolated state on a network without sockets: their resources end with them.

use super::{net::Net, open, toy};
use crate::SessionConfig;
use std::sync::atomic::Ordering::Relaxed;

/// A session that a test opens and closes; `isolate_state` is what it differs in.
fn resources_after_closing(isolate_state: bool) -> usize {
    let before = toy::CYCLES.load(Relaxed);
    let config = SessionConfig { isolate_state, ..SessionConfig::default() };
    let client = open(&Net::new("worker:0"), "a @worker:0 = Cycle", config).expect("a session");
    client.fetch("a").expect("a step");
    client.net.run(client.master.close_session(&client.session)).expect("the session closes");
    toy::CYCLES.load(Relaxed) - before
}

#[test]
fn a_resource_that_refers_to_its_device_ends_with_an_isolated_session() {
    assert_eq!(resources_after_closing(true), 0);
    assert_eq!(resources_after_closing(false), 1, "the device of the task keeps it");
}
