//! `While`: a frame with Enter, Merge, Switch, NextIteration and Exit for every loop variable.

use super::{Lowering, function_attr, new_node, output, own_call, split_inputs, typed};
use graph::builtin_ops::{ENTER, EXIT, IDENTITY, LOOP_COND, MERGE, NEXT_ITERATION, NO_OP, SWITCH};
use graph::{AttrValue, Function, NodeDef, TensorName};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::DType;

/// A loop under construction.
struct Loop<'n> {
    node: &'n NodeDef,
    cond: (String, Arc<Function>),
    body: (String, Arc<Function>),
    parallel: AttrValue,
    vars: Vec<Var>,
}

/// A loop variable.
struct Var {
    input: String,
    dtype: DType,
    device: String,
    /// True for a handle that the body returns unchanged: it enters as a constant and needs no back edge.
    constant: bool,
    enter: String,
    merge: String,
    switch: String,
}

impl Lowering<'_> {
    pub(super) fn lower_while(&mut self, place: usize, node: &NodeDef) -> Result<()> {
        let mut made = self.read_loop(node)?;
        self.add_enters(&mut made);
        self.add_merges(&mut made)?;
        let condition = self.add_condition(&made);
        self.add_switches(&mut made, &condition);
        self.add_body(&made);
        self.add_exits(&made, place);
        self.add_next_iterations(&made);
        Ok(())
    }

    fn read_loop<'n>(&mut self, node: &'n NodeDef) -> Result<Loop<'n>> {
        let (cond, body) = (function_attr(node, "cond")?, function_attr(node, "body")?);
        let parallel = node.attrs.get("parallel_iterations").cloned().unwrap_or_else(|| 10i64.into());
        if matches!(parallel, AttrValue::Int(count) if count < 1) {
            return Err(invalid!("parallel_iterations must be > 0"));
        }
        let types = self.signature(&node.op)?.input_types(node)?;
        let (data, _) = split_inputs(node);
        let vars = data.iter().zip(types).enumerate().map(|(index, (input, dtype))| {
            let input = self.tensor(input);
            let constant = dtype == DType::RESOURCE && self.is_passed_on(&body, index);
            let device = self.requested_device(&input);
            let none = String::new;
            Var { input, dtype, device, constant, enter: none(), merge: none(), switch: none() }
        });
        let vars = vars.collect();
        let cond_name = self.new_name(&format!("{}/cond", node.name));
        let body_name = self.new_name(&format!("{}/body", node.name));
        Ok(Loop { node, cond: (cond_name, cond), body: (body_name, body), parallel, vars })
    }

    /// True if the body returns this argument unchanged.
    fn is_passed_on(&self, body: &Function, index: usize) -> bool {
        let Some(def) = self.library.functions.get(&body.name) else { return false };
        let arg = def.signature.inputs.get(index);
        arg.is_some_and(|arg| def.ret.values().any(|source| *source == arg.name))
    }

    fn add_enters(&mut self, made: &mut Loop<'_>) {
        let prefix = format!("{}/enter", made.node.name);
        for var in &mut made.vars {
            var.enter = self.new_name(&prefix);
        }
        let (_, controls) = split_inputs(made.node);
        let mut waits = None;
        if !controls.is_empty() {
            let name = self.new_name(&format!("{}/LoopControlInputs", made.node.name));
            let inputs = controls.iter().map(|control| format!("^{control}")).collect();
            self.add(new_node(&name, NO_OP, inputs, &made.node.device, []));
            waits = Some(format!("^{name}"));
        }
        for var in &made.vars {
            let inputs = [var.input.clone()].into_iter().chain(waits.clone()).collect();
            let attrs = [
                typed(var.dtype),
                ("frame_name".to_string(), made.node.name.as_str().into()),
                ("parallel_iterations".to_string(), made.parallel.clone()),
                ("is_constant".to_string(), var.constant.into()),
            ];
            self.add(new_node(&var.enter, ENTER, inputs, &var.device, attrs));
        }
    }

    fn add_merges(&mut self, made: &mut Loop<'_>) -> Result<()> {
        if made.vars.iter().all(|var| var.constant) {
            return Err(invalid!("While needs at least one loop variable that its body can change"));
        }
        for var in made.vars.iter_mut().filter(|var| !var.constant) {
            var.merge = self.new_name(&format!("{}/merge", made.node.name));
        }
        Ok(())
    }

    /// Calls the condition; its result is sent to all participating tasks.
    fn add_condition(&mut self, made: &Loop<'_>) -> String {
        let (call, function) = &made.cond;
        let first = made.vars.iter().find(|var| !var.constant).map(|var| format!("^{}", var.merge));
        let values = made.vars.iter().map(|var| if var.constant { &var.enter } else { &var.merge }.clone());
        let inputs = values.chain(first).collect();
        self.add(own_call(call, function, inputs, &made.node.device));
        let name = self.new_name(&format!("{}/LoopCond", made.node.name));
        self.add(new_node(&name, LOOP_COND, vec![call.clone()], &made.node.device, []));
        name
    }

    fn add_switches(&mut self, made: &mut Loop<'_>, condition: &str) {
        for var in made.vars.iter_mut().filter(|var| !var.constant) {
            let source = TensorName::parse(&var.input).node;
            var.switch = self.new_name(&format!("{}/{source}_switch", made.node.name));
            let inputs = vec![var.merge.clone(), condition.to_string()];
            self.add(new_node(&var.switch, SWITCH, inputs, &var.device, [typed(var.dtype)]));
        }
    }

    fn add_body(&mut self, made: &Loop<'_>) {
        let values = made.vars.iter().map(|var| match var.constant {
            true => var.enter.clone(),
            false => output(&var.switch, 1),
        });
        let mut inputs: Vec<String> = values.collect();
        if let Some(first) = made.vars.iter().find(|var| !var.constant) {
            // Nodes without inputs in the body must also run once per iteration.
            let name = self.new_name(&format!("{}/loop_body_control", made.node.name));
            let taken = vec![output(&first.switch, 1)];
            self.add(new_node(&name, IDENTITY, taken, &made.node.device, [typed(first.dtype)]));
            inputs.push(format!("^{name}"));
        }
        self.add(own_call(&made.body.0, &made.body.1, inputs, &made.node.device));
    }

    fn add_exits(&mut self, made: &Loop<'_>, place: usize) {
        let (mut outputs, mut exits) = (Vec::new(), Vec::new());
        for var in &made.vars {
            if var.constant {
                outputs.push((var.input.clone(), var.dtype));
                continue;
            }
            let name = self.new_name(&format!("{}/exit", made.node.name));
            self.add(new_node(&name, EXIT, vec![var.switch.clone()], &var.device, [typed(var.dtype)]));
            exits.push(format!("^{name}"));
            outputs.push((name, var.dtype));
        }
        let executed = self.new_name(&format!("{}/LoopExecuted", made.node.name));
        self.add(new_node(&executed, NO_OP, exits, &made.node.device, []));
        for (index, (tensor, _)) in outputs.iter().enumerate() {
            self.outputs.insert((made.node.name.clone(), index as u32), tensor.clone());
        }
        self.leave_behind(place, made.node, outputs, None);
        self.controls.insert(made.node.name.clone(), executed);
    }

    fn add_next_iterations(&mut self, made: &Loop<'_>) {
        for (index, var) in made.vars.iter().enumerate().filter(|(_, var)| !var.constant) {
            let body = &made.body.0;
            let next = self.new_name(&format!("{}/next_iteration", made.node.name));
            let inputs = vec![output(body, index), format!("^{body}")];
            self.add(new_node(&next, NEXT_ITERATION, inputs, &var.device, [typed(var.dtype)]));
            let attrs = [typed(var.dtype), ("N".to_string(), 2i64.into())];
            self.add(new_node(&var.merge, MERGE, vec![var.enter.clone(), next], &var.device, attrs));
        }
    }
}
