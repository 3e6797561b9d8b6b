//! Resources by container, type and name.

use crate::{ANONYMOUS, COUNTERS, OnceCallback, ReferenceVariable, Resources, Variable};
use status::{Code, invalid};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensor::DType;

#[test]
fn a_resource_is_found_by_container_type_and_name() {
    let device = Resources::new("localhost");
    device.create("", "a", Arc::new(1i32)).unwrap();
    assert_eq!(device.get::<i32>("localhost", "a").as_deref(), Some(&1));
    assert!(device.get::<i64>("", "a").is_none());
    assert!(device.get::<i32>("other", "a").is_none());
    device.create("", "a", Arc::new(2i64)).unwrap(); // another type may have the same name
    assert_eq!(device.get::<i32>("", "a").as_deref(), Some(&1));
}

#[test]
fn a_second_resource_of_a_name_is_an_error() {
    let device = Resources::new("localhost");
    device.create("", "a", Arc::new(1i32)).unwrap();
    let error = device.create("", "a", Arc::new(2i32)).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::AlreadyExists, "Resource localhost/a already exists."));
    assert_eq!(*device.get_or_create("", "a", || Ok(3i32)).unwrap(), 1);
}

#[test]
fn a_resource_that_cannot_be_created_is_not_there() {
    let device = Resources::new("localhost");
    assert!(device.get_or_create::<i32>("", "a", || Err(invalid!("no"))).is_err());
    assert!(device.get::<i32>("", "a").is_none());
}

#[test]
fn a_missing_resource_is_named_as_tensorflow_names_it() {
    let device = Resources::new("localhost");
    let message = || device.find::<i32>("", "a", "Int").unwrap_err().message;
    assert_eq!(message(), "Container localhost does not exist. (Could not find resource: localhost/a)");
    device.create("", "b", Arc::new(1i32)).unwrap();
    assert_eq!(message(), "Resource localhost/a/Int does not exist.");
}

#[test]
fn resources_are_removed_by_type_by_name_and_by_container() {
    let device = Resources::new("localhost");
    let fill = || {
        let _ = (device.create("", "a", Arc::new(1i32)), device.create("", "a", Arc::new(2i64)));
        let _ = device.create("other", "a", Arc::new(3i32));
    };
    let found = || (device.get::<i32>("", "a").is_some(), device.get::<i64>("", "a").is_some());
    fill();
    assert!(device.remove::<i32>("", "a") && !device.remove::<i32>("", "a"));
    assert_eq!(found(), (false, true));
    fill();
    assert!(device.remove_any("", "a") && !device.remove_any("", "a"));
    assert_eq!(found(), (false, false));
    fill();
    device.clear("");
    assert_eq!(found(), (false, false));
    assert!(!device.has_container("") && device.has_container("other"));
}

#[test]
fn resources_of_a_type_are_listed_in_order() {
    let device = Resources::new("b");
    for (container, name) in [("", "y"), ("", "x"), ("a", "z")] {
        device.create(container, name, Arc::new(name.len())).unwrap();
    }
    let names: Vec<String> = device.all::<usize>().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["z", "x", "y"]);
}

#[test]
fn waiting_ops_are_called_when_their_resource_is_created() {
    let (device, calls) = (Resources::new("localhost"), Arc::new(AtomicUsize::new(0)));
    let callback = || {
        let calls = calls.clone();
        OnceCallback::new(move || {
            calls.fetch_add(1, Ordering::Relaxed);
        })
    };
    device.when_created::<i32>("", "a", callback());
    device.when_created::<i32>("", "b", callback());
    let withdrawn = callback();
    device.when_created::<i32>("", "a", withdrawn.clone());
    withdrawn.withdraw();
    device.create("", "a", Arc::new(1i64)).unwrap(); // of another type
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    device.get_or_create("", "a", || Ok(1i32)).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    device.when_created::<i32>("", "a", callback()); // it exists already
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn only_named_containers_can_be_found_after_a_restart() {
    let found = ["localhost", "", COUNTERS, ANONYMOUS].map(Resources::is_found_by_name);
    assert_eq!(found, [true, true, false, false]);
}

#[test]
fn reference_and_resource_variables_may_share_a_name() {
    let device = Resources::new("localhost");
    let create = || Arc::new(Variable::new("a", DType::F32));
    device.create("", "a", create()).unwrap();
    device.create("", "a", Arc::new(ReferenceVariable(create()))).unwrap();
    let [first, second] = [(); 2].map(|()| device.unique_name("node"));
    assert_eq!([first.as_str(), second.as_str()], ["_0_node", "_1_node"]);
}
