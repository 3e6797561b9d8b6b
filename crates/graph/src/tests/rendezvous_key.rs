//! Rendezvous keys: the text of TensorFlow, both ways, and what is not a key.

use crate::{RendezvousKey, RendezvousKeyPrefix};
use status::Code;

const PS: &str = "/job:ps/replica:0/task:0/device:CPU:0";
const WORKER: &str = "/job:worker/replica:0/task:1/device:CPU:0";

#[test]
fn a_prefix_gives_keys_in_the_format_of_tensorflow() {
    let prefix = RendezvousKeyPrefix::new(PS, 0x1f, WORKER, "edge_3_w");
    assert_eq!(prefix.root_key(), format!("{PS};000000000000001f;{WORKER};edge_3_w;0:0"));
    assert_eq!(prefix.key(u64::MAX, 7), format!("{PS};000000000000001f;{WORKER};edge_3_w;18446744073709551615:7"));
}

#[test]
fn a_key_is_parsed_into_its_parts_and_back() {
    for incarnation in [0, 1, 0xfeed, u64::MAX] {
        let text = RendezvousKeyPrefix::new(PS, incarnation, WORKER, "a:0").key(5, 2);
        let key = RendezvousKey::parse(&text).unwrap();
        assert_eq!((key.send_device, key.send_incarnation), (PS, incarnation));
        assert_eq!((key.recv_device, key.tensor_name, key.frame_and_iteration), (WORKER, "a:0", "5:2"));
        assert_eq!(key.to_string(), text);
    }
}

#[test]
fn malformed_keys_get_the_error_of_tensorflow() {
    let cases = [
        "",
        "a",
        ";;;;",
        "a;1;b;t",
        "a;1;b;t;",
        "a;xyz;b;t;0:0",
        "a;;b;t;0:0",
        "a;1;b;t;0:0;",
        "a;1;b;t;0:0;more",
        "a;10000000000000000;b;t;0:0",
    ];
    for text in cases {
        let error = RendezvousKey::parse(text).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{text}");
        assert_eq!(error.message, format!("Invalid  rendezvous key: {text}"));
    }
}
