//! Hash functions whose values are visible to users: FarmHash and SipHash, equal to TensorFlow's on every machine.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// FarmHash's 64-bit fingerprint (farmhashna), which TensorFlow calls the fast hash. Its values are stable for ever.
pub(crate) fn fingerprint64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0..=16 => up_to_16(bytes),
        17..=32 => up_to_32(bytes),
        33..=64 => up_to_64(bytes),
        _ => longer(bytes),
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn half_word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word).into()
}

fn shift_mix(value: u64) -> u64 {
    value ^ (value >> 47)
}

fn mix(u: u64, v: u64, factor: u64) -> u64 {
    let a = shift_mix((u ^ v).wrapping_mul(factor));
    shift_mix((v ^ a).wrapping_mul(factor)).wrapping_mul(factor)
}

fn factor_of(bytes: &[u8]) -> u64 {
    K2.wrapping_add(bytes.len() as u64 * 2)
}

fn up_to_16(bytes: &[u8]) -> u64 {
    let (len, factor) = (bytes.len(), factor_of(bytes));
    match len {
        8.. => {
            let (a, b) = (word(bytes, 0).wrapping_add(K2), word(bytes, len - 8));
            let c = b.rotate_right(37).wrapping_mul(factor).wrapping_add(a);
            let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(factor);
            mix(c, d, factor)
        }
        4.. => mix((len as u64).wrapping_add(half_word(bytes, 0) << 3), half_word(bytes, len - 4), factor),
        1.. => {
            let [a, b, c] = [bytes[0], bytes[len / 2], bytes[len - 1]].map(u64::from);
            let (y, z) = (a + (b << 8), len as u64 + (c << 2));
            shift_mix(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
        }
        0 => K2,
    }
}

fn up_to_32(bytes: &[u8]) -> u64 {
    let (len, factor) = (bytes.len(), factor_of(bytes));
    let (a, b) = (word(bytes, 0).wrapping_mul(K1), word(bytes, 8));
    let (c, d) = (word(bytes, len - 8).wrapping_mul(factor), word(bytes, len - 16).wrapping_mul(K2));
    let first = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    mix(first, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), factor)
}

fn up_to_64(bytes: &[u8]) -> u64 {
    let (len, factor) = (bytes.len(), factor_of(bytes));
    let (a, b) = (word(bytes, 0).wrapping_mul(K2), word(bytes, 8));
    let (c, d) = (word(bytes, len - 8).wrapping_mul(factor), word(bytes, len - 16).wrapping_mul(K2));
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = mix(y, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), factor);
    let (e, f) = (word(bytes, 16).wrapping_mul(factor), word(bytes, 24));
    let g = y.wrapping_add(word(bytes, len - 32)).wrapping_mul(factor);
    let h = z.wrapping_add(word(bytes, len - 24)).wrapping_mul(factor);
    let first = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    mix(first, e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g), factor)
}

/// The state between two blocks of 64 bytes.
struct State {
    x: u64,
    y: u64,
    z: u64,
    v: (u64, u64),
    w: (u64, u64),
}

impl State {
    /// Hashes a block; for the last one, two parts of the state are multiplied by nine.
    fn block(&mut self, bytes: &[u8], factor: u64, weight: u64) {
        let State { x, y, z, v, w } = self;
        *x = x.wrapping_add(*y).wrapping_add(v.0).wrapping_add(word(bytes, 8)).rotate_right(37).wrapping_mul(factor);
        *y = y.wrapping_add(v.1).wrapping_add(word(bytes, 48)).rotate_right(42).wrapping_mul(factor);
        *x ^= w.1.wrapping_mul(weight);
        *y = y.wrapping_add(v.0.wrapping_mul(weight)).wrapping_add(word(bytes, 40));
        *z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(factor);
        *v = weak(bytes, v.1.wrapping_mul(factor), x.wrapping_add(w.0));
        *w = weak(&bytes[32..], z.wrapping_add(w.1), y.wrapping_add(word(bytes, 16)));
        std::mem::swap(z, x);
    }
}

fn weak(bytes: &[u8], a: u64, b: u64) -> (u64, u64) {
    let [w, x, y, z] = [0, 8, 16, 24].map(|at| word(bytes, at));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let sum = a.wrapping_add(x).wrapping_add(y);
    (sum.wrapping_add(z), b.wrapping_add(sum.rotate_right(44)).wrapping_add(a))
}

