//! Lists of tensors; what TensorFlow answers was asked of TensorFlow.

use super::evaluate::{Evaluation, FLOAT, floats, graph, int, ints, refusal};
use crate::data_structures::arithmetic::zeros_like;
use crate::data_structures::tensor_list::TensorList;
use crate::data_structures::tensor_list::item::*;
use crate::data_structures::tensor_list::join::*;
use crate::data_structures::tensor_list::spread::*;
use tensor::{DType, PartialShape, Tensor, Variant, VariantObject, wire};

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.values::<f32>().unwrap().to_vec()
}

#[test]
fn push_then_pop_gives_the_last_tensor() {
    let g = graph();
    let list = empty_tensor_list(&ints(&g, &[2]), &int(&g, -1), FLOAT);
    let list = tensor_list_push_back(&list, &floats(&g, &[1.0, 2.0]));
    let list = tensor_list_push_back(&list, &floats(&g, &[3.0, 4.0]));
    let (shorter, last) = tensor_list_pop_back(&list, &ints(&g, &[2]), FLOAT);
    let step = Evaluation::new();
    assert_eq!(numbers(&step.value(&last).unwrap()), [3.0, 4.0]);
    let length = |list| step.value(&tensor_list_length(list)).unwrap().to_scalar::<i32>().unwrap();
    assert_eq!((length(&list), length(&shorter)), (2, 1)); // the list pushed to is as it was
}

#[test]
fn empty_places_are_zeros_once_a_shape_is_known() {
    let g = graph();
    let list = tensor_list_reserve(&int(&g, -1), &int(&g, 3), FLOAT);
    let step = Evaluation::new();
    let get = |list, index| step.value(&tensor_list_get_item(list, &int(&g, index), &int(&g, -1), FLOAT));
    assert_eq!(
        refusal(get(&list, 0)),
        "Trying to read an uninitialized tensor but element_shape is not fully defined: <unknown> and no list \
         element is set."
    );
    let list = tensor_list_set_item(&list, &int(&g, 1), &floats(&g, &[5.0, 6.0]));
    assert_eq!(numbers(&get(&list, 0).unwrap()), [0.0, 0.0]);
    let stacked = step.value(&tensor_list_stack(&list, &int(&g, -1), FLOAT, None)).unwrap();
    assert_eq!((stacked.shape().dims(), numbers(&stacked)), (&[3, 2][..], vec![0.0, 0.0, 5.0, 6.0, 0.0, 0.0]));
    assert_eq!(refusal(get(&list, 3)), "Trying to access element 3 in a list with 3 elements.");
    assert_eq!(refusal(get(&list, -1)), "Trying to access element -1 in a list with 3 elements.");
}

#[test]
fn a_tensor_goes_to_a_list_and_back() {
    let g = graph();
    let tensor = super::evaluate::constant(&g, Tensor::from_slice([3, 2], &[1f32, 2., 3., 4., 5., 6.]).unwrap());
    let list = tensor_list_from_tensor(&tensor, &ints(&g, &[2]));
    let step = Evaluation::new();
    let back = step.value(&tensor_list_stack(&list, &ints(&g, &[2]), FLOAT, Some(3))).unwrap();
    assert_eq!((back.shape().dims(), numbers(&back)), (&[3, 2][..], vec![1., 2., 3., 4., 5., 6.]));
    let gathered = step.value(&tensor_list_gather(&list, &ints(&g, &[2, 0]), &ints(&g, &[2]), FLOAT)).unwrap();
    assert_eq!(numbers(&gathered), [5., 6., 1., 2.]);
    let wrong = step.value(&tensor_list_stack(&list, &ints(&g, &[2]), FLOAT, Some(4)));
    assert_eq!(refusal(wrong), "Operation expected a list with 4 elements but got a list with 3 elements.");
}

#[test]
fn split_and_concat_are_each_others_inverse() {
    let g = graph();
    let tensor = floats(&g, &[1., 2., 3., 4.]);
    let lengths = super::evaluate::constant(&g, Tensor::vector(&[1i64, 0, 3]));
    let list = tensor_list_split(&tensor, &ints(&g, &[-1]), &lengths);
    let concat = g.root().op("TensorListConcatV2").input(&list).input(&ints(&g, &[-1]));
    let none = super::evaluate::constant(&g, Tensor::vector::<i64>(&[]));
    let concat = concat.input(&none).attr("element_dtype", FLOAT).node();
    let step = Evaluation::new();
    assert_eq!(numbers(&step.value(&concat.output(0)).unwrap()), [1., 2., 3., 4.]);
    assert_eq!(step.value(&concat.output(1)).unwrap().values::<i64>().unwrap(), [1, 0, 3]);
    let short = super::evaluate::constant(&g, Tensor::vector(&[1i64, 2]));
    let unused = step.value(&tensor_list_split(&tensor, &ints(&g, &[-1]), &short));
    assert_eq!(refusal(unused), "Unused values in tensor. Length of tensor: 4 Values used: 3");
}

