//! The answer of RecvTensor: TensorFlow's bytes in both directions, split at every byte, and malformed bytes.

use crate::wire::recv_tensor::{Incoming, Outgoing, ReceivedTensor, encode, encode_within, message};
use status::{Code, Result};
use tensor::{DType, Tensor};

/// The answers of a real TensorFlow server, as `fixtures/record.py` wrote them.
fn recorded(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/fixtures/{name}.bin", env!("CARGO_MANIFEST_DIR"))).expect("a fixture")
}

fn floats() -> Tensor {
    Tensor::from_slice([20, 30], &(0..600).map(|i| i as f32).collect::<Vec<_>>()).expect("a tensor")
}

fn read(bytes: &[u8], step: usize, raw: Option<usize>) -> Result<ReceivedTensor> {
    let mut incoming = Incoming::new(raw)?;
    bytes.chunks(step).try_for_each(|chunk| incoming.push(chunk))?;
    incoming.finish()
}

fn joined(outgoing: &Outgoing) -> Vec<u8> {
    outgoing.pieces.concat()
}

#[track_caller]
fn same(left: &Tensor, right: &Tensor) {
    assert_eq!((left.dtype(), left.shape()), (right.dtype(), right.shape()));
    match left.dtype() {
        DType::STRING => assert_eq!(left.strings(), right.strings()),
        _ => assert_eq!(left.buffer().map(|b| b.bytes()), right.buffer().map(|b| b.bytes())),
    }
}

#[test]
fn answers_of_tensorflow_are_read_however_the_bytes_are_split() {
    let bools: Vec<bool> = (0..2000).map(|i| i % 3 == 0).collect();
    let long = "x".repeat(1500);
    let strings = ["ab", "cde", &long].map(|text| bytes::Bytes::copy_from_slice(text.as_bytes()));
    for (name, expected) in [
        ("scalar", Tensor::scalar(2.5f32)),
        ("floats", floats()),
        ("bools", Tensor::vector(&bools)),
        ("doubles", Tensor::vector(&[0.0f64, 1.0, 2.0])),
        ("empty", Tensor::zeros::<i32>([0, 3]).expect("a tensor")),
        ("strings", Tensor::from_strings([3], strings.to_vec()).expect("a tensor")),
    ] {
        let bytes = message(&recorded(name)).expect("a message");
        for step in [1, 2, 7, 64, 1000, 100_000] {
            let received = read(&bytes, step, None).unwrap_or_else(|error| panic!("{name}: {error}"));
            same(&received.tensor, &expected);
            assert!(!received.is_dead && !received.require_ack);
        }
    }
}

#[test]
fn large_tensors_are_sent_as_tensorflow_sends_them() {
    let bytes = recorded("floats");
    let mut sent = 0i64;
    for (place, byte) in bytes[1..9].iter().enumerate() {
        sent |= i64::from(byte & 0x7f) << (7 * place);
    }
    let tensor = floats();
    let outgoing = encode(&tensor, false, sent, false).expect("encoded");
    assert_eq!(joined(&outgoing)[5..], bytes[..]);
    let own = tensor.buffer().map(|buffer| buffer.bytes().as_ptr());
    assert_eq!(Some(outgoing.pieces[1].as_ptr()), own, "the content is shared, not copied");
}

#[test]
fn a_received_tensor_owns_its_block() {
    let outgoing = encode(&floats(), false, 1, true).expect("encoded");
    let mut received = read(&joined(&outgoing), 333, None).expect("read");
    assert!(received.tensor.is_unique(), "so that kernels may write in place");
    same(&received.tensor, &floats());
}

#[test]
fn dead_tensors_and_other_types_are_sent() {
    let strings = Tensor::string("hello");
    for (tensor, dead) in [(floats(), true), (strings, false), (Tensor::vector::<f32>(&[]), true)] {
        let outgoing = encode(&tensor, dead, 5, true).expect("encoded");
        let received = read(&joined(&outgoing), 10, outgoing.raw).expect("read");
        same(&received.tensor, &tensor);
        assert_eq!(received.is_dead, dead);
    }
}

#[test]
fn a_tensor_above_the_limit_is_sent_raw_or_refused_in_tensorflows_words() {
    let tensor = floats();
    let refused = encode_within(&tensor, false, 0, None, 1000).err().expect("an error");
    assert_eq!(refused.code, Code::Internal);
    assert!(refused.message.starts_with("Cannot encode a Tensor that exceeds the 2GB protobuf limit."));
    for chunk in [1, 100, 2399, 2400, 5000] {
        let outgoing = encode_within(&tensor, true, 3, Some(chunk), 1000).expect("encoded");
        assert_eq!(outgoing.raw, Some(2400));
        for step in [1, 6, 100, 10_000] {
            let received = read(&joined(&outgoing), step, outgoing.raw).expect("read");
            same(&received.tensor, &tensor);
            assert!(received.is_dead);
        }
    }
}

#[test]
fn fields_after_the_content_and_unknown_ones_are_read() {
    let mut bytes = recorded("floats");
    bytes.extend_from_slice(&[0x10, 1, 0x28, 1, 0x98, 6, 5]); // is_dead, require_ack, an unknown field
    let received = read(&message(&bytes).expect("a message"), 50, None).expect("read");
    assert!(received.is_dead && received.require_ack);
    same(&received.tensor, &floats());
}

#[test]
fn malformed_messages_are_errors_and_never_panics() {
    let good = message(&recorded("floats")).expect("a message").to_vec();
    for end in 0..good.len() {
        assert!(read(&good[..end], 64, None).is_err(), "cut at {end}");
    }
    for place in 0..40 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[place] = value;
            let _ = read(&bad, 64, None);
            let _ = read(&bad, 64, Some(2400));
        }
    }
    let twice = [&good[..], &good[..]].concat();
    assert!(read(&twice, 64, None).is_err());
    assert!(read(&good, 64, Some(10)).is_err());
    assert_eq!(read(&[], 1, Some(usize::MAX / 2)).unwrap_err().code, Code::ResourceExhausted);
}
