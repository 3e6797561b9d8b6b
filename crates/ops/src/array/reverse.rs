//! Reversals along axes: Reverse, ReverseV2, ReverseSequence, Roll.

use super::args::to_axis;
use super::segments::{Segment, copy_segments};
use super::walk::{Axis, Walk};
use graph::{Node, Output};
use math::Pool;
use op::shapes::{integers, unchanged};
use op::{Grad, Grads, Kernel, NoGradient, Op, PLAIN, Setup, binary, grads, many, outputs};
use status::{Result, invalid, unimplemented_op};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "Reverse(tensor: T, dims: bool) -> output: T; T: {uint8, int8, uint16, int16, uint32, int32, uint64, \
              int64, bool, bfloat16, half, float, double, complex64, complex128, string}",
        shape: unchanged,
        grad: Grad::Rule(reverse_rule),
        kernel: reverse_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ReverseV2(tensor: T, axis: Tidx) -> output: T; Tidx: {int32, int64} = int32; T: {uint8, int8, uint16, \
              int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, complex64, complex128, string}",
        shape: unchanged,
        grad: Grad::Rule(reverse_v2_rule),
        kernel: reverse_v2_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ReverseSequence(input: T, seq_lengths: Tlen) -> output: T; seq_dim: int; batch_dim: int = 0; T: type; \
              Tlen: {int32, int64} = int64",
        shape: unchanged,
        grad: Grad::Rule(reverse_sequence_rule),
        kernel: reverse_sequence_kernel,
        facts: PLAIN,
    },
    Op {
        def: "Roll(input: T, shift: Tshift, axis: Taxis) -> output: T; T: type; Tshift: {int32, int64}; \
              Taxis: {int32, int64}",
        shape: unchanged,
        grad: Grad::Rule(roll_rule),
        kernel: roll_kernel,
        facts: PLAIN,
    },
];

/// Most dimensions that can be reversed.
const MAX_RANK: usize = 8;

/// `tensor` with the axes named in the vector `axis` turned around.
pub fn reverse(tensor: &Output, axis: &Output) -> Output {
    tensor.scope().op("ReverseV2").input(tensor).input(axis).output()
}

/// The first `seq_lengths[i]` elements of each sequence turned around; `batch_dim` counts sequences, `seq_dim` is along
/// them.
pub fn reverse_sequence(input: &Output, seq_lengths: &Output, seq_dim: i64, batch_dim: i64) -> Output {
    let node = input.scope().op("ReverseSequence").input(input).input(seq_lengths);
    node.attr("seq_dim", seq_dim).attr("batch_dim", batch_dim).output()
}

/// `input` shifted along axes; elements shifted beyond one end reappear at the other.
pub fn roll(input: &Output, shift: &Output, axis: &Output) -> Output {
    input.scope().op("Roll").input(input).input(shift).input(axis).output()
}

fn reverse_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![dy.scope().op("Reverse").input(dy).input(&op.input(1)).output(), NoGradient])
}

fn reverse_v2_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![reverse(dy, &op.input(1)), NoGradient])
}

fn reverse_sequence_rule(op: &Node, dy: &Output) -> Result<Grads> {
    let dx = reverse_sequence(dy, &op.input(1), op.attr_int("seq_dim")?, op.attr_int("batch_dim")?);
    Ok(grads![dx, NoGradient])
}

fn roll_rule(op: &Node, dy: &Output) -> Result<Grads> {
    Ok(grads![roll(dy, &-&op.input(1), &op.input(2)), NoGradient, NoGradient])
}

fn reverse_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|ctx, tensor, dims| {
        let rank = tensor.shape().rank();
        if rank == 0 {
            return Ok(tensor);
        }
        if tensor.shape()[0] == 0 {
            return Err(invalid!("Invalid input first dimension. Found 0."));
        }
        if dims.shape().rank() != 1 {
            return Err(invalid!("'dims' must be 1-dimension, not {}", dims.shape().rank()));
        }
        if dims.elements() != rank {
            return Err(invalid!(
                "'dims' must have the same number of values as 'input' has dimensions. 'input' has {rank}'dims' has {} \
                 values",
                dims.elements()
            ));
        }
        run_reverse(ctx.pool(), tensor, dims.values::<bool>()?)
    }))
}

fn reverse_v2_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(binary(|ctx, tensor, axes| {
        let rank = tensor.shape().rank();
        if rank == 0 {
            return Ok(tensor);
        }
        if axes.shape().rank() != 1 {
            return Err(invalid!("'dims' must be 1-dimension, not {}", axes.shape().rank()));
        }
        let mut turned = vec![false; rank];
        for (index, number) in integers(&axes)?.into_iter().enumerate() {
            let axis = to_axis(number, rank)
                .ok_or_else(|| invalid!("'axis'[{index}] = {number} is out of valid range [0, {}", rank - 1))?;
            if std::mem::replace(&mut turned[axis], true) {
                return Err(invalid!("axis {axis} specified more than once."));
            }
        }
        run_reverse(ctx.pool(), tensor, &turned)
    }))
}

