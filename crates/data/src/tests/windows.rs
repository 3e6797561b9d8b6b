//! A window that is being read is a part of the state of its reader, so it is saved as a value.

use crate::transformations::window_op::{restored, window};
use crate::{Element, Spec, dataset_of, dataset_tensor};
use tensor::wire::{tensor_from_bytes, tensor_to_bytes};
use tensor::{DType, PartialShape, Tensor, VariantData};

fn element(number: i64, text: &str) -> Element {
    Element::from_vec(vec![Tensor::vector(&[number, -number]), Tensor::string(text.to_string())])
}

fn spec() -> Spec {
    let shapes = vec![PartialShape::new(&[-1]), PartialShape::unknown()];
    Spec { types: vec![DType::I64, DType::STRING], shapes }
}

#[test]
fn a_window_that_was_saved_has_its_elements_and_their_shapes() {
    for elements in [vec![], vec![element(1, "a")], vec![element(1, "a"), element(2, "b")]] {
        let saved = dataset_tensor(window(elements.clone(), spec())).unwrap();
        let read = tensor_from_bytes(&tensor_to_bytes(&saved).unwrap()).unwrap();
        let found = dataset_of(&read).unwrap();
        assert_eq!(*found.spec(), spec());
        let found = found.held().unwrap();
        let numbers = |elements: &[Element]| -> Vec<Vec<i64>> {
            elements.iter().map(|element| element[0].values::<i64>().unwrap().to_vec()).collect()
        };
        assert_eq!(numbers(found), numbers(&elements));
        let texts = |elements: &[Element]| -> Vec<_> {
            elements.iter().map(|element| element[1].to_string_scalar().unwrap()).collect()
        };
        assert_eq!(texts(found), texts(&elements));
    }
}

#[test]
fn a_damaged_window_is_an_error() {
    let of = |tensors: Vec<Tensor>| {
        let type_name = "flowgrid.Window".to_string();
        restored(&VariantData { type_name, tensors, ..VariantData::default() }).unwrap()
    };
    let (types, dims) = (Tensor::vector(&[9i32]), Tensor::vector::<i64>(&[]));
    assert!(of(vec![]).is_err());
    assert!(of(vec![Tensor::string("x")]).is_err());
    assert!(of(vec![types.clone()]).is_err());
    assert!(of(vec![types.clone(), Tensor::scalar(1f32)]).is_err());
    assert!(of(vec![types.clone(), dims.clone(), Tensor::string("x")]).is_err());
    assert!(of(vec![types, dims, Tensor::scalar(1i64)]).is_ok());
}
