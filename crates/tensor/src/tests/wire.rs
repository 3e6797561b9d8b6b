//! Messages written by real TensorFlow, and malformed messages.

use crate::wire::{decode_tensor, encode_tensor};
use crate::{
    Bytes, Complex32, Complex64, DType, Element, ResourceHandle, Shape, Tensor, Variant, VariantData, bf16, f16,
};
use prost::Message;
use proto::tensorflow as pb;
use std::fmt::Display;
use std::sync::Arc;

/// Lines of `name | type[shape] values | hex of the message`, written by `fixtures.py`.
const FIXTURES: &str = include_str!("fixtures.txt");

#[test]
fn messages_of_tensorflow_are_read() {
    let mut count = 0;
    for line in FIXTURES.lines() {
        let [name, value, data] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let message = pb::TensorProto::decode(&from_hex(data)[..]).unwrap();
        let tensor = decode_tensor(message).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(spell(&tensor), value, "{name}");
        let again = decode_tensor(encode_tensor(&tensor).unwrap()).unwrap();
        assert_eq!(spell(&again), value, "{name}, written and read again");
        count += 1;
    }
    assert!(count > 140, "{count} fixtures");
}

fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// A tensor in the notation of the fixtures: floats by their bits, strings in hex.
fn spell(tensor: &Tensor) -> String {
    fn all<T: Element, D: Display>(tensor: &Tensor, spell: impl Fn(T) -> D) -> Vec<String> {
        tensor.values::<T>().unwrap().iter().map(|&value| spell(value).to_string()).collect()
    }
    let pair = |re: String, im: String| format!("{re} {im}");
    let values = match tensor.dtype() {
        DType::F32 => all(tensor, f32::to_bits),
        DType::F64 => all(tensor, f64::to_bits),
        DType::F16 => all(tensor, f16::to_bits),
        DType::BF16 => all(tensor, bf16::to_bits),
        DType::C64 => all(tensor, |v: Complex32| pair(v.re.to_bits().to_string(), v.im.to_bits().to_string())),
        DType::C128 => all(tensor, |v: Complex64| pair(v.re.to_bits().to_string(), v.im.to_bits().to_string())),
        DType::BOOL => all(tensor, u8::from as fn(bool) -> u8),
        DType::STRING => {
            let hex = |value: &Bytes| value.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            tensor.strings().unwrap().iter().map(|value| format!("x{}", hex(value))).collect()
        }
        dtype if i8::stores(dtype) => all(tensor, |v: i8| v),
        dtype if i16::stores(dtype) => all(tensor, |v: i16| v),
        dtype if i32::stores(dtype) => all(tensor, |v: i32| v),
        dtype if i64::stores(dtype) => all(tensor, |v: i64| v),
        dtype if u8::stores(dtype) => all(tensor, |v: u8| v),
        dtype if u16::stores(dtype) => all(tensor, |v: u16| v),
        dtype if u32::stores(dtype) => all(tensor, |v: u32| v),
        dtype if u64::stores(dtype) => all(tensor, |v: u64| v),
        other => panic!("no fixture has type {other}"),
    };
    let mut words = vec![format!("{}{}", tensor.dtype(), tensor.shape())];
    words.extend(values);
    words.join(" ")
}

fn shaped(dtype: DType, dims: &[i64]) -> pb::TensorProto {
    let dim = dims.iter().map(|&size| pb::tensor_shape_proto::Dim { size, ..Default::default() }).collect();
    let shape = pb::TensorShapeProto { dim, unknown_rank: false };
    pb::TensorProto { dtype: dtype.number(), tensor_shape: Some(shape), ..Default::default() }
}

