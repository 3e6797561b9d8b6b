//! The few vector instructions a product needs, on AVX-512, on AVX2 and as plain loops.

use super::Real;

/// A register of `LANES` numbers.
///
/// The implementations in instructions may only be called where these were detected: AVX2 and FMA, or AVX-512.
pub(crate) trait Vector: Copy {
    /// The number in a lane.
    type Lane: Real;
    /// How many lanes.
    const LANES: usize;

    /// `value` in every lane.
    ///
    /// # Safety
    /// The processor has the instructions of this type.
    unsafe fn splat(value: Self::Lane) -> Self;

    /// The `LANES` numbers at `src`.
    ///
    /// # Safety
    /// As `splat`, and `src` is readable for `LANES` numbers.
    unsafe fn load(src: *const Self::Lane) -> Self;

    /// Writes the lanes to `dst`.
    ///
    /// # Safety
    /// As `splat`, and `dst` is writable for `LANES` numbers.
    unsafe fn store(self, dst: *mut Self::Lane);

    /// `self * rhs + sum`, lane by lane.
    ///
    /// # Safety
    /// As `splat`.
    unsafe fn mul_add(self, rhs: Self, sum: Self) -> Self;

    /// `self + rhs`, lane by lane.
    ///
    /// # Safety
    /// As `splat`.
    unsafe fn add(self, rhs: Self) -> Self;

    /// `max(self, 0)`, lane by lane; NaN stays NaN.
    ///
    /// # Safety
    /// As `splat`.
    unsafe fn relu(self) -> Self;
}

/// Lanes without instructions of their own: the plain twin, and the only choice on other processors.
#[derive(Clone, Copy)]
pub(crate) struct Plain<T, const N: usize>([T; N]);

