//! StringToHashBucket and its fast and strong variants: map strings to bucket numbers.

use crate::hashing::{fingerprint64, sip_hash};
use graph::{Output, hash64};
use op::shapes::{integers, unchanged};
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use tensor::{DType, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "StringToHashBucket(string_tensor: string) -> output: int64; num_buckets: int >= 1",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| bucket_kernel(setup, hash64),
        facts: PLAIN,
    },
    Op {
        def: "StringToHashBucketFast(input: string) -> output: int64; num_buckets: int >= 1",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: |setup| bucket_kernel(setup, fingerprint64),
        facts: PLAIN,
    },
    Op {
        def: "StringToHashBucketStrong(input: string) -> output: int64; num_buckets: int >= 1; key: list(int)",
        shape: unchanged,
        grad: Grad::Stop,
        kernel: strong_kernel,
        facts: PLAIN,
    },
    Op {
        def: "_TensorToHashBucketFast(input: T) -> output: int64; \
              T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}; num_buckets: int >= 1",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: tensor_kernel,
        facts: PLAIN,
    },
];

/// The bucket number of each string, below `num_buckets`.
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

/// The bucket of each number, by its decimal text; of signed numbers only, as in TensorFlow.
fn tensor_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (dtype, buckets) = (setup.dtype("T")?, setup.int("num_buckets")?);
    let count = u64::try_from(buckets).ok().filter(|&count| count > 0);
    let count = count.ok_or_else(|| invalid!("num_buckets must be at least 1, got {buckets}"))?;
    Ok(unary(move |_, input| {
        if ![DType::I8, DType::I16, DType::I32, DType::I64].contains(&dtype) {
            return Err(invalid!("Type not supported: {dtype}"));
        }
        let bucket = |number: i64| (fingerprint64(number.to_string().as_bytes()) % count) as i64;
        let buckets: Vec<i64> = integers(&input)?.into_iter().map(bucket).collect();
        Tensor::from_slice(input.shape(), &buckets)
    }))
}

fn strong_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    match setup.ints("key")?.as_slice() {
        &[low, high] => bucket_kernel(setup, move |bytes| sip_hash([low as u64, high as u64], bytes)),
        _ => Err(invalid!("Key must have 2 elements")),
    }
}
