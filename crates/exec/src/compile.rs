//! Compiles a graph: builds the kernels, finds the frames, lays out the edges.

use crate::frame::State;
use crate::program::{FrameInfo, Kind, Node, OutEdge, Program};
use crate::{Kernels, Library, Target};
use graph::{FlatGraph, FlatNode, Frame, FrameNode, Frames, Signatures};
use op::{Flow, Kernel, Resources, Run, Setup, Siblings};
use parking_lot::Mutex;
use status::{Result, internal};
use std::sync::Arc;

/// The devices of a task.
pub trait Devices: Siblings {
    /// The full name and the resources of the device that a node requests.
    fn device(&self, name: &str) -> Result<(String, Arc<Resources>)>;

    /// The device that the call of a function names. Parts of the name that are missing are those of `from`.
    fn target(&self, name: &str, _from: &str) -> Result<Target> {
        Err(internal!("Currently don't support instantiating functions on device: {name}"))
    }
}

/// Simplifies and compiles a graph.
pub fn prepare(mut graph: FlatGraph, kernels: &Kernels, library: &Arc<Library>) -> Result<Program> {
    crate::simplify::simplify(&mut graph, kernels);
    compile(graph, kernels, library, "")
}

/// Compiles a graph. `path` separates the state of nodes with equal names in different functions.
pub fn compile(mut graph: FlatGraph, kernels: &Kernels, library: &Arc<Library>, path: &str) -> Result<Program> {
    let mut node_kernels = Vec::with_capacity(graph.nodes.len());
    for flat in &graph.nodes {
        let kernel = make_kernel(flat, kernels, library, path);
        node_kernels.push(kernel.map_err(|error| error.at_node(&flat.def.name))?);
    }
    crate::fuse::fuse(&mut graph, &mut node_kernels);
    let streamed = crate::streamed_inputs::stream_inputs(&mut graph, &mut node_kernels);
    let (frames, frame_of_node) = find_frames(&graph)?;
    let mut program = Program {
        nodes: Vec::with_capacity(graph.nodes.len()),
        edges: Vec::new(),
        input_slots: Vec::new(),
        control_edges: Vec::new(),
        frames,
        results: 0,
        spare: Mutex::default(),
    };
    let nodes = graph.nodes.iter().zip(node_kernels).zip(streamed).zip(&frame_of_node);
    for (((flat, kernel), streamed_inputs), &frame) in nodes {
        let uninitialized = kernels.registry().signature(&flat.def.op).is_some_and(|op| op.allows_uninitialized_input);
        let mut node = make_node(flat, kernel, uninitialized, frame, &mut program);
        if !path.is_empty() {
            // Nodes of functions are not placed: they run on the device of the caller.
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
    let mut setup = Setup::new(def, signature, types, &device, &resources, &**library);
    if !path.is_empty() {
        setup = setup.in_function(library.siblings());
    }
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

/// Fills in the consumers of every output, and the slots in which nodes find their inputs.
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
        // All consumers are in one frame. It is not the frame of the node if the node leads into a loop or out of it.
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

/// The frames of a graph, each without its nodes, and the frame of each node.
fn find_frames(graph: &FlatGraph) -> Result<(Vec<FrameInfo>, Vec<u32>)> {
    let view = |node| {
        let FlatNode { def, facts, inputs, controls, .. }: &FlatNode = node;
        FrameNode { def, facts: *facts, inputs, controls }
    };
    let nodes: Vec<FrameNode<'_>> = graph.nodes.iter().map(view).collect();
    let found = Frames::find(&nodes)?;
    let info = |frame: Frame| FrameInfo {
        name: frame.name,
        parent: frame.parent,
        parallel: frame.parallel_iterations.max(1) as usize,
        enters: frame.enters as u32,
        ..FrameInfo::default()
    };
    Ok((found.all.into_iter().map(info).collect(), found.of_node))
}
