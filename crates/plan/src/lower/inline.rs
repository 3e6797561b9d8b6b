//! Inlining: the body of a function replaces the call.

use super::body::{Body, arg_types};
use super::crossing::is_noinline;
use super::{Lowering, OWN_CALL, beside, function_attr, is_true, new_node, split_inputs, typed};
use graph::builtin_ops::{IDENTITY, NO_OP};
use graph::{AttrValue, ControlFlow, DeviceSpec, Function, FunctionDef, NodeDef, TensorName};
use rustc_hash::FxHashSet;
use status::{Result, exhausted, internal, invalid};
use std::sync::Arc;
use tensor::DType;

/// The deepest nesting of bodies in each other. The names of nodes grow with every body around them.
const MAX_DEPTH: usize = 1000;

/// The most memory that all inlined bodies may take. Functions that call others twice grow exponentially.
const MAX_BYTES: usize = 128 << 20;

/// A call that is being replaced.
struct Call<'n> {
    node: &'n NodeDef,
    def: Arc<FunctionDef>,
    function: Arc<Function>,
    /// The control input of the body.
    control: Option<String>,
    /// True if the nodes of the body keep their own devices.
    many_devices: bool,
}

impl Lowering<'_> {
    pub(super) fn inline(&mut self, place: usize, node: &NodeDef) -> Result<()> {
        let by_attr = !self.library.functions.contains_key(&node.op);
        let function = match by_attr {
            true => function_attr(node, "f")?,
            false => Arc::new(Function { name: node.op.clone(), attrs: node.attrs.clone() }),
        };
        let def = self.library.functions.get(&function.name).cloned();
        let def = def.ok_or_else(|| internal!("Can't find a function: node={}", node.name))?;
        if is_noinline(&def) || self.is_recursive(&function.name) {
            return Ok(());
        }
        self.check_size(&function.name)?;
        let many_devices = by_attr || is_true(node, OWN_CALL);
        let mut call = Call { node, def, function, control: None, many_devices };
        call.control = self.add_input_control(&call);
        let args = self.add_inputs(&call)?;
        let prefix = format!("{}/", node.name);
        let this = &*self;
        let body = Body::new(&call.def, &call.function, &prefix, &args, |op| this.signature(op))?;
        self.depth += 1;
        self.add_body_nodes(&call, &body, &args)?;
        self.depth -= 1;
        let outputs = self.add_outputs(&call, &body)?;
        let executed = self.add_output_control(&call, &outputs);
        for (index, (tensor, _)) in outputs.iter().enumerate() {
            self.outputs.insert((node.name.clone(), index as u32), tensor.clone());
        }
        self.controls.insert(node.name.clone(), executed.clone());
        match is_true(node, OWN_CALL) {
            true => self.nodes[place] = None,
            false => self.leave_behind(place, node, outputs, Some(executed)),
        }
        Ok(())
    }

    fn check_size(&self, function: &str) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(exhausted!("Function {function} cannot be inlined: calls nest deeper than {MAX_DEPTH}"));
        }
        if self.bytes > MAX_BYTES {
            let limit = MAX_BYTES >> 20;
            return Err(exhausted!(
                "Function {function} cannot be inlined: the inlined functions take more than {limit} MiB"
            ));
        }
        Ok(())
    }

    /// One node that waits for all control inputs of the call.
    fn add_input_control(&mut self, call: &Call<'_>) -> Option<String> {
        let (_, controls) = split_inputs(call.node);
        if controls.is_empty() {
            return None;
        }
        let name = self.new_name(&format!("Func/{}/input_control_node", call.node.name));
        let inputs = controls.iter().map(|control| format!("^{control}")).collect();
        self.add(new_node(&name, NO_OP, inputs, &call.node.device, []));
        Some(format!("^{name}"))
    }

    /// The arguments by name, each passed on from its own device.
    fn add_inputs(&mut self, call: &Call<'_>) -> Result<Vec<(String, Vec<String>)>> {
        let (data, _) = split_inputs(call.node);
        let (mut data, mut args) = (data.into_iter(), Vec::new());
        for arg in &call.def.signature.inputs {
            let mut tensors = Vec::new();
            for dtype in arg_types(&call.def.signature, arg, &call.function)? {
                let input = data.next().ok_or_else(|| wrong_count(call, "arguments"))?;
                tensors.push(self.add_input(call, input, dtype));
            }
            args.push((arg.name.clone(), tensors));
        }
        match data.next() {
            None => Ok(args),
            Some(_) => Err(wrong_count(call, "arguments")),
        }
    }

    fn add_input(&mut self, call: &Call<'_>, input: &str, dtype: DType) -> String {
        let input = self.tensor(input);
        let name = self.new_name(&format!("Func/{}/input", call.node.name));
        let (mut attrs, mut device) = (vec![typed(dtype)], call.node.device.clone());
        if call.many_devices {
            attrs.push(("_class".to_string(), beside(TensorName::parse(&input).node)));
            device = self.requested_device(&input);
        }
        let inputs = [input].into_iter().chain(call.control.clone()).collect();
        self.add(new_node(&name, IDENTITY, inputs, &device, attrs));
        name
    }

    fn add_body_nodes(&mut self, call: &Call<'_>, body: &Body, args: &[(String, Vec<String>)]) -> Result<()> {
        let own: FxHashSet<&str> = body.nodes.iter().map(|node| node.name.as_str()).collect();
        let prefix = format!("{}/", call.node.name);
        for node in &body.nodes {
            let mut new = node.clone();
            new.name = format!("{prefix}{}", node.name);
            new.device = device_in(call, node);
            new.inputs = Vec::with_capacity(node.inputs.len() + 1);
            for input in &node.inputs {
                new.inputs.push(match input.strip_prefix('^') {
                    None => body.source(input)?,
                    Some(name) if own.contains(name) => format!("^{prefix}{name}"),
                    Some(name) => format!("^{}", body.source(name)?), // an argument
                });
            }
            // A node without inputs would otherwise run whether or not the call does.
            let waits = new.inputs.iter().any(|input| input.starts_with('^'));
            let is_call = self.function_call(node).is_some();
            if new.inputs.is_empty() || (is_call && !waits) {
                new.inputs.extend(call.control.clone());
            }
            let enters_loop = self.ops.op_facts(&node.op).is(ControlFlow::Enter);
            rename_attrs(&mut new, enters_loop, &prefix, &own, args);
            self.add(new);
        }
        Ok(())
    }

    fn add_outputs(&mut self, call: &Call<'_>, body: &Body) -> Result<Vec<(String, DType)>> {
        let mut outputs = Vec::new();
        for arg in &call.def.signature.outputs {
            let types = arg_types(&call.def.signature, arg, &call.function)?;
            let first = call.def.ret.get(&arg.name);
            let first = first.ok_or_else(|| invalid!("Function result '{}' is missing", arg.name))?;
            for (tensor, dtype) in body.results(first, types.len())?.into_iter().zip(types) {
                let name = self.new_name(&format!("Func/{}/output", call.node.name));
                let (mut attrs, mut device) = (vec![typed(dtype)], call.node.device.as_str());
                if call.many_devices {
                    attrs.push(("_class".to_string(), beside(TensorName::parse(&tensor).node)));
                    device = "";
                }
                self.add(new_node(&name, IDENTITY, vec![tensor], device, attrs));
                outputs.push((name, dtype));
            }
        }
        Ok(outputs)
    }

    /// Control edges from the call now come from the side effects that its function declares.
    fn add_output_control(&mut self, call: &Call<'_>, outputs: &[(String, DType)]) -> String {
        let name = self.new_name(&format!("Func/{}/output_control_node", call.node.name));
        let mut inputs: Vec<String> = match call.many_devices {
            true => call.def.control_ret.values().map(|node| format!("^{}/{node}", call.node.name)).collect(),
            false => outputs.iter().map(|(tensor, _)| format!("^{tensor}")).collect(),
        };
        if inputs.is_empty() {
            inputs.extend(call.control.clone());
        }
        self.add(new_node(&name, NO_OP, inputs, &call.node.device, []));
        name
    }
}

