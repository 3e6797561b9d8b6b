//! The memory of stages that hold many elements before they return one.

use crate::dataset::op_name;
use crate::{Cardinality, DatasetRef, Element, Spec};
use status::{Result, exhausted};

/// Asking the system how much memory is left costs a file read, so it is asked once for each 64 MiB.
const STEP: usize = 64 << 20;
/// Memory that is left to the rest of the process.
const RESERVE: usize = 256 << 20;

/// Memory available without swapping; `usize::MAX` if the system does not report it.
pub(crate) fn available() -> usize {
    let Ok(info) = std::fs::read_to_string("/proc/meminfo") else { return usize::MAX };
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.map_or(usize::MAX, |kilobytes| kilobytes << 10)
}

/// Counts the bytes that a stage holds. Fails before the memory of the machine is used up.
pub(crate) struct Held {
    /// The kind of the dataset.
    stage: &'static str,
    /// The number of elements that the user asks for.
    size: u64,
    bytes: usize,
    checked: usize,
}

impl Held {
    /// Nothing is held yet.
    pub fn new(stage: &'static str, size: u64) -> Held {
        Held { stage, size, bytes: 0, checked: 0 }
    }

    /// Adds what an element costs.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.add_with(bytes, available)
    }

    fn add_with(&mut self, bytes: usize, available: impl FnOnce() -> usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes - self.checked < STEP {
            return Ok(());
        }
        self.checked = self.bytes;
        let left = available();
        if left >= RESERVE {
            return Ok(());
        }
        let Held { stage, size, bytes, .. } = self;
        Err(exhausted!(
            "OOM in {}, which collects {size} elements: those so far take {bytes} bytes, and {left} bytes of memory are \
             left; use a smaller size",
            op_name(stage)
        ))
    }

    /// Subtracts what an element costs.
    pub fn remove(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.checked = self.checked.min(self.bytes);
    }

    /// Nothing is held any more.
    pub fn clear(&mut self) {
        (self.bytes, self.checked) = (0, 0);
    }
}

/// An error if a stage that holds `size` elements of its input, each of at least `bytes`, does not fit into memory. Inputs of
/// an unknown number of elements pass.
pub(crate) fn check_fits(stage: &'static str, size: u64, bytes: u64, input: &DatasetRef) -> Result<()> {
    check_fits_into(stage, size, bytes, || input.cardinality(), available)
}

fn check_fits_into(
    stage: &'static str,
    size: u64,
    bytes: u64,
    cardinality: impl FnOnce() -> Cardinality,
    available: impl FnOnce() -> usize,
) -> Result<()> {
    if size.saturating_mul(bytes) <= STEP as u64 {
        return Ok(());
    }
    let count = match cardinality() {
        Cardinality::Infinite => size,
        Cardinality::Finite(count) => size.min(count),
        Cardinality::Unknown => 0,
    };
    let (needed, left) = (count.saturating_mul(bytes), available() as u64);
    if needed <= left {
        return Ok(());
    }
    Err(exhausted!(
        "OOM in {}: {size} elements of at least {bytes} bytes were asked for, and {left} bytes of memory are left; use a \
         smaller size",
        op_name(stage)
    ))
}

/// The memory that an element takes at least, if its tensors may be shared with others.
pub(crate) const LEAST_BYTES: u64 = size_of::<Element>() as u64;

/// The memory that an element takes at least once it is copied into a batch, as far as its shapes are known.
pub(crate) fn least_bytes(spec: &Spec) -> u64 {
    let parts = spec.types.iter().zip(&spec.shapes);
    let bytes = parts.map(|(dtype, shape)| {
        let dims = shape.dims().unwrap_or(&[0]).iter();
        let elements = dims.fold(1u64, |product, &dim| product.saturating_mul(u64::try_from(dim).unwrap_or(0)));
        elements.saturating_mul(dtype.size() as u64)
    });
    bytes.fold(LEAST_BYTES, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::{Held, RESERVE, STEP, check_fits_into};
    use crate::Cardinality;
    use status::Code;

    #[test]
    fn a_stage_fails_before_the_memory_is_used_up() {
        let mut held = Held::new("BatchV2", 1 << 62);
        assert!((0..100).all(|_| held.add_with(STEP / 100, || 0).is_ok()), "asked too early");
        assert!(held.add_with(STEP, || RESERVE).is_ok());
        let error = held.add_with(STEP, || RESERVE - 1).unwrap_err();
        assert_eq!(error.code, Code::ResourceExhausted);
        assert!(error.message.starts_with("OOM in BatchDatasetV2, which collects 4611686018427387904 elements"));
        held.clear();
        assert!(held.add_with(STEP / 2, || 0).is_ok());
    }

    #[test]
    fn sizes_that_cannot_fit_are_refused_before_anything_is_read() {
        let fits = |size, cardinality| check_fits_into("Shuffle", size, 100, || cardinality, || 1 << 30);
        assert!(fits(1 << 20, Cardinality::Infinite).is_ok());
        assert!(fits(1 << 62, Cardinality::Unknown).is_ok());
        assert!(fits(1 << 62, Cardinality::Finite(1000)).is_ok());
        let endless = fits(1 << 62, Cardinality::Infinite).unwrap_err();
        let large = fits(1 << 62, Cardinality::Finite(1 << 40)).unwrap_err();
        assert_eq!([endless.code, large.code], [Code::ResourceExhausted; 2]);
        assert!(endless.message.contains("4611686018427387904"), "{}", endless.message);
    }
}
