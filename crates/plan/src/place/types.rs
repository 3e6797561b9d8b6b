//! Sets of registered device types, as bits of a number.

use super::Device;
use op::DeviceType;
use std::sync::Arc;

/// Every device type.
pub(super) const ALL: u64 = u64::MAX;

/// The registered types of a session's devices; usually none.
pub(super) struct Types(Vec<Arc<DeviceType>>);

impl Types {
    pub fn new(devices: &[Device]) -> Types {
        let mut types: Vec<Arc<DeviceType>> = devices.iter().filter_map(|device| device.device_type.clone()).collect();
        types.sort_by(|a, b| a.name().cmp(b.name()));
        types.dedup_by(|a, b| a.name() == b.name());
        Types(types)
    }

    /// The types that support an op: a bit is unset if the registered type of that place does not.
    pub fn supporting(&self, op: &str) -> u64 {
        let without = self.0.iter().enumerate().filter(|(_, own)| !own.supports(op));
        without.fold(ALL, |types, (place, _)| types & !(1 << place))
    }

    /// True if the type of a device is in the set.
    pub fn allows(&self, types: u64, device: &Device) -> bool {
        let Some(wanted) = &device.device_type else { return true };
        self.0.iter().position(|own| own.name() == wanted.name()).is_none_or(|place| types & (1 << place) != 0)
    }
}
