//! Fused chains against the same operations one by one: equal bit for bit.

use crate::Pool;
use crate::elementwise::{Broadcast, broadcast, map};
use crate::function::{Number, Ordered, Real};
use crate::fused::{Binary, Instruction, Operand, Program, Unary, run};

fn numbers(len: usize, step: usize) -> Vec<f32> {
    (0..len).map(|i| (i * step % 1013) as f32 * 0.01 - 4.0).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// (name, rows, width)
const SHAPES: [(usize, usize); 9] =
    [(0, 3), (1, 1), (1, 7), (3, 5), (2, 1024), (5, 1500), (700, 3), (1, 100_001), (300, 1025)];

#[test]
fn every_unary_operation() {
    let pool = Pool::new(2);
    type Row = (Unary, fn(f32) -> f32);
    let all: [Row; 24] = [
        (Unary::Neg, |x| -x),
        (Unary::Abs, f32::abs),
        (Unary::Square, |x| x * x),
        (Unary::Sqrt, f32::sqrt),
        (Unary::Rsqrt, Real::rsqrt),
        (Unary::Reciprocal, |x| 1.0 / x),
        (Unary::Exp, Real::exp),
        (Unary::Expm1, Real::expm1),
        (Unary::Log, Real::log),
        (Unary::Log1p, Real::log1p),
        (Unary::Tanh, Real::tanh),
        (Unary::Sigmoid, Real::sigmoid),
        (Unary::Relu, |x| x.larger(0.0)),
        (Unary::Relu6, |x| x.larger(0.0).smaller(6.0)),
        (Unary::Elu, Real::elu),
        (Unary::Selu, Real::selu),
        (Unary::Softplus, Real::softplus),
        (Unary::Softsign, Real::softsign),
        (Unary::Sign, Ordered::sign),
        (Unary::Floor, f32::floor),
        (Unary::Ceil, f32::ceil),
        (Unary::Round, Real::round),
        (Unary::Erf, Real::erf),
        (Unary::Erfc, Real::erfc),
    ];
    let src = numbers(5003, 7);
    for (op, f) in all {
        let program = Program::new(1, &[Instruction::Unary(op, 1, 0)], &[1]);
        let (mut dst, mut expected) = (vec![0.0; src.len()], vec![0.0; src.len()]);
        run(&pool, &program, 1, src.len(), &[Operand::Full(&src)], &mut [&mut dst]);
        map(&pool, 1.0, &src, &mut expected, f);
        assert_eq!(
            dst.iter().map(|x| x.is_nan()).collect::<Vec<_>>(),
            expected.iter().map(|x| x.is_nan()).collect::<Vec<_>>()
        );
        assert!(dst.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan()), "{op:?}");
    }
}