#[test]
fn content_of_the_wrong_length_is_refused() {
    for (dtype, dims, len) in [
        (DType::F32, &[2i64, 2][..], 15),
        (DType::F32, &[0], 4),
        (DType::F64, &[1 << 60, 4], 8),
        (DType::STRING, &[1 << 40], 9),
        (DType::RESOURCE, &[2], 1),
        (DType::VARIANT, &[1 << 62], 3),
    ] {
        let message = pb::TensorProto { tensor_content: vec![1; len].into(), ..shaped(dtype, dims) };
        assert!(decode_tensor(message).is_err(), "{dtype}{dims:?} of {len} bytes");
    }
}

#[test]
fn shapes_too_large_for_memory_are_refused() {
    for dims in [&[-1i64][..], &[i64::MIN, 2], &[i64::MAX, i64::MAX], &[1 << 40, 1 << 40, 1 << 40], &[1; 300]] {
        for dtype in [DType::F32, DType::STRING, DType::RESOURCE, DType::VARIANT] {
            assert!(decode_tensor(shaped(dtype, dims)).is_err(), "{dtype}{dims:?}");
        }
    }
    for dtype in DType::ALL {
        let error = decode_tensor(shaped(*dtype, &[1 << 45])).unwrap_err();
        assert_eq!(error.code, status::Code::ResourceExhausted, "{dtype}: {error}");
    }
    assert_eq!(decode_tensor(shaped(DType::F32, &[0, i64::MAX, i64::MAX])).unwrap().elements(), 0);
}

#[test]
fn a_reference_type_is_read_as_its_base() {
    let message = pb::TensorProto { float_val: vec![2.0], ..shaped(DType::F32.to_ref(), &[1]) };
    assert_eq!(decode_tensor(message).unwrap().dtype(), DType::F32);
}

#[test]
fn unknown_types_are_refused() {
    for number in [0, 26, 99, 100, 201, -1, i32::MAX, i32::MIN] {
        let message = pb::TensorProto { dtype: number, ..shaped(DType::F32, &[]) };
        assert!(decode_tensor(message).is_err(), "type {number}");
    }
}

#[test]
fn bool_bytes_become_truth_values() {
    let message = pb::TensorProto { tensor_content: vec![0, 1, 2, 255].into(), ..shaped(DType::BOOL, &[4]) };
    assert_eq!(decode_tensor(message).unwrap().values::<bool>().unwrap(), [false, true, true, true]);
}

#[test]
fn handles_and_variants_come_back() {
    let handle = ResourceHandle {
        device: "/job:ps/replica:0/task:0/device:CPU:0".into(),
        container: "box".into(),
        name: "v".into(),
        hash_code: u64::MAX,
        type_name: "N10tensorflow3VarE".into(),
        values: vec![(DType::F32, (&Shape::new(&[2, 3])).into())],
    };
    let handles = Tensor::from_handles([2], vec![handle.clone(), ResourceHandle::default()]).unwrap();
    let again = decode_tensor(encode_tensor(&handles).unwrap()).unwrap();
    assert_eq!(again.handles().unwrap(), handles.handles().unwrap());
    let data = VariantData { type_name: "t".into(), metadata: vec![1, 2].into(), tensors: vec![handles] };
    let variants = Tensor::from_variants([1], vec![Variant::Data(Arc::new(data))]).unwrap();
    let again = decode_tensor(encode_tensor(&variants).unwrap()).unwrap();
    let Variant::Data(data) = &again.variants().unwrap()[0] else { panic!("not data") };
    assert_eq!((data.type_name.as_str(), &data.metadata[..]), ("t", &[1, 2][..]));
    assert_eq!(data.tensors[0].handles().unwrap()[0], handle);
}

#[test]
fn variants_do_not_nest_without_end() {
    let mut message = shaped(DType::VARIANT, &[]);
    for _ in 0..40 {
        let data = pb::VariantTensorDataProto { tensors: vec![message], ..Default::default() };
        message = pb::TensorProto { variant_val: vec![data], ..shaped(DType::VARIANT, &[]) };
    }
    assert!(decode_tensor(message).unwrap_err().message.contains("nest deeper"));
}
