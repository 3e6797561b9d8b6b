//! Device names as TensorFlow reads and prints them.

use crate::DeviceSpec;
use proptest::prelude::*;

fn printed(text: &str) -> String {
    DeviceSpec::parse(text).map_or_else(|error| error.message, |spec| spec.to_string())
}

#[test]
fn names_are_read_and_printed() {
    for (text, canonical) in [
        ("", ""),
        ("/job:worker/task:3", "/job:worker/task:3"),
        ("/job:worker/replica:0/task:1/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0"),
        ("/cpu:0", "/device:CPU:0"),
        ("/CPU:0", "/device:CPU:0"),
        ("/gpu:1", "/device:GPU:1"),
        ("/cpu", "/device:CPU:*"),
        ("/device:GPU:*", "/device:GPU:*"),
        ("/device:cpu:0", "/device:CPU:0"),
        ("/device:*:3", "/device:*:3"),
        ("/device:XLA_CPU:0", "/device:XLA_CPU:0"),
        ("/task:2/job:ps", "/job:ps/task:2"),
        ("/device:CPU:0/job:a_b1", "/job:a_b1/device:CPU:0"),
        ("/job:a/job:b", "/job:b"),
        ("//job:a", "/job:a"),
        ("job:worker", "/job:worker"),
        ("/job:*/task:1", "/task:1"),
    ] {
        assert_eq!(printed(text), canonical, "{text}");
    }
}

#[test]
fn names_that_make_no_sense_are_refused() {
    for (text, cure) in [
        ("/job:worker/task:", "'/task:' needs a number, such as /task:0"),
        ("/task:x", "'/task:x' needs a number, such as /task:0"),
        ("/task:-1", "'/task:-1' needs a number, such as /task:0"),
        ("/task:4294967296/cpu:0", "'/task:4294967296' needs a number, such as /task:0"),
        ("/replica:x", "'/replica:x' needs a number, such as /replica:0"),
        ("/job:ps/cpu:x", "'/cpu:x' needs a number, such as /cpu:0"),
        ("/device:CPU:0:1", "'/device:CPU:0:1' needs a kind and one number, such as /device:CPU:0"),
        ("/device:CPU:x", "'/device:CPU:x' needs a kind and one number, such as /device:CPU:0"),
        ("/device", "'/device' needs a kind of device, such as /device:CPU:0"),
        ("/job:1x", "'/job:1x' needs a letter, then letters, digits and underscores, such as /job:worker"),
        ("/job:", "'/job:' needs a letter, then letters, digits and underscores, such as /job:worker"),
        ("/nope:1", "'/nope:1' is none of its parts, which are as in /job:worker/replica:0/task:0/device:CPU:0"),
    ] {
        assert_eq!(printed(text), format!("Malformed device specification '{text}': {cure}"));
    }
}

#[test]
fn inner_scopes_fill_from_outer_ones() {
    for (inner, outer, merged) in [
        ("/task:2/cpu:0", "/job:ps/task:1", "/job:ps/task:2/device:CPU:0"),
        ("/gpu:1", "/job:ps", "/job:ps/device:GPU:1"),
        ("/cpu:*", "/gpu:1", "/device:CPU:1"),
        ("", "/job:ps", "/job:ps"),
    ] {
        let outer = DeviceSpec::parse(outer).unwrap();
        assert_eq!(DeviceSpec::parse(inner).unwrap().or(&outer).to_string(), merged);
    }
}

#[test]
fn partial_names_match_what_they_leave_open() {
    let full = DeviceSpec::parse("/job:worker/replica:0/task:1/device:CPU:0").unwrap();
    assert!(full.is_full());
    assert_eq!(full.task_name(), "/job:worker/replica:0/task:1");
    for (text, matches) in [("", true), ("/job:worker", true), ("/cpu:*", true), ("/job:ps", false), ("/cpu:1", false)]
    {
        let spec = DeviceSpec::parse(text).unwrap();
        assert_eq!((spec.matches(&full), full.matches(&spec)), (matches, matches), "{text}");
        assert!(!spec.is_full());
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(/?(job|task|replica|device|cpu|GPU|[a-z]{0,3})(:[a-zA-Z0-9*-]{0,3}){0,3}){0,5}") {
        if let Ok(spec) = DeviceSpec::parse(&text) {
            prop_assert_eq!(DeviceSpec::parse(&spec.to_string()).unwrap(), spec);
        }
    }
}
