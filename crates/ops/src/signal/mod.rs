//! Signals: Fourier transforms, and features of sounds.

mod transform;

pub(crate) mod fft;
pub(crate) mod fft_nd;
pub(crate) mod mfcc;
pub(crate) mod real_fft;
pub(crate) mod spectrogram;
pub(crate) mod wav;

pub use self::fft::{fft, fft2d, fft3d, ifft, ifft2d, ifft3d};
pub use self::fft_nd::{fftnd, ifftnd};
pub use self::mfcc::mfcc;
pub use self::real_fft::{irfft, irfft2d, irfft3d, rfft, rfft2d, rfft3d};
pub use self::spectrogram::audio_spectrogram;
pub use self::wav::decode_wav;

use op::Op;

/// The tables of this family.
pub(crate) const TABLES: &[&[Op]] = &[fft::OPS, fft_nd::OPS, mfcc::OPS, real_fft::OPS, spectrogram::OPS, wav::OPS];
