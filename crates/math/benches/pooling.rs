//! How long poolings take, in microseconds: the median of some repetitions.

use flowgrid_math::Pool;
use flowgrid_math::conv::Axis;
use flowgrid_math::pooling::{self, PoolShape};
use std::time::Instant;

fn main() {
    let pool = Pool::new(2);
    for (batch, side, channels, filter, stride) in
        [(64, 28, 32, 2, 2), (64, 14, 64, 2, 2), (16, 56, 64, 3, 2), (16, 7, 512, 7, 1)]
    {
        let axis = Axis::same(side, filter, stride, 1).unwrap();
        let shape = PoolShape::image(batch, [axis; 2], channels).unwrap();
        let input: Vec<f32> = (0..shape.input_len()).map(|i| (i * 7919 % 1013) as f32).collect();
        let mut out = vec![0.0f32; shape.output_len()];
        let mut back = vec![0.0f32; shape.input_len()];
        let mut argmax = vec![0; shape.output_len()];
        let name = format!("{batch}x{side}x{side}x{channels} k{filter} s{stride}");
        measure(&format!("{name} max"), || pooling::max(&pool, &shape, &input, &mut out));
        measure(&format!("{name} max_grad"), || pooling::max_grad(&pool, &shape, &input, &out, &mut back));
        measure(&format!("{name} argmax"), || {
            pooling::max_argmax(&pool, &shape, &input, true, &mut back[..shape.output_len()], &mut argmax);
        });
        measure(&format!("{name} average"), || pooling::average(&pool, &shape, &input, &mut out));
        measure(&format!("{name} average_grad"), || pooling::average_grad(&pool, &shape, &out, &mut back));
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