/// The device of a body node: its own completed by the call's, or the call's alone in a native call.
fn device_in(call: &Call<'_>, node: &NodeDef) -> String {
    if node.device.is_empty() || !call.many_devices {
        return call.node.device.clone();
    }
    match (DeviceSpec::parse(&node.device), DeviceSpec::parse(&call.node.device)) {
        (Ok(own), Ok(outer)) => own.or(&outer).to_string(),
        _ => node.device.clone(),
    }
}

/// Colocation constraints get the new names; frame names get the prefix, so that each call has its own frames.
fn rename_attrs(
    node: &mut NodeDef,
    enters_loop: bool,
    prefix: &str,
    own: &FxHashSet<&str>,
    args: &[(String, Vec<String>)],
) {
    if let Some(AttrValue::List(list)) = node.attrs.get_mut("_class") {
        for class in &mut list.strings {
            let name = class.strip_prefix(b"loc:@").and_then(|name| std::str::from_utf8(name).ok());
            let Some(name) = name else { continue };
            let arg = args.iter().find(|(arg, _)| arg == name).and_then(|(_, tensors)| tensors.first());
            if let Some(arg) = arg {
                *class = format!("loc:@{arg}").into();
            } else if own.contains(name) {
                *class = format!("loc:@{prefix}{name}").into();
            }
        }
    }
    if enters_loop && let Some(AttrValue::String(frame)) = node.attrs.get_mut("frame_name") {
        *frame = [prefix.as_bytes(), frame].concat().into();
    }
}

fn wrong_count(call: &Call<'_>, what: &str) -> status::Error {
    invalid!("Node {} does not match function {} in its {what}", call.node.name, call.function.name)
}
