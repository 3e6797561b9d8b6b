//! Facts in rows: they agree with the signatures, and no row of a family is forgotten.

use crate::activation::Activation;
use crate::registry;
use graph::{ControlFlow, Forwards, OpFacts, Signatures, StateRole};
use op::{Elementwise, Fusion};

/// The ops for which `holds` is true, sorted.
fn ops_where(holds: impl Fn(OpFacts) -> bool) -> Vec<String> {
    let registry = registry();
    let mut names: Vec<String> = registry.names().filter(|op| holds(registry.op_facts(op))).map(String::from).collect();
    names.sort();
    names
}

#[test]
fn every_control_flow_primitive_states_its_role() {
    let roles = [
        (ControlFlow::Switch, vec!["RefSwitch", "Switch", "_SwitchN"]),
        (ControlFlow::Merge, vec!["Merge", "RefMerge"]),
        (ControlFlow::Enter, vec!["Enter", "RefEnter"]),
        (ControlFlow::Exit, vec!["Exit", "RefExit"]),
        (ControlFlow::NextIteration, vec!["NextIteration", "RefNextIteration"]),
        (ControlFlow::LoopCond, vec!["LoopCond"]),
        (ControlFlow::Trigger, vec!["ControlTrigger"]),
    ];
    for (role, expected) in roles {
        assert_eq!(ops_where(|facts| facts.is(role)), expected, "{role:?}");
    }
}

#[test]
fn placeholders_and_shared_state_are_marked() {
    assert_eq!(ops_where(|facts| facts.is_placeholder), ["Placeholder", "PlaceholderV2", "PlaceholderWithDefault"]);
    assert_eq!(ops_where(|facts| facts.variable.is_some()), ["VarHandleOp", "Variable", "VariableV2"]);
    // The ops that TensorFlow's replica_device_setter places on parameter servers, as far as they have rows.
    let shared = [
        "MutableDenseHashTable",
        "MutableDenseHashTableV2",
        "MutableHashTable",
        "MutableHashTableOfTensors",
        "MutableHashTableOfTensorsV2",
        "MutableHashTableV2",
        "ResourceConditionalAccumulator",
        "VarHandleOp",
        "Variable",
        "VariableV2",
    ];
    assert_eq!(ops_where(|facts| facts.holds_shared_state), shared);
}

#[test]
fn ops_that_training_programs_look_for_state_their_role() {
    let queues = ["FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "RandomShuffleQueueV2"];
    let accumulators = ["ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator"];
    let roles: [(StateRole, &[&str]); 6] = [
        (StateRole::CreatesQueue, &queues),
        (StateRole::CreatesAccumulator, &accumulators),
        (StateRole::Saves, &["SaveV2"]),
        (StateRole::Restores, &["RestoreV2"]),
        (StateRole::AddsToVariable, &["AssignAdd", "AssignAddVariableOp"]),
        (StateRole::ChecksInitialized, &["IsVariableInitialized", "VarIsInitializedOp"]),
    ];
    for (role, expected) in roles {
        assert_eq!(ops_where(|facts| facts.state_role == Some(role)), expected, "{role:?}");
    }
}

#[test]
fn combined_ops_know_every_activation() {
    let registry = registry();
    for op in registry.names() {
        let is_known = Activation::of_op(op.as_bytes(), || Ok(0.2)).expect("an activation").is_some();
        assert_eq!(is_known, registry.facts(op).fusion == Some(Fusion::Activation), "{op}");
    }
}

#[test]
fn elementwise_ops_have_as_many_inputs_as_their_function() {
    let registry = registry();
    for op in registry.names() {
        let inputs = match registry.facts(op).elementwise {
            Some(Elementwise::Unary(_)) => 1,
            Some(Elementwise::Binary(_)) => 2,
            None => continue,
        };
        assert_eq!(registry.signature(op).expect("a signature").inputs.len(), inputs, "{op}");
    }
}

#[test]
fn an_op_that_forwards_its_input_has_an_output_of_its_type() {
    let registry = registry();
    for op in registry.names().filter(|op| registry.op_facts(op).forwards == Forwards::First) {
        let signature = registry.signature(op).expect("a signature");
        assert_eq!((&signature.inputs[0].ty, signature.inputs.len()), (&signature.outputs[0].ty, 1), "{op}");
    }
}

#[test]
fn a_product_names_an_op_that_combines_it_with_a_bias() {
    let registry = registry();
    let mut products = 0;
    for op in registry.names() {
        if let Some(Fusion::Product { combined, .. }) = registry.facts(op).fusion {
            assert_eq!(registry.facts(combined).fusion, Some(Fusion::Combined), "{op}");
            products += 1;
        }
    }
    assert_eq!(products, 2);
}
