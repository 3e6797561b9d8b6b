//! Frames of loops.

use crate::{ControlFlow, Edge, FrameNode, Frames, NodeDef, NodeId, OpFacts};
use status::Result;

/// A node: its role, the frame it enters, and its inputs.
type Line<'a> = (Option<ControlFlow>, &'a str, &'a [NodeId]);

fn frames(lines: &[Line<'_>]) -> Result<Frames> {
    let describe = |&(_, frame, _): &Line<'_>| {
        let mut def = NodeDef { name: "n".to_string(), ..NodeDef::default() };
        if !frame.is_empty() {
            def.attrs.insert("frame_name".to_string(), frame.into());
        }
        def
    };
    let defs: Vec<NodeDef> = lines.iter().map(describe).collect();
    let edge = |&node: &NodeId| Edge { node, index: 0 };
    let inputs: Vec<Vec<Edge>> = lines.iter().map(|(_, _, inputs)| inputs.iter().map(edge).collect()).collect();
    let view = |((line, def), inputs)| {
        let (role, _, _): &Line<'_> = line;
        FrameNode { def, facts: OpFacts { control_flow: *role, ..OpFacts::PLAIN }, inputs, controls: &[] }
    };
    let nodes: Vec<FrameNode<'_>> = lines.iter().zip(&defs).zip(inputs.iter().map(Vec::as_slice)).map(view).collect();
    Frames::find(&nodes)
}

const ENTER: Option<ControlFlow> = Some(ControlFlow::Enter);
const EXIT: Option<ControlFlow> = Some(ControlFlow::Exit);

#[test]
fn enter_leads_into_a_frame_and_exit_out_of_it() {
    let nested = [
        (None, "", &[][..]),
        (ENTER, "outer", &[0]),
        (ENTER, "inner", &[1]),
        (ENTER, "inner", &[1]),
        (None, "", &[2, 3]),
        (EXIT, "", &[4]),
        (EXIT, "", &[5]),
        (None, "", &[6, 0]),
    ];
    let found = frames(&nested).unwrap();
    assert_eq!(found.of_node, [0, 0, 1, 1, 2, 2, 1, 0]);
    assert_eq!(found.of_outputs, [0, 1, 2, 2, 2, 1, 0, 0]);
    let described: Vec<_> = found.all.iter().map(|frame| (&*frame.name, frame.parent, frame.enters)).collect();
    assert_eq!(described, [("", 0, 0), ("outer", 0, 1), ("inner", 1, 2)]);
    assert_eq!(found.all[1].parallel_iterations, 10);
}

#[test]
fn equal_names_in_different_frames_are_different_frames() {
    let found = frames(&[
        (None, "", &[]),
        (ENTER, "a", &[0]),
        (ENTER, "b", &[0]),
        (ENTER, "loop", &[1]),
        (ENTER, "loop", &[2]),
    ]);
    let found = found.unwrap();
    assert_ne!(found.of_outputs[3], found.of_outputs[4]);
}

#[test]
fn inputs_from_different_frames_are_refused() {
    let error = frames(&[(None, "", &[]), (ENTER, "loop", &[0]), (None, "", &[0, 1])]).err().unwrap();
    assert!(error.message.starts_with("{{node n}} has inputs from different frames"), "{}", error.message);
    assert!(frames(&[(None, "", &[]), (ENTER, "", &[0])]).is_err());
}

#[test]
fn a_graph_without_loops_has_one_frame() {
    let found = frames(&[(None, "", &[]), (None, "", &[0])]).unwrap();
    assert_eq!((found.all.len(), found.of_node, found.of_outputs), (1, vec![0, 0], vec![0, 0]));
}