#[test]
fn scatter_leaves_gaps() {
    let g = graph();
    let tensor = floats(&g, &[7., 8.]);
    let list = tensor_list_scatter(&tensor, &ints(&g, &[3, 1]), &ints(&g, &[]), &int(&g, -1));
    let step = Evaluation::new();
    let all = step.value(&tensor_list_stack(&list, &ints(&g, &[]), FLOAT, None)).unwrap();
    assert_eq!(numbers(&all), [0., 8., 0., 7.]);
    let outside = tensor_list_scatter(&tensor, &ints(&g, &[3, 1]), &ints(&g, &[]), &int(&g, 2));
    assert_eq!(refusal(step.value(&outside)), "TensorListScatter: Trying to scatter at index 3 in list with size 2");
}

#[test]
fn a_number_alone_takes_no_memory() {
    let g = graph();
    let step = Evaluation::new();
    let reserved = step.value(&tensor_list_reserve(&int(&g, -1), &int(&g, i32::MAX), FLOAT));
    assert_eq!(refusal(reserved), "OOM when allocating a list of 2147483647 tensors");
    let negative = step.value(&tensor_list_reserve(&int(&g, -1), &int(&g, -1), FLOAT));
    assert_eq!(refusal(negative), "The num_elements to reserve must be a non negative number, but got -1");
}

#[test]
fn a_full_list_takes_no_more() {
    let g = graph();
    let list = empty_tensor_list(&int(&g, -1), &int(&g, 1), FLOAT);
    let list = tensor_list_push_back(&list, &floats(&g, &[1.0]));
    let more = tensor_list_push_back(&list, &floats(&g, &[1.0]));
    let refused = refusal(Evaluation::new().value(&more));
    assert_eq!(refused, "Tried to push item into a full list list size: 1 max_num_elements: 1");
}

/// The bytes are those real TensorFlow writes for `tensor_list_reserve([2], 3)` with place 1 set.
#[test]
fn a_list_travels_as_tensorflow_writes_it() {
    let mut list = TensorList::new(DType::F32, PartialShape::new(&[2]));
    list.resize(3).unwrap();
    assert!(list.set(1, Tensor::vector(&[1f32, 2.0])));
    let data = list.encode().unwrap();
    let minus_one = [0xff; 9].iter().copied().chain([1]);
    let expected: Vec<u8> = [2, 0, 2, 1].into_iter().chain(minus_one).chain([0x12, 2, 8, 2]).collect();
    assert_eq!((data.type_name.as_str(), &data.metadata[..]), ("tensorflow::TensorList", &expected[..]));
    let tensor = Tensor::from_variants([1], vec![Variant::Object(std::sync::Arc::new(list))]).unwrap();
    let received = wire::decode_tensor(wire::encode_tensor(&tensor).unwrap()).unwrap();
    let back = TensorList::from_variant(&received.variants().unwrap()[0]).unwrap().unwrap();
    assert_eq!((back.tensors().len(), back.max_num_elements, back.dtype), (3, -1, DType::F32));
    assert_eq!(numbers(back.tensors()[1].as_ref().unwrap()), [1.0, 2.0]);
    assert!(back.tensors()[0].is_none());
    let zeros = zeros_like(&received).unwrap();
    let zeros = TensorList::from_variant(&zeros.variants().unwrap()[0]).unwrap().unwrap();
    assert_eq!(numbers(zeros.tensors()[1].as_ref().unwrap()), [0.0, 0.0]);
}

#[test]
fn broken_metadata_is_refused() {
    for metadata in [&[][..], &[200, 200, 200, 200, 1], &[1], &[1, 9], &[255; 12]] {
        let data = tensor::VariantData { metadata: metadata.to_vec().into(), ..Default::default() };
        assert!(TensorList::decode(&data).is_err(), "{metadata:?}");
    }
}
