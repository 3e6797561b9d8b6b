//! DeviceIndex: the kind of device that a node runs on, by which a Case can choose a branch.

use graph::{AttrList, AttrValue, DeviceSpec, Output, Scope};
use op::shapes::scalar;
use op::{Grad, Kernel, Op, PLAIN, Setup, source};
use status::Result;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "DeviceIndex() -> index: int32; device_names: list(string); stateful",
    shape: scalar,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// The place of the device's kind, as `CPU`, among `kinds`; their number if it is none of them.
pub fn device_index(scope: &Scope, kinds: &[&str]) -> Output {
    let strings = kinds.iter().map(|kind| kind.as_bytes().to_vec().into()).collect();
    let kinds = AttrValue::from(AttrList { strings, ..AttrList::default() });
    scope.op("DeviceIndex").attr("device_names", kinds).output()
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let kind = DeviceSpec::parse(setup.device())?.kind.unwrap_or_default();
    let kinds = &setup.list("device_names")?.strings;
    let index = kinds.iter().position(|name| name[..] == *kind.as_bytes()).unwrap_or(kinds.len());
    Ok(source(move |_| Ok(Tensor::scalar(index as i32))))
}
