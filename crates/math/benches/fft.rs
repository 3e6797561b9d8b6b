//! How long Fourier transforms take, in microseconds: the median of some repetitions.

use flowgrid_math::Pool;
use flowgrid_math::fft::{Direction, Plans, Rows, along, forward_rows, inverse_rows};
use num_complex::Complex;
use std::time::Instant;

fn main() {
    let (pool, plans) = (Pool::new(2), Plans::<f32>::default());
    for (count, len) in [(1, 1 << 20), (256, 1024), (4096, 64), (64, 1000), (100, 1009), (1, 256)] {
        let mut values = vec![Complex::new(0.5f32, 0.25); count * len];
        let real = vec![0.5f32; count * len];
        let mut halves = vec![Complex::default(); count * (len / 2 + 1)];
        let mut back = vec![0f32; count * len];
        let rows = Rows::new(&[count, len], &[count, len]);
        let name = format!("{count}x{len}");
        measure(&format!("{name} complex"), || along(&pool, &plans, Direction::Forward, &mut values, [len, 1], 1e-3));
        measure(&format!("{name} real"), || forward_rows(&pool, &plans, &rows, [len, len], &real, &mut halves));
        measure(&format!("{name} back"), || {
            inverse_rows(&pool, &plans, [len / 2 + 1, len], 1.0, &halves, &mut back);
        });
    }
    for (batch, side) in [(1, 1024), (16, 256), (64, 28)] {
        let mut values = vec![Complex::new(0.5f32, 0.25); batch * side * side];
        measure(&format!("{batch}x{side}x{side} complex"), || {
            along(&pool, &plans, Direction::Forward, &mut values, [side, 1], 1.0);
            along(&pool, &plans, Direction::Forward, &mut values, [side, side], 1e-3);
        });
    }
}

fn measure(name: &str, mut body: impl FnMut()) {
    let mut times: Vec<f64> = (0..31)
        .map(|_| {
            let start = Instant::now();
            body();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    eprintln!("{name:36} median {:8.0} best {:8.0} us", times[15], times[0]);
}
