//! `If` and `Case`: Switch nodes route the inputs to the taken branch, Merge nodes join the results.

use super::{Lowering, beside, function_attr, new_node, output, own_call, split_inputs, typed};
use graph::builtin_ops::{IDENTITY, MERGE, SWITCH, SWITCH_N};
use graph::{AttrValue, Function, NodeDef};
use status::{Result, invalid};
use std::sync::Arc;
use tensor::DType;

/// The differences between the two ops.
struct Shape {
    switch_op: &'static str,
    /// True if the switch has an attribute with the number of its outputs.
    counts_outputs: bool,
    switch_name: &'static str,
    merge_name: &'static str,
    /// Per branch: name, function and output index of the switch.
    branches: Vec<(String, Arc<Function>, usize)>,
    /// Name and output index of the switch.
    pivots: Vec<(String, usize)>,
}

impl Lowering<'_> {
    pub(super) fn lower_if(&mut self, place: usize, node: &NodeDef) -> Result<()> {
        if self.signature(&node.op)?.input_types(node)?.first() != Some(&DType::BOOL) {
            return Ok(()); // truth values of numbers and strings are defined by the op's kernel only
        }
        let (then_branch, else_branch) = (function_attr(node, "then_branch")?, function_attr(node, "else_branch")?);
        let shape = Shape {
            switch_op: SWITCH,
            counts_outputs: false,
            switch_name: "switch_pred",
            merge_name: "output",
            branches: vec![("then".to_string(), then_branch, 1), ("else".to_string(), else_branch, 0)],
            pivots: vec![("pivot_f".to_string(), 0), ("pivot_t".to_string(), 1)],
        };
        self.lower_branches(place, node, shape)
    }

    pub(super) fn lower_case(&mut self, place: usize, node: &NodeDef) -> Result<()> {
        let Some(AttrValue::List(list)) = node.attrs.get("branches") else {
            return Err(invalid!("{} has no attribute 'branches' with its functions", node.op));
        };
        let functions = list.funcs.iter().enumerate();
        let shape = Shape {
            switch_op: SWITCH_N,
            counts_outputs: true,
            switch_name: "branch_index",
            merge_name: "merge",
            branches: functions.map(|(i, function)| (format!("branch{i}"), function.clone(), i)).collect(),
            pivots: (0..list.funcs.len()).map(|i| (format!("pivot_{i}"), i)).collect(),
        };
        self.lower_branches(place, node, shape)
    }

    fn lower_branches(&mut self, place: usize, node: &NodeDef, shape: Shape) -> Result<()> {
        let types = self.signature(&node.op)?.input_types(node)?;
        let results = self.signature(&node.op)?.output_types(node)?;
        let (data, controls) = split_inputs(node);
        let [choice, args @ ..] = &data[..] else { return Err(invalid!("{} without a choice", node.op)) };
        let choice = self.tensor(choice);
        let calls: Vec<String> =
            shape.branches.iter().map(|(name, ..)| self.new_name(&format!("{}/{name}", node.name))).collect();
        // 1. Pivots that the branches wait for: only the pivot of the taken branch is alive.
        let mut inputs = vec![choice.clone(), choice.clone()];
        inputs.extend(controls.iter().map(|name| format!("^{name}")));
        let switch = self.add_switch(node, &shape, shape.switch_name, inputs, types[0], None);
        let mut pivots = vec![String::new(); shape.pivots.len()];
        for (name, index) in &shape.pivots {
            pivots[*index] = self.add_near(node, name, IDENTITY, vec![output(&switch, *index)], vec![typed(types[0])]);
        }
        // 2. Route every argument to the taken branch, on the device where the argument is.
        let mut switched = Vec::with_capacity(args.len());
        for (arg, &dtype) in args.iter().zip(&types[1..]) {
            let arg = self.tensor(arg);
            let source = self.source(&arg).map(|source| (source.name.clone(), source.device.clone()));
            let (source, device) = source.ok_or_else(|| invalid!("Unknown input '{arg}'"))?;
            let inputs = vec![arg, choice.clone()];
            switched.push(self.add_switch(node, &shape, &source.clone(), inputs, dtype, Some((source, device))));
        }
        for (call, (_, function, index)) in calls.iter().zip(&shape.branches) {
            let mut inputs: Vec<String> = switched.iter().map(|switch| output(switch, *index)).collect();
            inputs.push(format!("^{}", pivots[*index]));
            self.add(own_call(call, function, inputs, &node.device));
        }
        // 3. Merge the results.
        let count = || ("N".to_string(), AttrValue::from(calls.len()));
        let mut outputs = Vec::with_capacity(results.len());
        for (index, &dtype) in results.iter().enumerate() {
            let inputs = calls.iter().map(|call| output(call, index)).collect();
            let merge = self.add_near(node, shape.merge_name, MERGE, inputs, vec![typed(dtype), count()]);
            self.outputs.insert((node.name.clone(), index as u32), merge.clone());
            outputs.push((merge, dtype));
        }
        // 4. A branch without results must also have finished before the consumers of a control edge run.
        let mut inputs: Vec<String> = shape.branches.iter().map(|(.., index)| pivots[*index].clone()).collect();
        inputs.extend(calls.iter().map(|call| format!("^{call}")));
        let executed = self.add_near(node, "branch_executed", MERGE, inputs, vec![typed(types[0]), count()]);
        self.leave_behind(place, node, outputs, Some(executed.clone()));
        self.controls.insert(node.name.clone(), executed);
        Ok(())
    }

    /// A node of the conditional, with its device and colocation group.
    fn add_near(
        &mut self,
        node: &NodeDef,
        name: &str,
        op: &str,
        inputs: Vec<String>,
        mut attrs: Vec<(String, AttrValue)>,
    ) -> String {
        let name = self.new_name(&format!("{}/{name}", node.name));
        attrs.extend(node.attrs.get("_class").map(|class| ("_class".to_string(), class.clone())));
        self.add(new_node(&name, op, inputs, &node.device, attrs));
        name
    }

    fn add_switch(
        &mut self,
        node: &NodeDef,
        shape: &Shape,
        name: &str,
        inputs: Vec<String>,
        dtype: DType,
        beside_source: Option<(String, String)>,
    ) -> String {
        let mut attrs = vec![typed(dtype)];
        if shape.counts_outputs {
            attrs.push(("num_outs".to_string(), AttrValue::from(shape.branches.len())));
        }
        let Some((source, device)) = beside_source else {
            return self.add_near(node, name, shape.switch_op, inputs, attrs);
        };
        let name = self.new_name(&format!("{}/{name}", node.name));
        attrs.push(("_class".to_string(), beside(&source)));
        self.add(new_node(&name, shape.switch_op, inputs, &device, attrs));
        name
    }
}
