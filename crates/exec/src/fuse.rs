//! Fuses chains of elementwise ops into one node that passes over its arrays once.
//!
//! Only one output of a group is visible to other nodes. Shapes are known only when the group runs: if the inputs are
//! arrays, scalars, rows and columns of one shape, the group runs fused, otherwise op by op.

use graph::{Edge, FlatGraph, NodeId};
use math::fused::{Instruction, Operand, Program, run};
use op::{Ctx, Elementwise, Inputs, Kernel, Run, many, outputs};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use status::{Result, internal};
use std::sync::Arc;
use tensor::{DType, Shape, Tensor};

/// The most nodes in a group. Longer chains are cut so that their tiles stay in the cache.
const MAX_GROUP: usize = 48;

/// Fuses groups of nodes. `kernels` has the kernel of each node; removed nodes are removed from both.
pub(crate) fn fuse(graph: &mut FlatGraph, kernels: &mut Vec<Arc<Kernel>>) {
    let candidates = kernels.iter().filter(|kernel| kernel.elementwise.is_some()).count();
    if candidates < 2 {
        return;
    }
    let readers = readers(graph);
    let mut keep = vec![true; graph.nodes.len()];
    for root in (0..graph.nodes.len() as NodeId).rev() {
        if !keep[root as usize] || kernels[root as usize].elementwise.is_none() {
            continue;
        }
        let members = group(graph, kernels, &readers, &keep, root);
        if members.len() < 2 {
            continue;
        }
        let fused = Fused::new(graph, kernels, &members);
        let controls: SmallVec<[NodeId; 2]> =
            members.iter().flat_map(|&id| graph.node(id).controls.iter().copied()).collect();
        members.iter().for_each(|&id| keep[id as usize] = id == root);
        let node = &mut graph.nodes[root as usize];
        node.input_types = smallvec::smallvec![DType::F32; fused.inputs.len()];
        node.inputs = fused.inputs.iter().copied().collect();
        node.controls = controls;
        kernels[root as usize] = Arc::new(fused.kernel());
    }
    graph.retain(&keep);
    let mut place = 0;
    kernels.retain(|_| {
        place += 1;
        keep[place - 1]
    });
}

/// The readers of each node, and whether a node has control edges to others.
struct Readers {
    data: Vec<SmallVec<[NodeId; 2]>>,
    waited_for: Vec<bool>,
}

fn readers(graph: &FlatGraph) -> Readers {
    let mut readers =
        Readers { data: vec![SmallVec::new(); graph.nodes.len()], waited_for: vec![false; graph.nodes.len()] };
    for (id, node) in graph.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|edge| readers.data[edge.node as usize].push(id as NodeId));
        node.controls.iter().for_each(|&control| readers.waited_for[control as usize] = true);
    }
    readers
}

/// The root and the nodes before it that only members of the group read, in topological order.
fn group(graph: &FlatGraph, kernels: &[Arc<Kernel>], readers: &Readers, keep: &[bool], root: NodeId) -> Vec<NodeId> {
    let mut members = vec![root];
    let mut next = 0;
    while let Some(&id) = members.get(next) {
        next += 1;
        for edge in &graph.node(id).inputs {
            let source = edge.node;
            let inside = |reader: &NodeId| members.contains(reader);
            if members.len() < MAX_GROUP
                && keep[source as usize]
                && kernels[source as usize].elementwise.is_some()
                && !readers.waited_for[source as usize]
                && !members.contains(&source)
                && readers.data[source as usize].iter().all(inside)
            {
                members.push(source);
            }
        }
    }
    order(graph, members)
}

/// Sorts the members so that each comes after its inputs.
fn order(graph: &FlatGraph, members: Vec<NodeId>) -> Vec<NodeId> {
    let mut ordered: Vec<NodeId> = Vec::with_capacity(members.len());
    let mut rest = members;
    // The members were found backwards from the root, so few rounds are needed.
    while !rest.is_empty() {
        rest.reverse();
        let (ready, waiting): (Vec<NodeId>, Vec<NodeId>) = rest
            .iter()
            .partition(|&&id| graph.node(id).inputs.iter().all(|edge| !rest.contains(&edge.node) || edge.node == id));
        if ready.is_empty() {
            return vec![]; // a loop passes through the group, which cannot be fused then
        }
        ordered.extend(ready);
        rest = waiting;
    }
    ordered
}

/// A group as one kernel.
struct Fused {
    inputs: Vec<Edge>,
    program: Program,
    steps: Vec<Step>,
}

/// One member, for when the group runs op by op.
struct Step {
    name: String,
    kernel: Arc<Kernel>,
    args: SmallVec<[usize; 2]>,
}

impl Fused {
    fn new(graph: &FlatGraph, kernels: &[Arc<Kernel>], members: &[NodeId]) -> Fused {
        let mut inputs: Vec<Edge> = Vec::new();
        for edge in members.iter().flat_map(|&id| graph.node(id).inputs.iter()) {
            if !members.contains(&edge.node) && !inputs.contains(edge) {
                inputs.push(*edge);
            }
        }
        let mut registers: FxHashMap<Edge, usize> = inputs.iter().enumerate().map(|(i, &edge)| (edge, i)).collect();
        let (mut instructions, mut steps) = (Vec::new(), Vec::new());
        for &id in members {
            let node = graph.node(id);
            let args: SmallVec<[usize; 2]> = node.inputs.iter().map(|edge| registers[edge]).collect();
            let written = inputs.len() + instructions.len();
            instructions.push(match kernels[id as usize].elementwise {
                Some(Elementwise::Binary(op)) => Instruction::Binary(op, written, args[0], args[1]),
                Some(Elementwise::Unary(op)) => Instruction::Unary(op, written, args[0]),
                None => unreachable_instruction(written, args[0]),
            });
            registers.insert(Edge { node: id, index: 0 }, written);
            steps.push(Step { name: node.def.name.clone(), kernel: kernels[id as usize].clone(), args });
        }
        let last = inputs.len() + instructions.len() - 1;
        Fused { program: Program::new(inputs.len(), &instructions, &[last]), inputs, steps }
    }

