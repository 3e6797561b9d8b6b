//! Determines whether a functional op uses nodes or resources of another task.

use super::{Lowering, OWN_CALL, is_true, split_inputs};
use graph::{AttrValue, DeviceSpec, Function, FunctionCall, FunctionDef, NodeDef, TensorName};
use rustc_hash::FxHashSet;
use tensor::DType;

/// Bound of the search from a handle back to the op that created it.
const HOPS: usize = 64;

impl Lowering<'_> {
    pub(super) fn crosses(&self, node: &NodeDef) -> bool {
        let Some(device) = self.with_work(node, HOPS) else { return false };
        let own = self.task(&device);
        self.has_far_resource(node, &own) || self.bodies_leave(node, &device, &own, &mut FxHashSet::default())
    }

    /// The task of a device; the master's own if the device names none.
    fn task(&self, device: &DeviceSpec) -> DeviceSpec {
        let home = DeviceSpec { kind: None, id: None, ..self.options.home.clone() };
        DeviceSpec { kind: None, id: None, ..device.clone().or(&home) }
    }

    /// The device a node requests, directly or by colocation; `None` if it is malformed.
    fn with_work(&self, node: &NodeDef, hops: usize) -> Option<DeviceSpec> {
        if !node.device.is_empty() || hops == 0 {
            return DeviceSpec::parse(&node.device).ok();
        }
        let Some(AttrValue::List(list)) = node.attrs.get("_class") else {
            return Some(DeviceSpec::default());
        };
        let names = list.strings.iter().filter_map(|class| class.strip_prefix(b"loc:@"));
        let mut others = names.filter_map(|name| self.source(std::str::from_utf8(name).ok()?));
        match others.find(|other| other.name != node.name) {
            Some(other) => self.with_work(other, hops - 1),
            None => Some(DeviceSpec::default()),
        }
    }

    fn has_far_resource(&self, node: &NodeDef, own: &DeviceSpec) -> bool {
        let types = self.signature(&node.op).and_then(|signature| signature.input_types(node));
        let Ok(types) = types else { return false };
        let (data, _) = split_inputs(node);
        data.iter().zip(types).filter(|(_, dtype)| *dtype == DType::RESOURCE).any(|(input, _)| {
            let origin = self.origin(&self.tensor(input));
            origin.and_then(|origin| self.with_work(origin, HOPS)).is_some_and(|device| self.task(&device) != *own)
        })
    }

    /// The op that created a handle, behind ops that pass it on.
    fn origin(&self, tensor: &str) -> Option<&NodeDef> {
        let (mut tensor, mut node) = (self.tensor(tensor), None);
        for _ in 0..HOPS {
            let Some(source) = self.source(&tensor) else { break };
            node = Some(&**source);
            let output = TensorName::parse(&tensor).index.unwrap_or(0) as usize;
            let index = self.ops.op_facts(&source.op).forwarded_input(output);
            let Some(input) = index.and_then(|index| source.inputs.get(index)) else { break };
            tensor = self.tensor(input);
        }
        node
    }

    /// True if a body, or a function called in it, names another task. A native call runs on the device of its node.
    fn bodies_leave(
        &self,
        node: &NodeDef,
        device: &DeviceSpec,
        own: &DeviceSpec,
        seen: &mut FxHashSet<(String, DeviceSpec)>,
    ) -> bool {
        if self.is_native(node) {
            return false;
        }
        called(node).into_iter().any(|function| {
            let Some(def) = self.library.functions.get(&function.name) else { return false };
            let is_new = !is_noinline(def) && seen.insert((function.name.clone(), device.clone()));
            is_new
                && def.nodes.iter().any(|inner| {
                    let Ok(asked) = DeviceSpec::parse(&inner.device) else { return false };
                    let asked = asked.or(device);
                    self.task(&asked) != *own || self.bodies_leave(inner, &asked, own, seen)
                })
        })
    }

    /// True if a function calls itself, so that it cannot be inlined.
    pub(super) fn is_recursive(&self, name: &str) -> bool {
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut queue = vec![name];
        while let Some(next) = queue.pop() {
            let Some(def) = self.library.functions.get(next) else { continue };
            for node in &def.nodes {
                let by_name = [node.op.as_str()];
                for inner in called(node).into_iter().map(|function| function.name.as_str()).chain(by_name) {
                    if inner == name {
                        return true;
                    }
                    let known = self.library.functions.get_key_value(inner);
                    queue.extend(known.filter(|(key, _)| seen.insert(key)).map(|(key, _)| key.as_str()));
                }
            }
        }
        false
    }

    fn is_native(&self, node: &NodeDef) -> bool {
        self.library.functions.contains_key(&node.op) && !is_true(node, OWN_CALL)
            || self.function_call(node).is_none_or(|call| call == FunctionCall::Plain && called(node).is_empty())
    }
}

/// The functions a node calls by its attributes.
fn called(node: &NodeDef) -> Vec<&Function> {
    let mut functions: Vec<&Function> = Vec::new();
    for value in node.attrs.values() {
        match value {
            AttrValue::Func(function) => functions.push(function),
            AttrValue::List(list) => functions.extend(list.funcs.iter().map(|function| &**function)),
            _ => {}
        }
    }
    functions
}

/// True if the function has the attribute `_noinline`.
pub(super) fn is_noinline(function: &FunctionDef) -> bool {
    function.attrs.get("_noinline") == Some(&AttrValue::Bool(true))
}
