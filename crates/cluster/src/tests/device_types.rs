//! Devices of registered types on a network without sockets: which kernels run, and where nodes are placed.

use super::{Client, net::Net, open};
use crate::SessionConfig;
use op::{DeviceType, DeviceTypes, Extensions, binary};
use status::Result;
use tensor::Tensor;

/// A type whose kernel of Sum returns `10 a + b`, preferred to the CPU, but not on ps.
fn client(text: &str) -> Result<Client> {
    let sum =
        |_: &op::Ctx<'_>, a: Tensor, b: Tensor| Ok(Tensor::scalar(10 * a.to_scalar::<i32>()? + b.to_scalar::<i32>()?));
    let fake = DeviceType::new("FAKE").priority(210).kernel("Sum", move |_| Ok(binary(sum)));
    let types = DeviceTypes::new([fake])?.prefer("ps", "CPU");
    open(&Net::with_extensions("worker:0 ps:0", Extensions::new().with(types)), text, SessionConfig::default())
}

#[test]
fn nodes_run_with_the_kernel_of_their_device() {
    let text = "a @ps:0 = Number 2; b @worker:0 = Number 3; near @worker:0 = Sum a b; \
                cpu @worker:0/device:CPU:0 = Sum a b; ps @ps:0 = Sum near a; far @ps:0/device:FAKE:0 = Sum near a";
    let client = client(text).unwrap();
    // 10 * 2 + 3 and 2 + 3; then 23 + 2 and 10 * 23 + 2
    let expected = [("near", 23), ("cpu", 5), ("ps", 25), ("far", 232)];
    for (name, value) in expected {
        assert_eq!(client.fetch(name), Ok(value), "{name}");
    }
}

#[test]
fn every_task_lists_its_devices() {
    let client = client("a @worker:0 = Number 2").unwrap();
    let devices = client.net.run(client.master.list_devices(&client.session)).unwrap();
    let found: Vec<(&str, &str)> = devices.iter().map(|device| (&*device.name, &*device.kind)).collect();
    let expected = [
        ("/job:worker/replica:0/task:0/device:CPU:0", "CPU"),
        ("/job:worker/replica:0/task:0/device:FAKE:0", "FAKE"),
        ("/job:ps/replica:0/task:0/device:CPU:0", "CPU"),
        ("/job:ps/replica:0/task:0/device:FAKE:0", "FAKE"),
    ];
    assert_eq!(found, expected);
    let labels: Vec<String> = client.master.worker().device_labels().collect();
    assert_eq!(labels, ["cpu-0", "fake-0"]);
}

#[test]
fn an_op_without_a_kernel_on_the_device_is_refused() {
    let error = client("a @worker:0/device:FAKE:0 = Number 2").err().unwrap();
    let expected = "Could not satisfy explicit device specification '/job:worker/task:0/device:FAKE:0' because no \
                    supported kernel for FAKE devices is available.";
    assert!(error.message.contains(expected), "{error}");
}
