//! Making a graph ready to run: frames found, edges laid out, kernels made.

use crate::frame::State;
use crate::program::{FrameInfo, Kind, Node, OutEdge, Program};
use crate::{Kernels, Library};
use graph::{AttrValue, FlatGraph, FlatNode, NodeId, Signatures};
use op::{Flow, Kernel, Resources, Run, Setup};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use status::{Result, invalid};
use std::sync::Arc;

/// The devices of a task.
pub trait Devices: Send + Sync {
    /// Full name and resources of the device a node asks for.
    fn device(&self, name: &str) -> Result<(String, Arc<Resources>)>;
}

/// Makes a graph ready to run after removing work that need not be done.
pub fn prepare(mut graph: FlatGraph, kernels: &Kernels, library: &Arc<Library>) -> Result<Program> {
    crate::simplify::simplify(&mut graph, kernels);
    compile(graph, kernels, library, "")
}

/// Makes a graph ready to run. `path` tells apart state of nodes with equal names in different functions.
pub fn compile(mut graph: FlatGraph, kernels: &Kernels, library: &Arc<Library>, path: &str) -> Result<Program> {
    let mut made = Vec::with_capacity(graph.nodes.len());
    for flat in &graph.nodes {
        let kernel = make_kernel(flat, kernels, library, path);
        made.push(kernel.map_err(|error| error.at_node(&flat.def.name))?);
    }
    crate::fuse::fuse(&mut graph, &mut made);
    let streamed = crate::streamed_inputs::stream_inputs(&mut graph, &mut made);
    let frames = find_frames(&graph)?;
    let mut program = Program {
        nodes: Vec::with_capacity(graph.nodes.len()),
        edges: Vec::new(),
        input_slots: Vec::new(),
        control_edges: Vec::new(),
        frames: frames.infos,
        results: 0,
        spare: Mutex::default(),
    };
    for (((flat, kernel), streamed_inputs), &frame) in graph.nodes.iter().zip(made).zip(streamed).zip(&frames.of) {
        let uninitialized = kernels.registry().signature(&flat.def.op).is_some_and(|op| op.allows_uninitialized_input);
        let mut node = make_node(flat, kernel, uninitialized, frame, &mut program);
        if !path.is_empty() {
            // Nodes of functions are not placed: they run where the caller is.
            node.device = library.devices().device(&flat.def.device)?.0.into();
        }
        node.inlined = library.is_inlined(&flat.def.op);
        program.nodes.push(Node { streamed_inputs, ..node });
    }
    lay_edges(&graph, &mut program);
    for (id, flat) in graph.nodes.iter().enumerate() {
        if flat.inputs.is_empty() && flat.controls.is_empty() {
            let frame = program.nodes[id].frame as usize;
            program.frames[frame].roots.push(id as u32);
        }
    }
    Ok(program)
}

fn make_kernel(flat: &FlatNode, kernels: &Kernels, library: &Arc<Library>, path: &str) -> Result<Arc<Kernel>> {
    let def = &flat.def;
    let (device, resources) = library.devices().device(&def.device)?;
    let function = library.functions().functions.get(&def.op);
    let registry = kernels.registry();
    let signature = function.map(|function| &function.signature).or_else(|| registry.signature(&def.op));
    let signature = signature.ok_or_else(|| status::not_found!("Op type not registered '{}'", def.op))?;
    let types = (&flat.input_types[..], &flat.output_types[..]);
    let setup = Setup::new(def, signature, types, &device, &resources, &**library);
    match function {
        Some(_) => Ok(Arc::new(library.call_kernel(&setup)?)),
        None => kernels.kernel(&setup, path, signature.stateful),
    }
}

fn make_node(flat: &FlatNode, kernel: Arc<Kernel>, uninitialized: bool, frame: u32, program: &mut Program) -> Node {
    let info = &mut program.frames[frame as usize];
    let local = info.nodes.len() as u32;
    info.nodes.push(program.nodes.len() as u32);
    let kind = kind_of(&kernel.run);
    let data = if kind == Kind::Merge { 0 } else { flat.inputs.len() };
    info.states.push(State { pending: (data + flat.controls.len()) as u32, ..State::default() });
    let refs = flat.input_types.iter().take(64).enumerate();
    let device = match program.nodes.last() {
        Some(last) if *last.device == *flat.def.device => last.device.clone(),
        _ => flat.def.device.as_str().into(),
    };
    if let Run::Flow(Flow::Ret(index)) = &kernel.run {
        program.results = program.results.max(index + 1);
    }
    Node {
        name: flat.def.name.as_str().into(),
        op: flat.def.op.as_str().into(),
        device,
        frame,
        local,
        first_input: 0,
        inputs: flat.inputs.len() as u32,
        first_value: 0,
        refs: refs.fold(0, |bits, (i, dtype)| bits | u64::from(dtype.is_ref()) << i),
        may_be_uninitialized: uninitialized || kind != Kind::Ordinary || is_ref_flow(&kernel.run),
        outputs: vec![0; flat.output_types.len() + 1],
        control_outputs: (0, 0),
        kind,
        inlined: false,
        kernel,
        streamed_inputs: Vec::new(),
    }
}

fn kind_of(run: &Run) -> Kind {
    match run {
        Run::Flow(Flow::Merge) => Kind::Merge,
        Run::Flow(Flow::Enter { .. }) => Kind::Enter,
        Run::Flow(Flow::Exit) => Kind::Exit,
        Run::Flow(Flow::NextIteration) => Kind::NextIteration,
        Run::Flow(Flow::ControlTrigger) => Kind::ControlTrigger,
        Run::Flow(Flow::Send(_) | Flow::Recv(_)) => Kind::SeesDead,
        _ => Kind::Ordinary,
    }
}