impl<T: Real, const N: usize> Vector for Plain<T, N> {
    type Lane = T;
    const LANES: usize = N;

    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Plain([value; N])
    }

    #[inline(always)]
    unsafe fn load(src: *const T) -> Self {
        // SAFETY: the caller promises N readable numbers.
        Plain(unsafe { src.cast::<[T; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut T) {
        // SAFETY: the caller promises N writable numbers.
        unsafe { dst.cast::<[T; N]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, rhs: Self, sum: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] * rhs.0[i] + sum.0[i]))
    }

    #[inline(always)]
    unsafe fn add(self, rhs: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] + rhs.0[i]))
    }

    #[inline(always)]
    unsafe fn relu(self) -> Self {
        Plain(self.0.map(|x| if x < T::ZERO { T::ZERO } else { x }))
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! lanes {
    ($name:ident, $lane:ty, $lanes:literal, $register:ident, $set1:ident, $load:ident, $store:ident, $fma:ident, $add:ident, $max:ident, $zero:ident) => {
        #[doc = concat!("Lanes of `", stringify!($lane), "` in a register.")]
        #[derive(Clone, Copy)]
        pub(crate) struct $name(std::arch::x86_64::$register);

        impl Vector for $name {
            type Lane = $lane;
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $lane) -> Self {
                // SAFETY: the caller detected the instructions.
                Self(unsafe { std::arch::x86_64::$set1(value) })
            }

            #[inline(always)]
            unsafe fn load(src: *const $lane) -> Self {
                // SAFETY: the caller detected the instructions and promises the numbers at `src`.
                Self(unsafe { std::arch::x86_64::$load(src) })
            }

            #[inline(always)]
            unsafe fn store(self, dst: *mut $lane) {
                // SAFETY: the caller detected the instructions and guarantees that `dst` is writable.
                unsafe { std::arch::x86_64::$store(dst, self.0) }
            }

            #[inline(always)]
            unsafe fn mul_add(self, rhs: Self, sum: Self) -> Self {
                // SAFETY: the caller detected the instructions.
                Self(unsafe { std::arch::x86_64::$fma(self.0, rhs.0, sum.0) })
            }

            #[inline(always)]
            unsafe fn add(self, rhs: Self) -> Self {
                // SAFETY: the caller detected the instructions.
                Self(unsafe { std::arch::x86_64::$add(self.0, rhs.0) })
            }

            #[inline(always)]
            unsafe fn relu(self) -> Self {
                // SAFETY: the caller detected the instructions. The second operand comes back where one is NaN.
                Self(unsafe { std::arch::x86_64::$max(std::arch::x86_64::$zero(), self.0) })
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
lanes!(
    F32x8,
    f32,
    8,
    __m256,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps,
    _mm256_max_ps,
    _mm256_setzero_ps
);
#[cfg(target_arch = "x86_64")]
lanes!(
    F64x4,
    f64,
    4,
    __m256d,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd,
    _mm256_add_pd,
    _mm256_max_pd,
    _mm256_setzero_pd
);
#[cfg(target_arch = "x86_64")]
lanes!(
    F32x16,
    f32,
    16,
    __m512,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_add_ps,
    _mm512_max_ps,
    _mm512_setzero_ps
);
#[cfg(target_arch = "x86_64")]
lanes!(
    F64x8,
    f64,
    8,
    __m512d,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd,
    _mm512_add_pd,
    _mm512_max_pd,
    _mm512_setzero_pd
);

/// Transposes a square of 8 by 8.
///
/// # Safety
/// AVX2 was detected; both squares are valid, 8 rows at their strides.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn transpose_f32(src: *const f32, src_stride: usize, dst: *mut f32, dst_stride: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller promises 8 rows of 8 numbers on both sides.
    unsafe {
        let row: [__m256; 8] = std::array::from_fn(|r| _mm256_loadu_ps(src.add(r * src_stride)));
        let pairs: [__m256; 8] = std::array::from_fn(|i| {
            let (low, high) = (row[i / 2 * 2], row[i / 2 * 2 + 1]);
            if i % 2 == 0 { _mm256_unpacklo_ps(low, high) } else { _mm256_unpackhi_ps(low, high) }
        });
        let quads: [__m256; 8] = std::array::from_fn(|i| {
            let (low, high) = (pairs[i / 4 * 4 + i % 4 / 2], pairs[i / 4 * 4 + i % 4 / 2 + 2]);
            if i % 2 == 0 { _mm256_shuffle_ps::<0x44>(low, high) } else { _mm256_shuffle_ps::<0xEE>(low, high) }
        });
        for i in 0..4 {
            _mm256_storeu_ps(dst.add(i * dst_stride), _mm256_permute2f128_ps::<0x20>(quads[i], quads[i + 4]));
            _mm256_storeu_ps(dst.add((i + 4) * dst_stride), _mm256_permute2f128_ps::<0x31>(quads[i], quads[i + 4]));
        }
    }
}

/// Transposes a square of 4 by 4.
///
/// # Safety
/// AVX2 was detected; both squares are valid, 4 rows at their strides.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn transpose_f64(src: *const f64, src_stride: usize, dst: *mut f64, dst_stride: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller promises 4 rows of 4 numbers on both sides.
    unsafe {
        let row: [__m256d; 4] = std::array::from_fn(|r| _mm256_loadu_pd(src.add(r * src_stride)));
        let pairs = [
            _mm256_unpacklo_pd(row[0], row[1]),
            _mm256_unpackhi_pd(row[0], row[1]),
            _mm256_unpacklo_pd(row[2], row[3]),
            _mm256_unpackhi_pd(row[2], row[3]),
        ];
        for i in 0..2 {
            _mm256_storeu_pd(dst.add(i * dst_stride), _mm256_permute2f128_pd::<0x20>(pairs[i], pairs[i + 2]));
            _mm256_storeu_pd(dst.add((i + 2) * dst_stride), _mm256_permute2f128_pd::<0x31>(pairs[i], pairs[i + 2]));
        }
    }
}