fn longer(bytes: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let z = shift_mix(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let x = SEED.wrapping_mul(K2).wrapping_add(word(bytes, 0));
    let mut state = State { x, y, z, v: (0, 0), w: (0, 0) };
    for block in bytes[..bytes.len() - 1].chunks_exact(64) {
        state.block(block, K1, 1);
    }
    let factor = K1.wrapping_add((state.z & 0xff) << 1);
    state.w.0 = state.w.0.wrapping_add((bytes.len() as u64 - 1) & 63);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    state.block(&bytes[bytes.len() - 64..], factor, 9);
    let State { x, y, z, v, w } = state;
    let first = mix(v.0, w.0, factor).wrapping_add(shift_mix(y).wrapping_mul(K0)).wrapping_add(z);
    mix(first, mix(v.1, w.1, factor).wrapping_add(x), factor)
}

/// Combines two fingerprints; the order matters.
pub(crate) fn fingerprint_cat64(first: u64, second: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mixed = first ^ M ^ shift_mix(second.wrapping_mul(M)).wrapping_mul(M);
    shift_mix(shift_mix(mixed.wrapping_mul(M)).wrapping_mul(M))
}

/// CityHash's 128-bit fingerprint, the lower half first.
pub(crate) fn fingerprint128(bytes: &[u8]) -> [u64; 2] {
    match bytes.len() {
        0..16 => city_murmur(bytes, [K0, K1]),
        16..144 => city_murmur(&bytes[16..], [word(bytes, 0), word(bytes, 8).wrapping_add(K0)]),
        _ => city_long(&bytes[16..], [word(bytes, 0), word(bytes, 8).wrapping_add(K0)]),
    }
}

fn combined(first: u64, second: u64) -> u64 {
    mix(first, second, 0x9ddf_ea08_eb38_2d69)
}

/// For fewer than 128 bytes.
fn city_murmur(bytes: &[u8], [mut a, mut b]: [u64; 2]) -> [u64; 2] {
    let len = bytes.len();
    let scrambled = |word: u64| shift_mix(word.wrapping_mul(K1)).wrapping_mul(K1);
    let (mut c, mut d);
    if len <= 16 {
        a = scrambled(a);
        c = b.wrapping_mul(K1).wrapping_add(up_to_16(bytes));
        d = shift_mix(a.wrapping_add(if len >= 8 { word(bytes, 0) } else { c }));
    } else {
        c = combined(word(bytes, len - 8).wrapping_add(K1), a);
        d = combined(b.wrapping_add(len as u64), c.wrapping_add(word(bytes, len - 16)));
        a = a.wrapping_add(d);
        for pair in bytes[..len - 1].chunks_exact(16) {
            a = (a ^ scrambled(word(pair, 0))).wrapping_mul(K1);
            b ^= a;
            c = (c ^ scrambled(word(pair, 8))).wrapping_mul(K1);
            d ^= c;
        }
    }
    a = combined(a, c);
    b = combined(d, b);
    [a ^ b, combined(b, a)]
}

/// For 128 bytes and more.
fn city_long(bytes: &[u8], [x, y]: [u64; 2]) -> [u64; 2] {
    let z = (bytes.len() as u64).wrapping_mul(K1);
    let v0 = (y ^ K1).rotate_right(49).wrapping_mul(K1).wrapping_add(word(bytes, 0));
    let v1 = v0.rotate_right(42).wrapping_mul(K1).wrapping_add(word(bytes, 8));
    let w0 = y.wrapping_add(z).rotate_right(35).wrapping_mul(K1).wrapping_add(x);
    let w1 = x.wrapping_add(word(bytes, 88)).rotate_right(53).wrapping_mul(K1);
    let mut state = State { x, y, z, v: (v0, v1), w: (w0, w1) };
    let blocks = bytes.len() / 128 * 128;
    for block in bytes[..blocks].chunks_exact(64) {
        state.block(block, K1, 1);
    }
    city_tail(state, bytes, bytes.len() - blocks)
}

/// The last `rest` bytes, from the end on in pieces of 32; the first piece may begin before them.
fn city_tail(state: State, bytes: &[u8], rest: usize) -> [u64; 2] {
    let State { mut x, mut y, mut z, mut v, mut w } = state;
    x = x.wrapping_add(v.0.wrapping_add(z).rotate_right(49).wrapping_mul(K0));
    y = y.wrapping_mul(K0).wrapping_add(w.1.rotate_right(37));
    z = z.wrapping_mul(K0).wrapping_add(w.0.rotate_right(27));
    w.0 = w.0.wrapping_mul(9);
    v.0 = v.0.wrapping_mul(K0);
    for piece in 1..=rest.div_ceil(32) {
        let piece = &bytes[bytes.len() - piece * 32..];
        y = x.wrapping_add(y).rotate_right(42).wrapping_mul(K0).wrapping_add(v.1);
        w.0 = w.0.wrapping_add(word(piece, 16));
        x = x.wrapping_mul(K0).wrapping_add(w.0);
        z = z.wrapping_add(w.1).wrapping_add(word(piece, 0));
        w.1 = w.1.wrapping_add(v.0);
        v = weak(piece, v.0.wrapping_add(z), v.1);
        v.0 = v.0.wrapping_mul(K0);
    }
    x = combined(x, v.0);
    y = combined(y.wrapping_add(z), w.0);
    let low = combined(x.wrapping_add(v.1), w.1).wrapping_add(y);
    [low, combined(x.wrapping_add(w.1), y.wrapping_add(v.1))]
}

/// SipHash-2-4: without the key, strings that collide cannot be constructed.
pub(crate) fn sip_hash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut v = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let absorb = |v: &mut [u64; 4], message: u64| {
        v[3] ^= message;
        sip_round(v);
        sip_round(v);
        v[0] ^= message;
    };
    let mut words = bytes.chunks_exact(8);
    for chunk in &mut words {
        absorb(&mut v, word(chunk, 0));
    }
    // The last word holds the remaining bytes, and the length modulo 256 in its topmost byte.
    let rest = words.remainder().iter().rev().fold(0, |rest, &byte| rest << 8 | u64::from(byte));
    absorb(&mut v, (bytes.len() as u64) << 56 | rest);
    v[2] ^= 0xff;
    (0..4).for_each(|_| sip_round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[2] = v[2].rotate_left(32);
}