fn is_ref_flow(run: &Run) -> bool {
    matches!(run, Run::Flow(Flow::Switch | Flow::SwitchN(_) | Flow::Identity))
}

/// Fills in who consumes what, and where it is found.
fn lay_edges(graph: &FlatGraph, program: &mut Program) {
    let mut data: Vec<Vec<(u32, OutEdge)>> = vec![Vec::new(); graph.nodes.len()];
    let mut control: Vec<Vec<u32>> = vec![Vec::new(); graph.nodes.len()];
    for (id, flat) in graph.nodes.iter().enumerate() {
        for (place, edge) in flat.inputs.iter().enumerate() {
            data[edge.node as usize].push((edge.index, OutEdge { node: id as u32, input: place as u32 }));
        }
        for &source in &flat.controls {
            control[source as usize].push(id as u32);
        }
    }
    for (id, (mut consumers, controls)) in data.into_iter().zip(control).enumerate() {
        consumers.sort_by_key(|(index, _)| *index);
        // All consumers are in one frame: another one than the node's own if it leads into a loop or out of it.
        let frame = consumers.first().map(|(_, edge)| program.nodes[edge.node as usize].frame as usize);
        let node = &mut program.nodes[id];
        let outputs = node.outputs.len() - 1;
        if let Some(frame) = frame {
            node.first_value = program.frames[frame].values;
            program.frames[frame].values += outputs as u32;
        }
        let mut next = 0;
        for index in 0..outputs {
            node.outputs[index] = program.edges.len() as u32;
            while next < consumers.len() && consumers[next].0 as usize == index {
                program.edges.push(consumers[next].1);
                next += 1;
            }
        }
        node.outputs[outputs] = program.edges.len() as u32;
        let first = program.control_edges.len() as u32;
        program.control_edges.extend(controls);
        node.control_outputs = (first, program.control_edges.len() as u32);
    }
    for (id, flat) in graph.nodes.iter().enumerate() {
        program.nodes[id].first_input = program.input_slots.len() as u32;
        let nodes = &program.nodes;
        program.input_slots.extend(flat.inputs.iter().map(|edge| nodes[edge.node as usize].first_value + edge.index));
    }
}

struct Frames {
    infos: Vec<FrameInfo>,
    /// The frame of each node.
    of: Vec<u32>,
}

/// Follows edges from the roots: Enter leads into a frame, Exit out of it.
fn find_frames(graph: &FlatGraph) -> Result<Frames> {
    let mut infos = vec![FrameInfo { parallel: 1, ..FrameInfo::default() }];
    let count = graph.nodes.len();
    let has_loops = graph.nodes.iter().any(|node| is_enter(&node.def.op));
    if !has_loops {
        return Ok(Frames { infos, of: vec![0; count] });
    }
    let mut consumers: Vec<Vec<NodeId>> = vec![Vec::new(); count];
    for (id, node) in graph.nodes.iter().enumerate() {
        for source in node.inputs.iter().map(|edge| edge.node).chain(node.controls.iter().copied()) {
            consumers[source as usize].push(id as NodeId);
        }
    }
    let mut of: Vec<Option<u32>> = vec![None; count];
    let mut by_name: FxHashMap<(u32, String), u32> = FxHashMap::default();
    let roots = (0..count).filter(|&id| graph.nodes[id].inputs.is_empty() && graph.nodes[id].controls.is_empty());
    let mut queue: Vec<usize> = roots.collect();
    for &root in &queue {
        of[root] = Some(0);
    }
    while let Some(id) = queue.pop() {
        let node = &graph.nodes[id];
        let own = of[id].unwrap_or(0);
        let inner = match node.def.op.as_str() {
            op if is_enter(op) => enter_frame(node, own, &mut infos, &mut by_name)?,
            "Exit" | "RefExit" => infos[own as usize].parent,
            _ => own,
        };
        for &consumer in &consumers[id] {
            match of[consumer as usize] {
                None => {
                    of[consumer as usize] = Some(inner);
                    queue.push(consumer as usize);
                }
                Some(known) if known != inner => return Err(mixed_frames(graph, consumer, &infos, known, inner)),
                Some(_) => {}
            }
        }
    }
    Ok(Frames { infos, of: of.into_iter().map(|frame| frame.unwrap_or(0)).collect() })
}

fn is_enter(op: &str) -> bool {
    op == "Enter" || op == "RefEnter"
}

fn enter_frame(
    node: &FlatNode,
    parent: u32,
    infos: &mut Vec<FrameInfo>,
    by_name: &mut FxHashMap<(u32, String), u32>,
) -> Result<u32> {
    let Some(AttrValue::String(name)) = node.def.attrs.get("frame_name") else {
        return Err(invalid!("Enter without a frame name").at_node(&node.def.name));
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let parallel = match node.def.attrs.get("parallel_iterations") {
        Some(AttrValue::Int(count)) => (*count).max(1) as usize,
        _ => 10,
    };
    let frame = *by_name.entry((parent, name.clone())).or_insert_with(|| {
        infos.push(FrameInfo { name, parent, parallel, ..FrameInfo::default() });
        infos.len() as u32 - 1
    });
    infos[frame as usize].enters += 1;
    Ok(frame)
}

fn mixed_frames(graph: &FlatGraph, consumer: NodeId, infos: &[FrameInfo], known: u32, found: u32) -> status::Error {
    invalid!(
        "The node '{}' has inputs from different frames. The input is in frame '{}', another in frame '{}'",
        graph.nodes[consumer as usize].def.name,
        infos[found as usize].name,
        infos[known as usize].name
    )
}