    fn kernel(self) -> Kernel {
        let (program, steps, count) = (self.program, self.steps, self.inputs.len());
        many(move |ctx, mut inputs: Inputs| {
            let tensors = inputs.tensors(0, count)?;
            let output = match Layout::of(&tensors) {
                Some(layout) => run_fused(ctx, &program, tensors, layout)?,
                None => run_steps(ctx, &steps, tensors)?,
            };
            Ok(outputs![output])
        })
    }
}

/// Members of a group are always elementwise, so this is never used; it copies its input.
fn unreachable_instruction(written: usize, source: usize) -> Instruction {
    Instruction::Binary(math::fused::Binary::Max, written, source, source)
}

/// How the inputs of a fused run are broadcast to its elements.
struct Layout {
    shape: Shape,
    rows: usize,
    width: usize,
    inputs: SmallVec<[Broadcast; 8]>,
}

#[derive(Clone, Copy, PartialEq)]
enum Broadcast {
    Full,
    Scalar,
    Row,
    Column,
}

impl Layout {
    /// None if an input is broadcast in a way that only the ops themselves can handle.
    fn of(tensors: &[Tensor]) -> Option<Layout> {
        let widest = tensors.iter().max_by_key(|tensor| (tensor.elements(), tensor.shape().rank()))?;
        let shape = widest.shape().clone();
        let mut width = None;
        let mut inputs = SmallVec::new();
        for tensor in tensors {
            let own = tensor.shape();
            if own == &shape {
                inputs.push(Broadcast::Full);
            } else if tensor.elements() == 1 && own.rank() <= shape.rank() {
                inputs.push(Broadcast::Scalar);
            } else if own.rank() <= shape.rank() && shape.dims().ends_with(own.dims()) {
                agree(&mut width, own.elements())?;
                inputs.push(Broadcast::Row);
            } else {
                agree(&mut width, column_width(own, &shape)?)?;
                inputs.push(Broadcast::Column);
            }
        }
        let elements = shape.elements();
        let width = width.unwrap_or(elements);
        let rows = elements.checked_div(width).unwrap_or(0);
        Some(Layout { shape, rows, width, inputs })
    }
}

fn agree(width: &mut Option<usize>, found: usize) -> Option<()> {
    match width {
        Some(known) if *known != found => None,
        _ => {
            *width = Some(found);
            Some(())
        }
    }
}

/// The number of elements in a row, if `own` has one value for each row of `shape`.
fn column_width(own: &Shape, shape: &Shape) -> Option<usize> {
    let kept = own.iter().zip(shape.iter()).take_while(|(a, b)| a == b).count();
    let rest_is_one = own[kept..].iter().all(|&dim| dim == 1);
    (own.rank() == shape.rank() && rest_is_one).then(|| shape[kept..].iter().product())
}

fn run_fused(ctx: &Ctx<'_>, program: &Program, mut tensors: Vec<Tensor>, layout: Layout) -> Result<Tensor> {
    let reused = tensors.iter_mut().zip(&layout.inputs).position(|(t, &kind)| kind == Broadcast::Full && t.is_unique());
    let mut output = match reused {
        Some(place) => std::mem::replace(&mut tensors[place], Tensor::scalar(0f32)),
        None => Tensor::scratch::<f32>(&layout.shape)?,
    };
    {
        let mut operands: SmallVec<[Operand<'_>; 8]> = SmallVec::new();
        for (place, (tensor, &kind)) in tensors.iter().zip(&layout.inputs).enumerate() {
            operands.push(match kind {
                _ if reused == Some(place) => Operand::InPlace(0),
                Broadcast::Full => Operand::Full(tensor.values::<f32>()?),
                Broadcast::Scalar => Operand::Scalar(tensor.to_scalar::<f32>()?),
                Broadcast::Row => Operand::Row(tensor.values::<f32>()?),
                Broadcast::Column => Operand::Column(tensor.values::<f32>()?),
            });
        }
        run(ctx.pool(), program, layout.rows, layout.width, &operands, &mut [output.values_mut::<f32>()?]);
    }
    Ok(output)
}

/// Runs the ops one by one, as the graph has them.
fn run_steps(ctx: &Ctx<'_>, steps: &[Step], tensors: Vec<Tensor>) -> Result<Tensor> {
    let mut registers = tensors;
    for step in steps {
        let arg = |place: usize| registers[step.args[place]].clone();
        let result = match &step.kernel.run {
            Run::Unary(run) => run(ctx, arg(0)),
            Run::Binary(run) => run(ctx, arg(0), arg(1)),
            _ => Err(internal!("only ops of one or two tensors are fused")),
        };
        registers.push(result.map_err(|error| error.at_node(&step.name))?);
    }
    registers.pop().ok_or_else(|| internal!("an empty group"))
}
