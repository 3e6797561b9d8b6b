//! How fast convolutions are, in GFLOP/s: the median and the best of some repetitions, and the rate per second
//! of processor time, which other programs on the machine disturb less.

use flowgrid_math::Pool;
use flowgrid_math::conv::{self, Axis, ConvShape};
use flowgrid_math::gemm::Epilogue;
use std::time::Instant;

fn main() {
    let pool = Pool::new(std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(2));
    for (side, channels, filters, filter, batch, stride) in [
        (28, 1, 32, 5, 64, 1),
        (14, 32, 64, 5, 64, 1),
        (28, 64, 64, 3, 16, 1),
        (56, 64, 128, 3, 8, 2),
        (28, 256, 128, 1, 8, 1),
        (7, 512, 512, 3, 4, 1),
    ] {
        let axis = Axis::same(side, filter, stride, 1).unwrap();
        let shape = ConvShape::image(batch, [axis, axis], channels, channels, filters).unwrap();
        let values = |len: usize| (0..len).map(|i| (i % 13) as f32 * 0.1 - 0.5).collect::<Vec<f32>>();
        let (mut input, mut weights, mut grad) =
            (values(shape.input_len()), values(shape.filter_len()), values(shape.output_len()));
        let name = format!("conv{side} {channels}->{filters} k{filter} s{stride} b{batch}");
        let flop = 2.0 * (shape.output_len() * filter * filter * channels) as f64;
        measure(&format!("{name} forward"), flop, || {
            conv::forward(&pool, &shape, &input, &weights, Epilogue::NONE, &mut grad);
        });
        grad = values(shape.output_len());
        measure(&format!("{name} grad_filter"), flop, || conv::grad_filter(&pool, &shape, &input, &grad, &mut weights));
        weights = values(shape.filter_len());
        measure(&format!("{name} grad_input"), flop, || conv::grad_input(&pool, &shape, &weights, &grad, &mut input));
    }
}

fn measure(name: &str, flop: f64, mut body: impl FnMut()) {
    let count = ((5e8 / flop) as usize).clamp(1, 2000);
    body();
    let cpu = cpu_seconds();
    let mut rates: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            (0..count).for_each(|_| body());
            flop * count as f64 / start.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    let cpu = flop * (15 * count) as f64 / (cpu_seconds() - cpu) / 1e9;
    rates.sort_by(f64::total_cmp);
    eprintln!("{name:36} median {:7.1} best {:7.1} cpu {cpu:7.1} GF/s", rates[7], rates[14]);
}

/// Processor time of all threads so far, where the system tells.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    stats.filter_map(|stat| stat.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() / 1e9
}
