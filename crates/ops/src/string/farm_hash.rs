//! FarmHash's 64-bit fingerprint: the hash that TensorFlow calls fast, the same on every machine and for ever.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// The fingerprint of some bytes.
pub(crate) fn fingerprint64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => up_to_16(bytes),
        17..=32 => up_to_32(bytes),
        33..=64 => up_to_64(bytes),
        _ => long(bytes),
    }
}

/// Eight bytes at `at`.
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Four bytes at `at`.
fn half(bytes: &[u8], at: usize) -> u64 {
    let mut half = [0; 4];
    half.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(half).into()
}

fn shift_mix(value: u64) -> u64 {
    value ^ value >> 47
}

fn mix(low: u64, high: u64, factor: u64) -> u64 {
    let a = shift_mix((low ^ high).wrapping_mul(factor));
    shift_mix((high ^ a).wrapping_mul(factor)).wrapping_mul(factor)
}

fn factor_of(len: usize) -> u64 {
    K2.wrapping_add(2 * len as u64)
}

fn up_to_16(bytes: &[u8]) -> u64 {
    let (len, factor) = (bytes.len(), factor_of(bytes.len()));
    if len >= 8 {
        let (a, b) = (word(bytes, 0).wrapping_add(K2), word(bytes, len - 8));
        let c = b.rotate_right(37).wrapping_mul(factor).wrapping_add(a);
        let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(factor);
        return mix(c, d, factor);
    }
    if len >= 4 {
        return mix((len as u64).wrapping_add(half(bytes, 0) << 3), half(bytes, len - 4), factor);
    }
    if len == 0 {
        return K2;
    }
    let y = u64::from(bytes[0]) + (u64::from(bytes[len >> 1]) << 8);
    let z = len as u64 + (u64::from(bytes[len - 1]) << 2);
    shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
}

fn up_to_32(bytes: &[u8]) -> u64 {
    let (len, factor) = (bytes.len(), factor_of(bytes.len()));
    let (a, b) = (word(bytes, 0).wrapping_mul(K1), word(bytes, 8));
    let (c, d) = (word(bytes, len - 8).wrapping_mul(factor), word(bytes, len - 16).wrapping_mul(K2));
    mix(
        a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d),
        a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c),
        factor,
    )
}

fn up_to_64(bytes: &[u8]) -> u64 {
    let (len, factor) = (bytes.len(), factor_of(bytes.len()));
    let (a, b) = (word(bytes, 0).wrapping_mul(K2), word(bytes, 8));
    let (c, d) = (word(bytes, len - 8).wrapping_mul(factor), word(bytes, len - 16).wrapping_mul(K2));
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = mix(y, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), factor);
    let (e, f) = (word(bytes, 16).wrapping_mul(factor), word(bytes, 24));
    let g = y.wrapping_add(word(bytes, len - 32)).wrapping_mul(factor);
    let h = z.wrapping_add(word(bytes, len - 24)).wrapping_mul(factor);
    mix(
        e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h),
        e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g),
        factor,
    )
}

/// Two words that remember 32 bytes at `at`, started from two others.
fn remember(bytes: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let (w, x, y, z) = (word(bytes, at), word(bytes, at + 8), word(bytes, at + 16), word(bytes, at + 24));
    let first = a.wrapping_add(w);
    let b = b.wrapping_add(first).wrapping_add(z).rotate_right(21);
    let a = first.wrapping_add(x).wrapping_add(y);
    (a.wrapping_add(z), b.wrapping_add(a.rotate_right(44)).wrapping_add(first))
}

/// What is known of the bytes so far.
struct State {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

impl State {
    /// Takes 64 bytes in; the last block weighs its parts differently.
    fn block(&mut self, bytes: &[u8], at: usize, factor: u64, weight: u64) {
        let State { x, y, z, v, w } = self;
        let sum = x.wrapping_add(*y).wrapping_add(v.0).wrapping_add(word(bytes, at + 8));
        *x = sum.rotate_right(37).wrapping_mul(factor) ^ w.1.wrapping_mul(weight);
        *y = y.wrapping_add(v.1).wrapping_add(word(bytes, at + 48)).rotate_right(42).wrapping_mul(factor);
        *y = y.wrapping_add(v.0.wrapping_mul(weight)).wrapping_add(word(bytes, at + 40));
        *z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(factor);
        *v = remember(bytes, at, v.1.wrapping_mul(factor), x.wrapping_add(w.0));
        *w = remember(bytes, at + 32, z.wrapping_add(w.1), y.wrapping_add(word(bytes, at + 16)));
        std::mem::swap(z, x);
    }
}

fn long(bytes: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut state = State {
        x: SEED.wrapping_mul(K2).wrapping_add(word(bytes, 0)),
        y,
        z: shift_mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2),
        v: (0, 0),
        w: (0, 0),
    };
    let blocks = (bytes.len() - 1) / 64;
    for block in 0..blocks {
        state.block(bytes, block * 64, K1, 1);
    }
    let factor = K1.wrapping_add((state.z & 0xff) << 1);
    state.w.0 = state.w.0.wrapping_add((bytes.len() as u64 - 1) & 63);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    state.block(bytes, bytes.len() - 64, factor, 9);
    let State { x, y, z, v, w } = state;
    mix(
        mix(v.0, w.0, factor).wrapping_add(shift_mix(y).wrapping_mul(K0)).wrapping_add(z),
        mix(v.1, w.1, factor).wrapping_add(x),
        factor,
    )
}
