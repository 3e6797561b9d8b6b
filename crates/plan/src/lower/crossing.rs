//! Determines whether a functional op uses nodes or resources of another task.

use super::{Lowering, OWN_CALL, is_true, split_inputs};
use graph::{AttrValue, DeviceSpec, Function, FunctionCall, FunctionDef, NodeDef, TensorName};
use rustc_hash::FxHashSet;
use tensor::DType;

/// Bound of the search from a handle back to the op that created it.
const HOPS: usize = 64;

impl<'a> Lowering<'a> {
    pub(super) fn crosses(&mut self, node: &NodeDef) -> bool {
        let Some(device) = self.with_work(node, HOPS) else { return false };
        let own = self.task(&device);
        self.has_far_resource(node, &own) || self.bodies_leave(node, &device, &own)
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
    fn bodies_leave(&mut self, node: &NodeDef, device: &DeviceSpec, own: &DeviceSpec) -> bool {
        self.called_bodies(node).into_iter().any(|name| self.body_leaves((name, device.clone()), own))
    }

    /// The same of one body on a device, which names its own task.
    fn body_leaves(&mut self, body: (&'a str, DeviceSpec), own: &DeviceSpec) -> bool {
        // Every body with the place of the body that calls it.
        let mut found = vec![(body, 0)];
        let mut seen: FxHashSet<(&str, DeviceSpec)> = found.iter().map(|(body, _)| body.clone()).collect();
        let mut next = 0;
        while let Some((body, _)) = found.get(next).cloned() {
            let Some(calls) = self.calls_of(&body, own) else {
                self.mark_leaving(&found, next);
                return true;
            };
            found.extend(calls.into_iter().filter(|call| seen.insert(call.clone())).map(|call| (call, next)));
            next += 1;
        }
        self.leaving.extend(seen.into_iter().map(|body| (body, false)));
        false
    }

    /// The bodies called in a body that does not leave its task itself; `None` if it does.
    fn calls_of(&self, body: &(&'a str, DeviceSpec), own: &DeviceSpec) -> Option<Vec<(&'a str, DeviceSpec)>> {
        match self.leaving.get(body) {
            Some(true) => return None,
            Some(false) => return Some(Vec::new()),
            None => {}
        }
        let library = self.library;
        let mut calls = Vec::new();
        for node in library.functions.get(body.0).map_or(&[][..], |def| &def.nodes) {
            let Ok(asked) = DeviceSpec::parse(&node.device) else { continue };
            let asked = asked.or(&body.1);
            if self.task(&asked) != *own {
                return None;
            }
            calls.extend(self.called_bodies(node).into_iter().map(|name| (name, asked.clone())));
        }
        Some(calls)
    }

    /// Remembers that a body leaves its task, and so all bodies that lead to it.
    fn mark_leaving(&mut self, found: &[((&'a str, DeviceSpec), usize)], mut place: usize) {
        loop {
            let (body, caller) = &found[place];
            self.leaving.insert(body.clone(), true);
            if place == 0 {
                return;
            }
            place = *caller;
        }
    }

    /// The functions whose bodies would replace a node.
    fn called_bodies(&self, node: &NodeDef) -> Vec<&'a str> {
        if self.is_native(node) {
            return Vec::new();
        }
        let functions = called(node).into_iter().filter_map(|f| self.library.functions.get_key_value(&f.name));
        functions.filter(|(_, def)| !is_noinline(def)).map(|(name, _)| name.as_str()).collect()
    }

    /// True if a function calls itself, so that it cannot be inlined.
    pub(super) fn is_recursive(&mut self, name: &str) -> bool {
        if let Some(&known) = self.recursive.get(name) {
            return known;
        }
        let found = self.calls_itself(name);
        self.recursive.insert(name.to_string(), found);
        found
    }

    fn calls_itself(&self, name: &str) -> bool {
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
