//! Strings to numbers of buckets: StringToHashBucket, its fast and its strong sibling.

use super::farm_hash::fingerprint64;
use graph::{Output, hash64};
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, Setup, unary};
use status::{Result, invalid};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StringToHashBucket(string_tensor: string) -> output: int64; num_buckets: int >= 1",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| bucket_kernel(setup, hash64),
    },
    Op {
        def: "StringToHashBucketFast(input: string) -> output: int64; num_buckets: int >= 1",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| bucket_kernel(setup, fingerprint64),
    },
    Op {
        def: "StringToHashBucketStrong(input: string) -> output: int64; num_buckets: int >= 1; key: list(int)",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: strong_kernel,
    },
];

/// The bucket of each string, of so many.
pub fn string_to_hash_bucket_fast(input: &Output, buckets: i64) -> Output {
    input.scope().op("StringToHashBucketFast").input(input).attr("num_buckets", buckets).output()
}

fn bucket_kernel(setup: &Setup<'_>, hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static) -> Result<Kernel> {
    let buckets = setup.int("num_buckets")?;
    let count = u64::try_from(buckets).ok().filter(|&count| count > 0);
    let count = count.ok_or_else(|| invalid!("num_buckets must be at least 1, got {buckets}"))?;
    Ok(unary(move |_, input| {
        let buckets: Vec<i64> = input.strings()?.iter().map(|string| (hash(string) % count) as i64).collect();
        Tensor::from_slice(input.shape(), &buckets)
    }))
}

fn strong_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.ints("key")?.as_slice() {
        &[low, high] => bucket_kernel(setup, move |bytes| sip_hash([low as u64, high as u64], bytes)),
        _ => Err(invalid!("Key must have 2 elements")),
    }
}

/// SipHash-2-4: whoever does not know the key cannot make strings collide.
fn sip_hash(key: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = bytes.len() as u8;
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        state[3] ^= word;
        rounds(&mut state, 2);
        state[0] ^= word;
    }
    state[2] ^= 0xff;
    rounds(&mut state, 4);
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn rounds(state: &mut [u64; 4], count: usize) {
    for _ in 0..count {
        let [mut a, mut b, mut c, mut d] = *state;
        a = a.wrapping_add(b);
        b = b.rotate_left(13) ^ a;
        a = a.rotate_left(32);
        c = c.wrapping_add(d);
        d = d.rotate_left(16) ^ c;
        a = a.wrapping_add(d);
        d = d.rotate_left(21) ^ a;
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        c = c.rotate_left(32);
        *state = [a, b, c, d];
    }
}
