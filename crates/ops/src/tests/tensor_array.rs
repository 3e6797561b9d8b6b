//! Arrays and stacks of tensors; texts and values are TensorFlow's.

use super::evaluate::{Evaluation, FLOAT, constant, floats, graph, int, ints, refusal};
use crate::data_structures::stack::*;
use crate::data_structures::tensor_array::*;
use graph::{Graph, Output};
use tensor::{PartialShape, Tensor};

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.values::<f32>().unwrap().to_vec()
}

fn array(g: &Graph, size: i32) -> (Output, Output) {
    tensor_array(&g.root(), &int(g, size), FLOAT, &PartialShape::unknown())
}

#[test]
fn what_was_written_is_read_once() {
    let g = graph();
    let (handle, flow) = array(&g, 2);
    let flow = tensor_array_write(&handle, &int(&g, 1), &floats(&g, &[1.0, 2.0]), &flow);
    let step = Evaluation::new();
    assert_eq!(numbers(&step.value(&tensor_array_read(&handle, &int(&g, 1), &flow, FLOAT)).unwrap()), [1.0, 2.0]);
    let again = refusal(step.value(&tensor_array_read(&handle, &int(&g, 1), &flow, FLOAT)));
    assert!(again.contains(": Could not read index 1 twice because it was cleared after a previous read"), "{again}");
    let unwritten = step.value(&tensor_array_read(&handle, &int(&g, 0), &flow, FLOAT)).unwrap();
    assert_eq!(numbers(&unwritten), [0.0, 0.0]); // identical_element_shapes: the first write determines the shape
}

#[test]
fn a_place_is_written_once() {
    let g = graph();
    let (handle, flow) = array(&g, 2);
    let flow = tensor_array_write(&handle, &int(&g, 0), &floats(&g, &[1.0]), &flow);
    let twice = tensor_array_write(&handle, &int(&g, 0), &floats(&g, &[2.0]), &flow);
    let step = Evaluation::new();
    let refused = refusal(step.value(&twice));
    assert!(refused.contains("Could not write to TensorArray index 0 because it has already been written to."));
    let outside = refusal(step.value(&tensor_array_write(&handle, &int(&g, 5), &floats(&g, &[2.0]), &flow)));
    assert!(outside.contains("Tried to write to index 5 but array is not resizeable and size is: 2"), "{outside}");
    let shape = refusal(step.value(&tensor_array_write(&handle, &int(&g, 1), &floats(&g, &[2.0, 3.0]), &flow)));
    assert!(shape.contains("because the value shape is [2] which is incompatible with the TensorArray's inferred"));
}

#[test]
fn gradients_of_one_place_are_summed() {
    let g = graph();
    let (handle, flow) = array(&g, 2);
    let rows = constant(&g, Tensor::from_slice([2, 1], &[1f32, 2.0]).unwrap());
    let flow = tensor_array_scatter(&handle, &ints(&g, &[0, 1]), &rows, &flow);
    let grad = g.root().op("TensorArrayGradV3").input(&handle).input(&flow).attr("source", "gradients").node();
    let (grad, flow) = (grad.output(0), grad.output(1));
    let flow = tensor_array_write(&grad, &int(&g, 1), &floats(&g, &[10.0]), &flow);
    let flow = tensor_array_write(&grad, &int(&g, 1), &floats(&g, &[5.0]), &flow);
    let all = tensor_array_gather(&grad, &ints(&g, &[0, 1]), &flow, FLOAT);
    assert_eq!(numbers(&Evaluation::new().value(&all).unwrap()), [0.0, 15.0]);
}

#[test]
fn a_far_index_takes_no_memory() {
    let g = graph();
    let op = g.root().op("TensorArrayV3").input(&int(&g, 0)).attr("dtype", FLOAT).attr("dynamic_size", true);
    let node = op.node();
    let (handle, flow) = (node.output(0), node.output(1));
    let flow = tensor_array_write(&handle, &int(&g, i32::MAX - 1), &floats(&g, &[1.0]), &flow);
    let size = Evaluation::new().value(&tensor_array_size(&handle, &flow)).unwrap();
    assert_eq!(size.to_scalar::<i32>().unwrap(), i32::MAX);
}

#[test]
fn a_stack_gives_back_the_last_first() {
    let g = graph();
    let handle = stack(&g.root(), &int(&g, 2), FLOAT);
    let one = stack_push(&handle, &floats(&g, &[1.0]));
    let two = g.root().after([one.node()]).op("StackPushV2").input(&handle).input(&floats(&g, &[2.0])).output();
    let step = Evaluation::new();
    step.run(two.node()).unwrap();
    let full = refusal(step.value(&stack_push(&handle, &floats(&g, &[3.0]))));
    assert!(full.ends_with("overflowed its max_size (2)"), "{full}");
    assert_eq!(numbers(&step.value(&stack_pop(&handle, FLOAT)).unwrap()), [2.0]);
    assert_eq!(numbers(&step.value(&stack_pop(&handle, FLOAT)).unwrap()), [1.0]);
    let empty = refusal(step.value(&stack_pop(&handle, FLOAT)));
    assert!(empty.ends_with("is empty when calling Pop()."), "{empty}");
    step.run(&stack_close(&handle)).unwrap();
    let closed = refusal(step.value(&stack_pop(&handle, FLOAT)));
    assert!(closed.ends_with("has already been closed."), "{closed}");
}
