//! The memory that the buffers of one pipeline take.

use crate::Element;
use crate::memory::available;
use status::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tensor::Tensor;

/// The bytes that buffers of sizes chosen by the runtime may take together, unless the user says otherwise.
pub const CHOSEN_BYTES: usize = 256 << 20;
/// The bytes that one stage may buffer, whatever number of elements the user asks for.
pub const STAGE_BYTES: usize = 1 << 30;

/// An account that all stages of a pipeline share. A stage that works ahead stops at its bound, and always goes on while it
/// has no element for its consumer: so the bound is exceeded by at most one element for each stage.
pub struct Budget {
    /// The bound for buffers whose size is left to the runtime.
    chosen: usize,
    /// The bound for buffers of sizes that the user gives; measured when it is first needed.
    given: OnceLock<usize>,
    used: AtomicUsize,
}

/// Who decides on the size of a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizing {
    /// The runtime.
    Chosen,
    /// The user.
    Given,
}

impl Budget {
    /// An account with a bound for the buffers whose size is left to the runtime.
    pub fn new(ram_budget: Option<u64>) -> Arc<Budget> {
        let chosen = ram_budget.map_or(CHOSEN_BYTES, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Arc::new(Budget { chosen, given: OnceLock::new(), used: AtomicUsize::new(0) })
    }

    /// The part of one stage, which may buffer at most `most` bytes itself.
    pub fn share(self: &Arc<Self>, sizing: Sizing, most: usize) -> Share {
        let most = if sizing == Sizing::Chosen { most.min(self.chosen) } else { most };
        Share { budget: self.clone(), sizing, most, bytes: 0, charged: 0 }
    }

    /// The bytes in all buffers, rounded up for each.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn is_used_up(&self, sizing: Sizing) -> bool {
        let used = self.used();
        match sizing {
            Sizing::Chosen => used >= self.chosen,
            Sizing::Given => used >= CHOSEN_BYTES && used >= *self.given.get_or_init(|| available() / 2),
        }
    }
}

/// What one stage has in its buffers. Its bytes return to the account when it is dropped.
pub struct Share {
    budget: Arc<Budget>,
    sizing: Sizing,
    most: usize,
    bytes: usize,
    /// What the account knows: a multiple of `CHUNK`, so that small elements do not change it each time.
    charged: usize,
}

const CHUNK: usize = 16 << 10;

impl Share {
    /// Adds what an element costs.
    pub fn add(&mut self, bytes: usize) {
        self.set(self.bytes.saturating_add(bytes));
    }

    /// Subtracts what an element costs.
    pub fn remove(&mut self, bytes: usize) {
        self.set(self.bytes.saturating_sub(bytes));
    }

    /// Sets what all elements cost.
    pub fn set(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes > self.charged || bytes.saturating_add(2 * CHUNK) <= self.charged {
            self.charge(bytes.div_ceil(CHUNK).saturating_mul(CHUNK));
        }
    }

    fn charge(&mut self, charge: usize) {
        if charge >= self.charged {
            self.budget.used.fetch_add(charge - self.charged, Ordering::Relaxed);
        } else {
            self.budget.used.fetch_sub(self.charged - charge, Ordering::Relaxed);
        }
        self.charged = charge;
    }

    /// True if the stage must not work further ahead.
    pub fn is_full(&self) -> bool {
        self.bytes > 0 && (self.bytes >= self.most || self.budget.is_used_up(self.sizing))
    }

    /// True if working ahead is worth waking the stage for: a good part of the bytes is free again.
    pub fn is_roomy(&self) -> bool {
        self.bytes <= self.most / 2 && !self.is_full()
    }

    /// True if the account of the pipeline is used up.
    pub fn is_budget_used_up(&self) -> bool {
        self.budget.is_used_up(self.sizing)
    }

    /// The bytes that the stage may buffer.
    pub fn most(&self) -> usize {
        self.most
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.charge(0);
    }
}

/// What a block of memory costs beside its bytes.
const BLOCK: usize = 64;

/// The memory that an element takes, with all that belongs to it: a scalar takes far more than its 8 bytes.
pub fn cost(element: &Element) -> usize {
    let spilled = if element.spilled() { element.capacity() * size_of::<Tensor>() } else { 0 };
    size_of::<Element>() + spilled + element.iter().map(|tensor| tensor.byte_size() + BLOCK).sum::<usize>()
}

/// The memory that an element, or the error in its place, takes.
pub fn cost_of(next: &Result<Element>) -> usize {
    match next {
        Ok(element) => cost(element),
        Err(error) => size_of::<Element>() + size_of::<Error>() + error.message.len(),
    }
}
