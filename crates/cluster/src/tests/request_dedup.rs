//! Requests that are received twice.

use crate::request_dedup::REMEMBERED;
use crate::tests::net::Net;
use crate::{RecvBuf, RecvTensor, RequestDedup, RunGraph};
use status::Code;

#[test]
fn an_id_is_accepted_once_and_zero_always() {
    let requests = RequestDedup::default();
    let check = |id| requests.check(id, "RunGraph (Worker)", || format!("request_id: {id}"));
    assert_eq!((check(0), check(0), check(7)), (Ok(()), Ok(()), Ok(())));
    let error = check(7).unwrap_err();
    assert_eq!(error.message, "The same RunGraph (Worker) request was received twice. request_id: 7");
    (8..8 + REMEMBERED as i64).for_each(|id| assert_eq!(check(id), Ok(())));
    assert_eq!(check(7), Ok(()), "the oldest are forgotten");
}

#[test]
fn a_worker_refuses_a_repeated_request_in_tensorflows_words() {
    let net = Net::new("worker:0");
    let client = net.worker("worker:0").client();
    let key = "1:2:0:0".to_string();
    let run = || client.run_graph(RunGraph { graph: "g".into(), step_id: 3, request_id: 5, ..RunGraph::default() });
    let recv = || client.recv_tensor(RecvTensor { step_id: 3, key: key.clone(), request_id: 6 });
    let open = || client.open_tensor(RecvTensor { step_id: 3, key: key.clone(), request_id: 6 });
    let buf = || client.recv_buf(RecvBuf { step_id: 3, key: key.clone(), request_id: 7, ..RecvBuf::default() });
    let again = |error: status::Error, text: &str| {
        let text = format!("The same {text}");
        assert_eq!((error.code, error.message), (Code::Aborted, text));
    };
    assert!(!net.run(run()).unwrap_err().message.contains("received twice"));
    let text = "RunGraph (Worker) request was received twice. graph_handle: \"g\" step_id: 3 session_handle: \"\" \
                request_id: 5";
    again(net.run(run()).unwrap_err(), text);
    assert!(!net.run(recv()).unwrap_err().message.contains("received twice"));
    let text =
        "RecvTensor (GrpcWorker) request was received twice. step_id: 3 rendezvous_key: \"1:2:0:0\" request_id: 6";
    again(net.run(recv()).unwrap_err(), text);
    again(net.run(open()).unwrap_err(), text);
    assert!(!net.run(buf()).unwrap_err().message.contains("received twice"));
    let text = "RecvBuf (GrpcWorker) request was received twice. step_id: 3 buf_rendezvous_key: \"1:2:0:0\" num_bytes: 0 \
                request_id: 7";
    again(net.run(buf()).unwrap_err(), text);
}
