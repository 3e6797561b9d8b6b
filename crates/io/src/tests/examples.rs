//! Examples as TensorFlow's messages hold them, damaged ones, and JSON.

use crate::example::{Feature, bytes, entries, example_from_json, feature, floats, integers, rows, sequence_entries};
use bytes::Bytes;
use prost::Message;
use proto::tensorflow as pb;
use std::collections::BTreeMap;
use tensor::DType;

fn ints(values: &[i64]) -> pb::Feature {
    pb::Feature { kind: Some(pb::feature::Kind::Int64List(pb::Int64List { value: values.to_vec() })) }
}

fn numbers(values: &[f32]) -> pb::Feature {
    pb::Feature { kind: Some(pb::feature::Kind::FloatList(pb::FloatList { value: values.to_vec() })) }
}

fn strings(values: &[&'static [u8]]) -> pb::Feature {
    let value = values.iter().map(|&value| Bytes::from_static(value)).collect();
    pb::Feature { kind: Some(pb::feature::Kind::BytesList(pb::BytesList { value })) }
}

fn features(list: &[(&str, pb::Feature)]) -> pb::Features {
    pb::Features { feature: list.iter().map(|(key, value)| (key.to_string(), value.clone())).collect() }
}

fn message() -> Bytes {
    let all = [("i", ints(&[1, -1, i64::MAX])), ("f", numbers(&[1.5, -0.0])), ("s", strings(&[b"a", b""]))];
    let all = [&all[..], &[("none", pb::Feature::default())]].concat();
    pb::Example { features: Some(features(&all)) }.encode_to_vec().into()
}

fn sequence() -> Bytes {
    let list = |features: &[pb::Feature]| pb::FeatureList { feature: features.to_vec() };
    let lists = [("x".to_string(), list(&[ints(&[1]), pb::Feature::default()])), ("y".to_string(), list(&[]))];
    let message = pb::SequenceExample {
        context: Some(features(&[("c", numbers(&[2.0]))])),
        feature_lists: Some(pb::FeatureLists { feature_list: lists.into_iter().collect::<BTreeMap<_, _>>() }),
    };
    message.encode_to_vec().into()
}

/// Reads everything that can be read.
fn read_all(message: &Bytes) -> usize {
    let mut count = 0;
    let mut values = (Vec::new(), Vec::new(), Vec::new());
    let (context, lists) = sequence_entries(message).unwrap_or_default();
    let listed = lists.iter().filter_map(|(_, list)| rows(list)).flatten();
    let plain = entries(message).unwrap_or_default();
    for value in plain.iter().chain(&context).map(|&(_, value)| value).chain(listed) {
        let read = match feature(value) {
            Feature::List(DType::I64, list) => integers(list, &mut values.0),
            Feature::List(DType::F32, list) => floats(list, &mut values.1),
            Feature::List(_, list) => bytes(list, message, &mut values.2),
            _ => None,
        };
        count += usize::from(read.is_some());
    }
    count
}

#[test]
fn features_are_what_was_written() {
    let message = message();
    let found: BTreeMap<&[u8], &[u8]> = entries(&message).unwrap().into_iter().collect();
    let list = |key: &str| match feature(found[key.as_bytes()]) {
        Feature::List(dtype, list) => (dtype, list),
        other => panic!("{key}: {other:?}"),
    };
    let (mut i, mut f, mut s) = (Vec::new(), Vec::new(), Vec::new());
    assert_eq!(list("i").0, DType::I64);
    integers(list("i").1, &mut i).unwrap();
    floats(list("f").1, &mut f).unwrap();
    bytes(list("s").1, &message, &mut s).unwrap();
    assert_eq!((i, f, s), (vec![1, -1, i64::MAX], vec![1.5, -0.0], vec![Bytes::from_static(b"a"), Bytes::new()]));
    assert_eq!(feature(found[&b"none"[..]]), Feature::Nothing);
}

#[test]
fn sequences_have_rows() {
    let message = sequence();
    let (context, lists) = sequence_entries(&message).unwrap();
    assert_eq!(context.len(), 1);
    assert_eq!(lists.iter().map(|(_, list)| rows(list).unwrap().len()).collect::<Vec<_>>(), [2, 0]);
}

#[test]
fn damaged_examples_never_panic() {
    for whole in [message(), sequence()] {
        let count = read_all(&whole);
        assert!(count >= 2);
        for place in 0..whole.len() {
            read_all(&whole.slice(..place));
            for bit in 0..8 {
                let mut damaged = whole.to_vec();
                damaged[place] ^= 1 << bit;
                read_all(&damaged.into());
            }
        }
    }
}

#[test]
fn json_becomes_the_message_it_means() {
    let text = br#"{"features": {"feature": {"f": {"floatList": {"value": [1.5, "-Infinity"]}},
        "i": {"int64_list": {"value": ["9223372036854775807", -3]}}, "s": {"bytesList": {"value": ["aGk=", "aGk"]}}}}}"#;
    let ours = pb::Example::decode(&example_from_json(text).unwrap()[..]).unwrap();
    let wanted =
        [("f", numbers(&[1.5, f32::NEG_INFINITY])), ("i", ints(&[i64::MAX, -3])), ("s", strings(&[b"hi", b"hi"]))];
    assert_eq!(ours.features, Some(features(&wanted)));
    for wrong in [&b"["[..], b"[]", br#"{"features": 1}"#, br#"{"x": {}}"#, br#"{"features": {"feature": {"a": []}}}"#]
    {
        assert!(example_from_json(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
    }
}
