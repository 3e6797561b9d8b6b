//! What this processor can do, and how a loop gets compiled for it.

use std::sync::OnceLock;

/// Whether AVX2, FMA and F16C are present; asked of the processor once.
#[inline]
pub fn has_avx2_fma() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    *PRESENT.get_or_init(detect)
}

#[cfg(target_arch = "x86_64")]
fn detect() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> bool {
    false
}

/// A loop that is compiled twice: for any processor, and for one with AVX2 and FMA.
///
/// Mark `run`, and everything hot it calls, `#[inline(always)]`: only what is inlined is compiled twice.
/// A closure is a loop too, as long as it is short enough for the compiler to inline it by itself.
pub trait Loop {
    /// What the loop leaves behind.
    type Output;

    /// Runs the loop.
    fn run(self) -> Self::Output;
}

impl<R, F: FnOnce() -> R> Loop for F {
    type Output = R;

    #[inline(always)]
    fn run(self) -> R {
        self()
    }
}

/// Runs `body` with the widest instructions this processor has.
#[inline]
pub fn vectorize<L: Loop>(body: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if has_avx2_fma() {
        // SAFETY: the features `wide` is compiled for are present, checked above.
        return unsafe { wide(body) };
    }
    body.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn wide<L: Loop>(body: L) -> L::Output {
    body.run()
}
