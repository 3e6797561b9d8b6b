//! Buffers that a thread keeps between products, so that packing does not fault in fresh pages each time.

use std::any::Any;
use std::cell::RefCell;

/// Buffers above this size go back to the system after use.
const KEPT_BYTES: usize = 8 << 20;

thread_local! {
    static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `body` with at least `len` numbers of unspecified value, aligned to a cache line where it matters.
pub(crate) fn with<T: Copy + Default + 'static, R>(len: usize, body: impl FnOnce(&mut [T]) -> R) -> R {
    let mut buffer = take::<T>(len);
    if buffer.len() < len + LINE {
        buffer.resize(len + LINE, T::default());
    }
    let start = buffer.as_ptr().align_offset(64).min(LINE);
    let result = body(&mut buffer[start..start + len]);
    give_back(buffer);
    result
}

/// Slack for moving the first number to the start of a cache line.
const LINE: usize = 64;

/// The kept buffer that wastes least; never one that another caller on this thread is using.
fn take<T: 'static>(len: usize) -> Vec<T> {
    KEPT.with_borrow_mut(|kept| {
        let of_type = |any: &Box<dyn Any>| any.downcast_ref::<Vec<T>>().map(Vec::len);
        let best = (0..kept.len())
            .filter_map(|i| of_type(&kept[i]).map(|have| (have < len, have.abs_diff(len), i)))
            .min()
            .map(|(_, _, i)| i);
        best.and_then(|i| kept.swap_remove(i).downcast().ok()).map_or_else(Vec::new, |found: Box<Vec<T>>| *found)
    })
}

fn give_back<T: 'static>(buffer: Vec<T>) {
    if std::mem::size_of_val(buffer.as_slice()) <= KEPT_BYTES {
        KEPT.with_borrow_mut(|kept| {
            if kept.len() < 8 {
                kept.push(Box::new(buffer));
            }
        });
    }
}
