//! Messages with large tensors: read the same however their bytes are split, and malformed bytes.

use crate::wire::message_reader::{Layout, MessageReader, SplitMessage};
use crate::wire::recv_tensor::message;
use crate::wire::{
    RUN_CALLABLE, RUN_STEP, RUN_STEP_ANSWER, decode_run_step_answer, encode_run_callable, encode_run_step, run_step,
    run_step_answer, tensor_list, tensors_with_content,
};
use cluster::{RunStep, RunStepAnswer};
use prost::Message;
use proto::tensorflow as pb;
use status::{Code, Result};
use tensor::Tensor;
use tensor::wire::{decode_tensor, encode_tensor};

fn ramp(count: usize) -> Tensor {
    Tensor::vector(&(0..count).map(|i| i as f32).collect::<Vec<_>>())
}

/// Large, small, large strings, none, large again.
fn tensors() -> Vec<Tensor> {
    let text = bytes::Bytes::from("x".repeat(20_000));
    let strings = Tensor::from_strings([2], vec![text.clone(), text]).expect("a tensor");
    vec![ramp(5000), Tensor::scalar(2.5f32), strings, Tensor::vector::<f32>(&[]), ramp(70_000)]
}

fn request() -> pb::RunStepRequest {
    let feed = tensors().into_iter().enumerate().map(|(i, tensor)| pb::NamedTensorProto {
        name: format!("feed{i}:0"),
        tensor: (i != 3).then(|| encode_tensor(&tensor).expect("encoded")),
    });
    pb::RunStepRequest {
        session_handle: "session".to_string(),
        feed: feed.collect(),
        fetch: vec!["a:0".to_string()],
        store_errors_in_response_body: true,
        request_id: -5,
        ..Default::default()
    }
}

fn split<M: Message + Default>(bytes: &[u8], step: usize, layout: &'static Layout) -> Result<SplitMessage<M>> {
    let mut reader = MessageReader::new(layout);
    bytes.chunks(step).try_for_each(|chunk| reader.push(chunk))?;
    reader.finish()
}

#[track_caller]
fn same(left: &Tensor, right: &Tensor) {
    assert_eq!(encode_tensor(left).expect("encoded"), encode_tensor(right).expect("encoded"));
}

#[test]
fn a_step_is_read_however_the_bytes_are_split() {
    let bytes = message(&request().encode_to_vec()).expect("a message");
    for step in [1, 2, 7, 1000, 16 << 10, 1 << 20] {
        let (read, content) = split::<pb::RunStepRequest>(&bytes, step, &RUN_STEP).expect("read").open();
        assert_eq!((read.request_id, read.fetch.len(), read.feed.len()), (-5, 1, 5));
        assert!(
            read.feed[0].tensor.as_ref().is_some_and(|tensor| tensor.tensor_content.is_empty()),
            "the content is separate"
        );
        let step = run_step(read, content);
        assert!(step.is_err(), "the tensor that is missing has no type");
    }
}

#[test]
fn a_callable_is_read_however_the_bytes_are_split() {
    let feed = tensors().iter().map(|tensor| encode_tensor(tensor).expect("encoded")).collect();
    let request = pb::RunCallableRequest { handle: 7, feed, ..Default::default() };
    let bytes = message(&request.encode_to_vec()).expect("a message");
    for step in [1, 3, 999, 1 << 20] {
        let (read, content) = split::<pb::RunCallableRequest>(&bytes, step, &RUN_CALLABLE).expect("read").open();
        assert_eq!(read.handle, 7);
        let mut feeds = tensors_with_content(read.feed, content).expect("tensors");
        feeds.iter().zip(&tensors()).for_each(|(left, right)| same(left, right));
        assert!(feeds[4].is_unique(), "so that kernels may write in place");
    }
}

#[test]
fn the_last_content_of_a_tensor_counts() {
    let large = encode_tensor(&ramp(5000)).expect("encoded").encode_to_vec();
    let small = pb::TensorProto { tensor_content: vec![1; 20_000].into(), ..Default::default() }.encode_to_vec();
    let tiny = pb::TensorProto { tensor_content: vec![1; 4].into(), ..Default::default() }.encode_to_vec();
    for last in [small, tiny] {
        let tensor = [&large[..], &last[..]].concat();
        let mut bytes = vec![(3 << 3) | 2];
        prost::encode_length_delimiter(tensor.len(), &mut bytes).expect("a length");
        bytes.extend_from_slice(&tensor);
        let expected =
            decode_tensor(pb::TensorProto::decode(&tensor[..]).expect("a message")).map(|t| t.shape().clone());
        let bytes = message(&bytes).expect("a message");
        let (read, content) = split::<pb::RunCallableRequest>(&bytes, 100, &RUN_CALLABLE).expect("read").open();
        let found = tensors_with_content(read.feed, content);
        assert_eq!(found.map(|feeds| feeds[0].shape().clone()).ok(), expected.ok());
    }
}