fn run_reverse(pool: &Pool, tensor: Tensor, turned: &[bool]) -> Result<Tensor> {
    if turned.len() > MAX_RANK {
        return Err(unimplemented_op!("reverse is not implemented for tensors of rank > 8."));
    }
    if tensor.elements() == 0 || !turned.contains(&true) {
        return Ok(tensor);
    }
    let (shape, strides) = (tensor.shape(), tensor.shape().strides());
    let start = (0..turned.len()).filter(|&axis| turned[axis]).map(|axis| (shape[axis] - 1) * strides[axis]).sum();
    let axis = |axis: usize| {
        let stride = strides[axis] as isize;
        Axis { len: shape[axis], src: if turned[axis] { -stride } else { stride }, dst: strides[axis] }
    };
    let mut out = Tensor::scratch_of(tensor.dtype(), shape)?;
    Walk::new(start, 0, (0..turned.len()).map(axis)).copy(pool, &tensor, &mut out)?;
    Ok(out)
}

fn reverse_sequence_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (batch_dim, seq_dim) = (setup.int("batch_dim")?, setup.int("seq_dim")?);
    let batch = usize::try_from(batch_dim).map_err(|_| invalid!("Invalid batch_dim {batch_dim}"))?;
    let sequence = usize::try_from(seq_dim).map_err(|_| invalid!("Invalid seq_dim {seq_dim}"))?;
    Ok(binary(move |ctx, input, lengths| run_reverse_sequence(ctx.pool(), input, &lengths, batch, sequence)))
}

fn run_reverse_sequence(pool: &Pool, input: Tensor, lengths: &Tensor, batch: usize, sequence: usize) -> Result<Tensor> {
    let lengths = checked_lengths(&input, lengths, batch, sequence)?;
    if input.elements() == 0 {
        return Ok(input);
    }
    let mut out = Tensor::scratch_of(input.dtype(), input.shape())?;
    for (index, &length) in lengths.iter().enumerate() {
        let axis = |axis: usize| {
            let len = input.shape()[axis];
            if axis == batch {
                return vec![Segment { src: index, back: false, dst: index, len: 1 }];
            }
            if axis != sequence {
                return vec![Segment { src: 0, back: false, dst: 0, len }];
            }
            let turned = Segment { src: length.saturating_sub(1), back: true, dst: 0, len: length };
            vec![turned, Segment { src: length, back: false, dst: length, len: len - length }]
        };
        let axes: Vec<_> = (0..input.shape().rank()).map(axis).collect();
        copy_segments(pool, &axes, &input, &mut out)?;
    }
    Ok(out)
}

fn checked_lengths(input: &Tensor, lengths: &Tensor, batch: usize, sequence: usize) -> Result<Vec<usize>> {
    let (shape, rank) = (input.shape(), input.shape().rank());
    if lengths.shape().rank() != 1 {
        return Err(invalid!("seq_lengths must be 1-dim, not {}", lengths.shape().rank()));
    }
    if batch == sequence {
        return Err(invalid!("batch_dim == seq_dim == {sequence}"));
    }
    if sequence >= rank {
        return Err(invalid!("seq_dim must be < input rank ( {sequence} vs. {rank})"));
    }
    if batch >= rank {
        return Err(invalid!("batch_dim must be < input rank ( {batch} vs. {rank})"));
    }
    if lengths.elements() != shape[batch] {
        return Err(invalid!(
            "Length of seq_lengths != input.dims({batch}), ({} vs. {})",
            lengths.elements(),
            shape[batch]
        ));
    }
    let check = |(index, length): (usize, i64)| match usize::try_from(length) {
        Err(_) => Err(invalid!("seq_lens({index}) < 0")),
        Ok(length) if length > shape[sequence] => Err(invalid!("seq_lens({index}) > input.dims({sequence})")),
        Ok(length) => Ok(length),
    };
    integers(lengths)?.into_iter().enumerate().map(check).collect()
}

fn roll_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|ctx, mut inputs| {
        let (input, shift, axis) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        Ok(outputs![run_roll(ctx.pool(), input, &shift, &axis)?])
    }))
}

fn run_roll(pool: &Pool, input: Tensor, shift: &Tensor, axis: &Tensor) -> Result<Tensor> {
    let rank = input.shape().rank();
    if rank == 0 {
        return Err(invalid!("input must be 1-D or higher"));
    }
    if shift.shape().rank() > 1 {
        return Err(invalid!("shift must be a scalar or a 1-D vector. Found: {}", shift.shape()));
    }
    if axis.shape().rank() > 1 {
        return Err(invalid!("axis must be a scalar or a 1-D vector. Found: {}", axis.shape()));
    }
    if shift.shape() != axis.shape() {
        return Err(invalid!("shift and axis must have the same size"));
    }
    let mut shifts = vec![0_i64; rank];
    for (shift, number) in integers(shift)?.into_iter().zip(integers(axis)?) {
        // TensorFlow names the axis after counting from the end.
        let counted = if number < 0 { number.saturating_add(rank as i64) } else { number };
        let axis = to_axis(number, rank).ok_or_else(|| invalid!("axis {counted} is out of range"))?;
        let len = input.shape()[axis].max(1) as i64;
        shifts[axis] = (shifts[axis] + shift.rem_euclid(len)).rem_euclid(len);
    }
    if input.elements() == 0 || shifts.iter().all(|&shift| shift == 0) {
        return Ok(input);
    }
    let mut out = Tensor::scratch_of(input.dtype(), input.shape())?;
    let rolled = |(&len, &shift): (&usize, &i64)| {
        let shift = shift as usize;
        let head = Segment { src: 0, back: false, dst: shift, len: len - shift };
        vec![head, Segment { src: len - shift, back: false, dst: 0, len: shift }]
    };
    let axes: Vec<_> = input.shape().iter().zip(&shifts).map(rolled).collect();
    copy_segments(pool, &axes, &input, &mut out)?;
    Ok(out)
}
