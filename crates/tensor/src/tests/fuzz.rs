//! Arbitrary messages: decoding returns a tensor or an error, and allocates no more than the message claims.

use crate::wire::{decode_tensor, encode_tensor};
use crate::{DType, Tensor};
use proptest::prelude::*;
use prost::Message;
use proto::tensorflow as pb;

/// Decodes a message; a result must match its shape and survive an encoding round trip.
fn survives(message: pb::TensorProto) -> Result<(), TestCaseError> {
    let Ok(tensor) = decode_tensor(message) else { return Ok(()) };
    prop_assert_eq!(tensor.elements(), tensor.shape().elements());
    let again = decode_tensor(encode_tensor(&tensor).unwrap()).unwrap();
    prop_assert_eq!((again.dtype(), again.shape()), (tensor.dtype(), tensor.shape()));
    prop_assert_eq!(raw(&again), raw(&tensor));
    Ok(())
}

fn raw(tensor: &Tensor) -> Vec<u8> {
    match tensor.strings() {
        Ok(strings) => strings.concat(),
        Err(_) => tensor.buffer().map(|buffer| buffer.bytes().to_vec()).unwrap_or_default(),
    }
}

/// True if the message claims too many elements to allocate in a test.
fn claims_much(message: &pb::TensorProto) -> bool {
    let dims = message.tensor_shape.iter().flat_map(|shape| &shape.dim).map(|dim| dim.size);
    let count = dims.map(i128::from).try_fold(1i128, i128::checked_mul);
    let nested = message.variant_val.iter().flat_map(|variant| &variant.tensors);
    count.is_some_and(|count| (1 << 20..1 << 45).contains(&count)) || nested.clone().any(claims_much)
}

fn dims() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![prop::collection::vec(0i64..5, 0..4), prop::collection::vec(any::<i64>(), 0..4)]
}

prop_compose! {
    fn message()(
        dtype in prop_oneof![0i32..32, Just(101), any::<i32>()],
        dims in dims(),
        content in prop::collection::vec(any::<u8>(), 0..40),
        floats in prop::collection::vec(any::<f32>(), 0..6),
        ints in prop::collection::vec(any::<i32>(), 0..6),
        strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..6),
    ) -> pb::TensorProto {
        let dim = dims.iter().map(|&size| pb::tensor_shape_proto::Dim { size, ..Default::default() }).collect();
        pb::TensorProto {
            dtype,
            tensor_shape: Some(pb::TensorShapeProto { dim, unknown_rank: false }),
            tensor_content: content.into(),
            scomplex_val: floats.clone(),
            float_val: floats,
            half_val: ints.clone(),
            int_val: ints,
            string_val: strings.into_iter().map(Into::into).collect(),
            ..Default::default()
        }
    }
}

proptest! {
    #[test]
    fn odd_messages(message in message()) {
        if !claims_much(&message) {
            survives(message)?;
        }
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = pb::TensorProto::decode(&bytes[..]) && !claims_much(&message) {
            survives(message)?;
        }
    }

    #[test]
    fn damaged_messages(kind in 0..DType::ALL.len(), count in 0usize..6, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let tensor = Tensor::zeros_of(DType::ALL[kind], [count, 2]).unwrap();
        let mut bytes = encode_tensor(&tensor).unwrap().encode_to_vec();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(message) = pb::TensorProto::decode(&bytes[..]) && !claims_much(&message) {
            survives(message)?;
        }
    }
}
