//! Signals: Fourier transforms, and features of sounds.

mod transform;

pub mod fft;
pub mod fft_nd;
pub mod mfcc;
pub mod real_fft;
pub mod spectrogram;
pub mod wav;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[fft::OPS, fft_nd::OPS, mfcc::OPS, real_fft::OPS, spectrogram::OPS, wav::OPS];
