//! The hash that TensorFlow puts into rendezvous keys and resource handles.

const M: u64 = 0xc6a4_a793_5bd1_e995;
const SEED: u64 = 0x00DE_CAFC_AFFE;

/// MurmurHash64A with TensorFlow's seed.
pub fn hash64(data: &[u8]) -> u64 {
    let mix = |k: u64| {
        let k = k.wrapping_mul(M);
        (k ^ (k >> 47)).wrapping_mul(M)
    };
    let mut h = SEED ^ (data.len() as u64).wrapping_mul(M);
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        let k = word.iter().rev().fold(0u64, |k, &byte| k << 8 | u64::from(byte));
        h = (h ^ mix(k)).wrapping_mul(M);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        let k = tail.iter().rev().fold(0u64, |k, &byte| k << 8 | u64::from(byte));
        h = (h ^ k).wrapping_mul(M);
    }
    h = (h ^ (h >> 47)).wrapping_mul(M);
    h ^ (h >> 47)
}
