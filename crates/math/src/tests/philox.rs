//! Random numbers against what TensorFlow drew (`data/philox.py`).

use half::{bf16, f16};

use crate::Pool;
use crate::philox::*;

trait Bits: Copy + Default {
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($t:ty, $convert:expr;)*) => {$(
        impl Bits for $t {
            fn bits(self) -> u64 {
                $convert(self)
            }
        }
    )*};
}

bits!(
    f32, |x: f32| u64::from(x.to_bits());
    f64, f64::to_bits;
    f16, |x: f16| u64::from(x.to_bits());
    bf16, |x: bf16| u64::from(x.to_bits());
    i32, |x: i32| u64::from(x as u32);
    i64, |x: i64| x as u64;
    u32, u64::from;
    u64, |x: u64| x;
);

fn drawn<T: Bits>(len: usize, draw: impl Fn(&mut [T])) -> Vec<u64> {
    let mut values = vec![T::default(); len];
    draw(&mut values);
    values.into_iter().map(T::bits).collect()
}

fn floats<T: Bits + Draw>(pool: &Pool, kind: &str, stream: &Philox, len: usize) -> Vec<u64> {
    drawn::<T>(len, |dst| match kind {
        "uniform" => uniform(pool, stream, dst),
        "normal" => normal(pool, stream, dst),
        _ => truncated_normal(pool, stream, dst),
    })
}

fn integers<T: Bits + DrawInteger + From<i16>>(pool: &Pool, stream: &Philox, len: usize) -> Vec<u64> {
    drawn::<T>(len, |dst| uniform_integers(pool, stream, T::from(-7), T::from(1000), dst))
}

fn shuffled(stream: &Philox, len: usize) -> Vec<u64> {
    let mut values: Vec<u64> = (0..len as u64).collect();
    shuffle(stream, len, |i, j| values.swap(i, j));
    values
}

#[test]
fn streams_as_tensorflow() {
    let pool = Pool::new(1);
    for line in include_str!("data/philox.txt").lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let seeds = [1, 2].map(|i: usize| fields[i + 1].parse::<i64>().unwrap() as u64);
        let run: u64 = fields[4].parse().unwrap();
        let expected: Vec<u64> = fields[5..].iter().map(|bits| u64::from_str_radix(bits, 16).unwrap()).collect();
        let len = expected.len();
        let mut stream = Philox::from_seeds(seeds[0], seeds[1]);
        let kind = fields[0].strip_prefix("stateless_").inspect(|_| stream = Philox::stateless(seeds));
        let kind = kind.unwrap_or(fields[0]);
        let taken = if kind == "shuffle" { (len as u64 - 1).div_ceil(4) } else { RESERVED_BLOCKS * len as u64 };
        stream.skip(run * taken);
        let found = match (kind, fields[1]) {
            ("shuffle", _) => shuffled(&stream, len),
            ("integers", "i32") => integers::<i32>(&pool, &stream, len),
            ("integers", _) => integers::<i64>(&pool, &stream, len),
            ("whole", "i32") => drawn::<i32>(len, |dst| whole_integers(&pool, &stream, dst)),
            ("whole", "u32") => drawn::<u32>(len, |dst| whole_integers(&pool, &stream, dst)),
            ("whole", "i64") => drawn::<i64>(len, |dst| whole_integers(&pool, &stream, dst)),
            ("whole", _) => drawn::<u64>(len, |dst| whole_integers(&pool, &stream, dst)),
            (_, "f32") => floats::<f32>(&pool, kind, &stream, len),
            (_, "f64") => floats::<f64>(&pool, kind, &stream, len),
            (_, "f16") => floats::<f16>(&pool, kind, &stream, len),
            _ => floats::<bf16>(&pool, kind, &stream, len),
        };
        assert_eq!(found, expected, "{}", fields[..5].join(" "));
    }
}

#[test]
fn threads_and_lengths_do_not_change_values() {
    let (one, three) = (Pool::new(1), Pool::new(3));
    let stream = Philox::from_seeds(3, 4);
    let len = 100_003;
    for kind in ["uniform", "normal", "truncated"] {
        let all = floats::<f32>(&one, kind, &stream, len);
        assert_eq!(floats::<f32>(&three, kind, &stream, len), all);
        for short in [0, 1, 3, 4, 5, 31, 33] {
            assert_eq!(floats::<f32>(&one, kind, &stream, short), all[..short]);
        }
    }
    let blocks = drawn::<u32>(4 * 40, |dst| whole_integers(&one, &stream, dst));
    for (i, block) in blocks.chunks(4).enumerate() {
        assert_eq!(block, stream.block(i as u64).map(u64::from));
    }
}

#[test]
fn the_counter_carries() {
    let stream = Philox::new(1, u128::from(u64::MAX));
    assert_eq!(stream.skipped(1).counter(), 1 << 64);
    assert_eq!(stream.block(1), Philox::new(1, 1 << 64).block(0));
    assert_eq!(Philox::new(1, u128::MAX).skipped(1).counter(), 0);
}
