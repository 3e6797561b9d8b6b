//! Graphs from anybody: reading answers or refuses.

use super::wire::GRAPH;
use crate::wire::{read_graph, write_graph};
use proptest::prelude::*;

/// A graph that can be read comes back from its own encoding.
fn survives(bytes: Vec<u8>) -> Result<(), TestCaseError> {
    if let Ok(graph) = read_graph(bytes) {
        let written = write_graph(&graph);
        prop_assert_eq!(write_graph(&read_graph(written.clone()).unwrap()), written);
    }
    Ok(())
}

proptest! {
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(bytes)?;
    }

    #[test]
    fn damaged_graphs(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = GRAPH.to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        survives(bytes)?;
    }

    #[test]
    fn torn_graphs(end in any::<prop::sample::Index>()) {
        survives(GRAPH[..end.index(GRAPH.len())].to_vec())?;
    }
}
