//! MD5 (RFC 1321), for choosing tasks by name as TensorFlow's clients do; not for secrets.

const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of some bytes.
pub(crate) fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - bytes.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    padded.chunks_exact(64).for_each(|block| mix(&mut state, block));
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

fn mix(state: &mut [u32; 4], block: &[u8]) {
    let word = |i: usize| u32::from_le_bytes([block[4 * i], block[4 * i + 1], block[4 * i + 2], block[4 * i + 3]]);
    let [mut a, mut b, mut c, mut d] = *state;
    for i in 0..64 {
        let (f, place) = match i / 16 {
            0 => ((b & c) | (!b & d), i),
            1 => ((d & b) | (!d & c), (5 * i + 1) % 16),
            2 => (b ^ c ^ d, (3 * i + 5) % 16),
            _ => (c ^ (b | !d), 7 * i % 16),
        };
        let sine = (((i + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a.wrapping_add(f).wrapping_add(sine).wrapping_add(word(place));
        (a, d, c) = (d, c, b);
        b = b.wrapping_add(sum.rotate_left(SHIFTS[i / 16][i % 4]));
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d]) {
        *old = old.wrapping_add(new);
    }
}