#[test]
fn every_binary_operation_on_every_kind_of_operand() {
    let pool = Pool::new(2);
    type Row = (Binary, fn(f32, f32) -> f32);
    let all: [Row; 20] = [
        (Binary::Add, |x, y| x + y),
        (Binary::Sub, |x, y| x - y),
        (Binary::Mul, |x, y| x * y),
        (Binary::Div, |x, y| x / y),
        (Binary::DivNoNan, Number::div_no_nan),
        (Binary::MulNoNan, Number::mul_no_nan),
        (Binary::Max, Ordered::larger),
        (Binary::Min, Ordered::smaller),
        (Binary::SquaredDifference, |x, y| (x - y) * (x - y)),
        (Binary::Greater, |x, y| f32::from(x > y)),
        (Binary::GreaterEqual, |x, y| f32::from(x >= y)),
        (Binary::Less, |x, y| f32::from(x < y)),
        (Binary::LessEqual, |x, y| f32::from(x <= y)),
        (Binary::Equal, |x, y| f32::from(x == y)),
        (Binary::NotEqual, |x, y| f32::from(x != y)),
        (Binary::ReluGrad, |x, dy| if x > 0.0 { dy } else { 0.0 }),
        (Binary::TanhGrad, |y, dy| dy * (1.0 - y * y)),
        (Binary::SigmoidGrad, |y, dy| dy * y * (1.0 - y)),
        (Binary::SqrtGrad, |y, dy| 0.5 * dy / y),
        (Binary::RsqrtGrad, |y, dy| -0.5 * dy * (y * y * y)),
    ];
    for (i, (rows, width)) in SHAPES.into_iter().enumerate() {
        let (full, row, column) = (numbers(rows * width, 7), numbers(width, 11), numbers(rows, 13));
        let operands: [(Operand, [usize; 2]); 4] = [
            (Operand::Full(&full), [rows, width]),
            (Operand::Scalar(0.75), [1, 1]),
            (Operand::Row(&row), [1, width]),
            (Operand::Column(&column), [rows, 1]),
        ];
        let values = [&full[..], &[0.75], &row, &column];
        for (op, f) in all.into_iter().skip(i % 3).step_by(3) {
            let program = Program::new(2, &[Instruction::Binary(op, 2, 0, 1)], &[2]);
            for (a, (left, left_dims)) in operands.iter().enumerate() {
                for (b, (right, right_dims)) in operands.iter().enumerate() {
                    let mut dst = vec![0.0; rows * width];
                    run(&pool, &program, rows, width, &[*left, *right], &mut [&mut dst]);
                    let shape = Broadcast::of([left_dims, right_dims, &[rows, width]]).unwrap();
                    assert_eq!(shape.out_dims(), [rows, width]);
                    let pair = Broadcast::new(left_dims, right_dims).unwrap();
                    let mut small = vec![0.0; pair.out_len()];
                    broadcast(&pool, 1.0, &pair, values[a], values[b], &mut small, f);
                    let mut expected = vec![0.0; rows * width];
                    crate::elementwise::broadcast_to(&pool, pair.out_dims(), &[rows, width], &small, &mut expected);
                    assert_eq!(bits(&dst), bits(&expected), "{op:?} {rows}x{width} {a} {b}");
                }
            }
        }
    }
}

#[test]
fn a_chain_with_several_outputs_and_values_used_again() {
    let pool = Pool::new(2);
    for (rows, width) in SHAPES {
        let (x, y) = (numbers(rows * width, 7), numbers(rows * width, 17));
        // Registers: x y; x y, x - y, the larger, tanh of it, tanh + x y, the last where x > y else x.
        let instructions = [
            Instruction::Binary(Binary::Mul, 2, 0, 1),
            Instruction::Binary(Binary::Sub, 3, 0, 1),
            Instruction::Binary(Binary::Max, 4, 2, 3),
            Instruction::Unary(Unary::Tanh, 5, 4),
            Instruction::Binary(Binary::Add, 6, 5, 2),
            Instruction::Binary(Binary::Greater, 7, 0, 1),
            Instruction::Select(8, 7, 6, 0),
        ];
        let program = Program::new(2, &instructions, &[8, 4, 0, 8]);
        assert!(program.slots() <= 5);
        let expected: Vec<[f32; 3]> = x
            .iter()
            .zip(&y)
            .map(|(&x, &y)| {
                let larger = (x * y).larger(x - y);
                [if x > y { Real::tanh(larger) + x * y } else { x }, larger, x]
            })
            .collect();
        let mut outputs = vec![vec![0.0; x.len()]; 4];
        outputs[0] = x.clone();
        for operand in [Operand::Full(&x), Operand::InPlace(0)] {
            let mut slices: Vec<&mut [f32]> = outputs.iter_mut().map(|output| &mut output[..]).collect();
            run(&pool, &program, rows, width, &[operand, Operand::Full(&y)], &mut slices);
            for (j, output) in outputs.iter().enumerate() {
                let expected: Vec<f32> = expected.iter().map(|results| results[[0, 1, 2, 0][j]]).collect();
                assert_eq!(bits(output), bits(&expected), "{rows}x{width} output {j}");
            }
            outputs[0].copy_from_slice(&x);
        }
    }
}