#[test]
fn answers_are_the_messages_the_library_would_write() {
    let metadata = Some(pb::RunMetadata::default());
    for count in 0..=5 {
        let all = tensors();
        let tensors = &all[..count];
        let fetch = tensors.iter().map(|tensor| encode_tensor(tensor).expect("encoded")).collect();
        let expected = pb::RunCallableResponse { fetch, metadata: metadata.clone() };
        let rest = pb::RunCallableResponse { fetch: Vec::new(), metadata: metadata.clone() };
        let bytes = tensor_list::encode_answer(tensors, &rest).expect("pieces").concat();
        assert_eq!(bytes, message(&expected.encode_to_vec()).expect("a message"));
        let named: Vec<_> = tensors.iter().map(|tensor| ("name".repeat(40), tensor.clone())).collect();
        let tensor = named
            .iter()
            .map(|(name, tensor)| pb::NamedTensorProto { name: name.clone(), tensor: encode_tensor(tensor).ok() });
        let expected =
            pb::RunStepResponse { tensor: tensor.collect(), metadata: metadata.clone(), ..Default::default() };
        let rest = pb::RunStepResponse { metadata: metadata.clone(), ..Default::default() };
        let bytes = tensor_list::encode_answer(&named, &rest).expect("pieces").concat();
        assert_eq!(bytes, message(&expected.encode_to_vec()).expect("a message"));
    }
}

#[test]
fn requests_and_answers_of_a_client_are_complete() {
    let named: Vec<_> = tensors().into_iter().enumerate().map(|(i, tensor)| (format!("x{i}:0"), tensor)).collect();
    let step = RunStep { feeds: named.clone(), fetches: vec!["y:0".to_string()], ..RunStep::default() };
    let bytes = encode_run_step("session", step).expect("pieces").concat();
    let (read, content) = split::<pb::RunStepRequest>(&bytes, 1000, &RUN_STEP).expect("read").open();
    assert_eq!((&*read.session_handle, &*read.fetch), ("session", &["y:0".to_string()][..]));
    let check = |found: Vec<(String, Tensor)>| {
        assert_eq!(found.len(), named.len());
        for (found, sent) in found.iter().zip(&named) {
            assert_eq!(found.0, sent.0);
            same(&found.1, &sent.1);
        }
    };
    check(run_step(read, content).expect("a step").feeds);
    let bytes = encode_run_callable("session", 7, &tensors()).expect("pieces").concat();
    let (read, content) = split::<pb::RunCallableRequest>(&bytes, 1000, &RUN_CALLABLE).expect("read").open();
    assert_eq!((&*read.session_handle, read.handle), ("session", 7));
    let feeds = tensors_with_content(read.feed, content).expect("tensors");
    feeds.iter().zip(&tensors()).for_each(|(left, right)| same(left, right));
    let answer = RunStepAnswer { tensors: named.clone(), ..RunStepAnswer::default() };
    let bytes = run_step_answer(answer).expect("pieces").concat();
    let (read, content) = split::<pb::RunStepResponse>(&bytes, 1000, &RUN_STEP_ANSWER).expect("read").open();
    let answer = decode_run_step_answer(read, content).expect("an answer");
    check(answer.tensors);
}

#[test]
fn malformed_messages_are_errors_and_never_panics() {
    let good = message(&request().encode_to_vec()).expect("a message").to_vec();
    for end in (0..good.len()).step_by(997).chain(0..60) {
        assert!(split::<pb::RunStepRequest>(&good[..end], 64, &RUN_STEP).is_err(), "cut at {end}");
    }
    for place in 0..80 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[place] = value;
            let _ = split::<pb::RunStepRequest>(&bad, 64, &RUN_STEP);
        }
    }
    let twice = [&good[..], &good[..]].concat();
    assert!(split::<pb::RunStepRequest>(&twice, 64, &RUN_STEP).is_err());
    let compressed = split::<pb::RunStepRequest>(&[1, 0, 0, 0, 0], 5, &RUN_STEP).err().expect("an error");
    assert_eq!(compressed.code, Code::Unimplemented);
}
