//! How fast products are, in GFLOP/s: the median and the best of some repetitions, and the rate per second
//! of processor time, which other programs on the machine disturb less.

use flowgrid_math::Pool;
use flowgrid_math::gemm::{Element, Matrix, matmul};
use std::time::Instant;

fn main() {
    let pool = Pool::new(std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(2));
    for n in [64, 256, 512, 1024, 2048] {
        measure::<f32>(&pool, n, n, n, false, false);
    }
    for (batch, from, to) in [(128, 784, 512), (64, 9216, 1024), (64, 3136, 256), (128, 512, 10)] {
        measure::<f32>(&pool, batch, from, to, false, false);
        measure::<f32>(&pool, from, batch, to, true, false);
        measure::<f32>(&pool, batch, to, from, false, true);
    }
    measure::<f32>(&pool, 1, 1024, 1024, false, false);
    measure::<f32>(&pool, 1, 1024, 1024, false, true);
    measure::<f32>(&pool, 1024, 1024, 1, false, false);
    measure::<f64>(&pool, 1024, 1024, 1024, false, false);
}

fn measure<T: Element + From<f32>>(pool: &Pool, m: usize, k: usize, n: usize, ta: bool, tb: bool) {
    let values = |len: usize| (0..len).map(|i| T::from((i % 13) as f32 * 0.1 - 0.5)).collect::<Vec<T>>();
    let (a, b) = (values(m * k), values(k * n));
    let lhs = if ta { Matrix::new(&a, k, m).transposed() } else { Matrix::new(&a, m, k) };
    let rhs = if tb { Matrix::new(&b, n, k).transposed() } else { Matrix::new(&b, k, n) };
    let mut out = vec![T::default(); m * n];
    let flop = 2.0 * (m * k * n) as f64;
    let count = ((5e8 / flop) as usize).clamp(1, 2000);
    let cpu = cpu_seconds();
    let mut rates: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..count {
                matmul(pool, lhs, rhs, &mut out);
            }
            flop * count as f64 / start.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    let cpu = flop * (15 * count) as f64 / (cpu_seconds() - cpu) / 1e9;
    rates.sort_by(f64::total_cmp);
    let name = format!("{m}x{k}x{n} {}{} {}", mark(ta), mark(tb), std::any::type_name::<T>());
    eprintln!("{name:34} median {:7.1} best {:7.1} cpu {cpu:7.1} GF/s", rates[7], rates[14]);
}

fn mark(transposed: bool) -> char {
    if transposed { 'T' } else { 'N' }
}

/// Processor time of all threads so far, where the system tells.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    stats.filter_map(|stat| stat.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e9
}
