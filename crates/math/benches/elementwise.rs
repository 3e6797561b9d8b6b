//! Prints how many gigabytes per second the loops read and write.

use std::time::Instant;

use flowgrid_math::Pool;
use flowgrid_math::elementwise::{cost, map, zip};
use flowgrid_math::function::{Ordered, Real, cos_fast, sin_fast};
use flowgrid_math::fused::{Binary, Instruction, Operand, Program, Unary, run};
use flowgrid_math::reduce::{Reduction, Sum, reduce_axes};
use flowgrid_math::softmax;
use flowgrid_math::{Permutation, transpose};

/// The best of several runs, in gigabytes per second.
fn measure(name: &str, bytes: usize, mut body: impl FnMut()) {
    body();
    let mut best = f64::INFINITY;
    for _ in 0..12 {
        let start = Instant::now();
        body();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:24} {:8.2} GB/s {:9.3} ms", bytes as f64 / best / 1e9, best * 1e3);
}

fn functions(pool: &Pool) {
    let n = 1 << 20;
    let src: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.01 + 0.01).collect();
    let mut dst = vec![0.0f32; n];
    type Row = (&'static str, fn(&Pool, &[f32], &mut [f32]));
    let functions: [Row; 14] = [
        ("exp", |p, s, d| map(p, 1.0, s, d, Real::exp)),
        ("expm1", |p, s, d| map(p, 1.0, s, d, Real::expm1)),
        ("log", |p, s, d| map(p, 1.0, s, d, Real::log)),
        ("log1p", |p, s, d| map(p, 1.0, s, d, Real::log1p)),
        ("tanh", |p, s, d| map(p, 1.0, s, d, Real::tanh)),
        ("sigmoid", |p, s, d| map(p, 1.0, s, d, Real::sigmoid)),
        ("softplus", |p, s, d| map(p, 1.0, s, d, Real::softplus)),
        ("elu", |p, s, d| map(p, 1.0, s, d, Real::elu)),
        ("sin", |p, s, d| map(p, 1.0, s, d, sin_fast)),
        ("cos", |p, s, d| map(p, 1.0, s, d, cos_fast)),
        ("erf", |p, s, d| map(p, 1.0, s, d, Real::erf)),
        ("erfc", |p, s, d| map(p, 1.0, s, d, Real::erfc)),
        ("rsqrt", |p, s, d| map(p, 1.0, s, d, Real::rsqrt)),
        ("larger", |p, s, d| map(p, 1.0, s, d, |x| x.larger(2.0))),
    ];
    for (name, f) in functions {
        measure(name, 8 * n, || f(pool, &src, &mut dst));
    }
}

fn chains(pool: &Pool) {
    let n = 16 << 20;
    let (x, y) = (vec![0.5f32; n], vec![0.25f32; n]);
    let mut z = vec![0.0f32; n];
    measure("16M copy", 8 * n, || map(pool, cost::SIMPLE, &x, &mut z, |x| x));
    measure("16M x * 0.5", 8 * n, || map(pool, cost::SIMPLE, &x, &mut z, |x| x * 0.5));
    measure("16M x * y", 12 * n, || zip(pool, cost::SIMPLE, &x, &y, &mut z, |x, y| x * y));
    measure("16M tanh", 8 * n, || map(pool, cost::FUNCTION, &x, &mut z, Real::tanh));
}

/// The benchmark's chains; counted is what operations one by one would read and write.
fn fused_chains(pool: &Pool) {
    use Instruction as I;
    let n = 16 << 20;
    let (src, y) = (vec![0.5f32; n], vec![0.25f32; n]);
    let mut z = vec![0.0f32; n];
    let z2 = y.clone();
    let (mut scalar, mut binary, mut tanh) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..4 {
        let (from, to) = (if i == 0 { 0 } else { 2 + 3 * i }, 3 + 3 * i);
        scalar.push(I::Binary(Binary::Mul, to, from, 1));
        scalar.push(I::Binary(Binary::Add, to + 1, to, 2));
        scalar.push(I::Unary(Unary::Relu, to + 2, to + 1));
        let (from, to) = (if i == 0 { 0 } else { 1 + 3 * i }, 2 + 3 * i);
        binary.push(I::Binary(Binary::Mul, to, from, 1));
        binary.push(I::Binary(Binary::Sub, to + 1, 0, from));
        binary.push(I::Binary(Binary::Max, to + 2, to, to + 1));
        tanh.push(I::Unary(Unary::Tanh, i + 1, i));
    }
    let (x, y) = (Operand::Full(&src), Operand::Full(&y));
    let program = Program::new(3, &scalar, &[14]);
    let operands = [x, Operand::Scalar(0.5), Operand::Scalar(0.25)];
    let small = [Operand::Full(&src[..1 << 16]), operands[1], operands[2]];
    measure("fused scalar chain, 64K", (12 * 8) << 16, || {
        run(pool, &program, 1, 1 << 16, &small, &mut [&mut z[..1 << 16]])
    });
    measure("fused scalar chain", 12 * 8 * n, || run(pool, &program, 1, n, &operands, &mut [&mut z]));
    let program = Program::new(2, &binary, &[13]);
    let small = [Operand::Full(&src[..1 << 16]), Operand::Full(&z2[..1 << 16])];
    measure("fused binary chain, 64K", (12 * 12) << 16, || {
        run(pool, &program, 1, 1 << 16, &small, &mut [&mut z[..1 << 16]])
    });
    measure("fused binary chain", 12 * 12 * n, || run(pool, &program, 1, n, &[x, y], &mut [&mut z]));
    let program = Program::new(1, &tanh, &[4]);
    measure("fused tanh chain", 4 * 8 * n, || run(pool, &program, 1, n, &[x], &mut [&mut z]));
}

fn rows(pool: &Pool) {
    let (rows, width) = (4096, 1024);
    let n = rows * width;
    let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32 * 0.01).collect();
    let mut z = vec![0.0f32; n];
    measure("softmax", 8 * n, || softmax(pool, width, &x, &mut z));
    for (name, reduced) in [("sum_all", [true, true]), ("sum_rows", [false, true]), ("sum_columns", [true, false])] {
        let shape = Reduction::new(&[rows, width], &reduced);
        let mut sums = vec![0.0f32; shape.out_len()];
        measure(name, 4 * n, || reduce_axes(pool, 0.1, &shape, &x, &mut sums, Sum));
    }
    let shape = Reduction::new(&[64, 1024], &[true, true]);
    let mut sum = [0.0f32];
    measure("sum of 256 KB, 100 times", 400 << 16, || {
        (0..100).for_each(|_| reduce_axes(pool, 0.1, &shape, &x[..1 << 16], &mut sum, Sum));
    });
    let permutation = Permutation::new(&[rows, width], &[1, 0]);
    measure("transpose", 8 * n, || transpose(pool, &permutation, &x, &mut z));
}

fn main() {
    for threads in [1, 2] {
        println!("{threads} threads");
        let pool = Pool::new(threads);
        functions(&pool);
        chains(&pool);
        fused_chains(&pool);
        rows(&pool);
    }
}
