//! Reduces the number of compiled kernels: a narrow integer type runs on a wider one that holds all its values.
//!
//! Fourteen types times a hundred kernels would be most of the program's code, for types that graphs hardly compute
//! with. Sums, differences and products of integers wrap around alike in every width, so the detour does not show.

use super::cast::{Converter, converter};
use op::{Ctx, Kernel, Outputs, Run, Setup, Value, binary, many, unary};
use status::Result;
use tensor::{DType, Tensor};

/// `for_core!(setup, [f32, f64, i32], T => kernel)`: the kernel for attribute `T` with `T` set to its Rust type, or to
/// the nearest wider one in the list; inputs and outputs of the type are converted.
macro_rules! for_core {
    ($setup:expr, [$($rust:ty),* $(,)?], $T:ident => $kernel:expr) => {
        $crate::math_ops::core_types::through(
            $setup,
            &[$(<$rust as tensor::Element>::DTYPE),*],
            true,
            &|core| for_types!($setup, core, [$($rust),*], $T => $kernel),
        )
    };
}

/// As `for_core!`, for kernels with an output type of their own.
macro_rules! for_core_to {
    ($setup:expr, [$($rust:ty),* $(,)?], $T:ident => $kernel:expr) => {
        $crate::math_ops::core_types::through(
            $setup,
            &[$(<$rust as tensor::Element>::DTYPE),*],
            false,
            &|core| for_types!($setup, core, [$($rust),*], $T => $kernel),
        )
    };
}

/// The kernel that `make` has for the type of the node, or for a wider one it has, with conversions.
pub(crate) fn through(
    setup: &Setup<'_>,
    available: &[DType],
    converts_back: bool,
    make: &dyn Fn(DType) -> Result<Kernel>,
) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    let core = wider(dtype).iter().copied().find(|core| available.contains(core)).ok_or_else(|| setup.no_kernel())?;
    let kernel = make(core)?;
    if core == dtype {
        return Ok(kernel);
    }
    let detour = Detour { dtype, core, there: converter(dtype, core)?, back: converter(core, dtype)?, converts_back };
    Ok(detour.around(kernel))
}

/// A type itself, and those that hold all its values.
fn wider(dtype: DType) -> &'static [DType] {
    use DType as D;
    match dtype {
        D::F32 => &[D::F32],
        D::F64 => &[D::F64],
        D::F16 => &[D::F16, D::F32],
        D::BF16 => &[D::BF16, D::F32],
        D::I8 | D::QI8 => &[D::I8, D::I32, D::I64],
        D::I16 | D::QI16 => &[D::I16, D::I32, D::I64],
        D::U8 | D::QU8 => &[D::U8, D::I32, D::I64],
        D::U16 | D::QU16 => &[D::U16, D::I32, D::I64],
        D::I32 | D::QI32 => &[D::I32, D::I64],
        D::U32 => &[D::U32, D::I64],
        D::I64 => &[D::I64],
        // Kernels without unsigned integers compute modulo the word size, so signed integers give the same bits.
        D::U64 => &[D::U64, D::I64],
        D::BOOL => &[D::BOOL, D::I32],
        D::C64 => &[D::C64],
        D::C128 => &[D::C128],
        _ => &[],
    }
}

/// Converts a narrow type to the one a kernel is compiled for, and back.
struct Detour {
    dtype: DType,
    core: DType,
    there: Converter,
    back: Converter,
    converts_back: bool,
}

impl Detour {
    fn around(self, kernel: Kernel) -> Kernel {
        let cost = kernel.cost;
        let around = match kernel.run {
            Run::Unary(run) => unary(move |ctx, x| self.back(ctx, run(ctx, self.there(ctx, x)?)?)),
            Run::Binary(run) => binary(move |ctx, x, y| {
                let (x, y) = (self.there(ctx, x)?, self.there(ctx, y)?);
                self.back(ctx, run(ctx, x, y)?)
            }),
            Run::Many(run) => many(move |ctx, mut inputs| {
                let tensors = inputs.tensors_from(0)?;
                let inputs = tensors.into_iter().map(|x| self.there(ctx, x).map(Value::from));
                let outputs = run(ctx, inputs.collect::<Result<_>>()?)?;
                outputs.into_iter().map(|value| self.back_value(ctx, value)).collect::<Result<Outputs>>()
            }),
            other => return Kernel { run: other, cost, elementwise: None, streams_from: None },
        };
        Kernel { cost, ..around }
    }

    /// Inputs of another type, such as axes, are left alone.
    fn there(&self, ctx: &Ctx<'_>, x: Tensor) -> Result<Tensor> {
        if x.dtype() == self.dtype { (self.there)(ctx, x) } else { Ok(x) }
    }

    fn back(&self, ctx: &Ctx<'_>, y: Tensor) -> Result<Tensor> {
        if self.converts_back && y.dtype() == self.core { (self.back)(ctx, y) } else { Ok(y) }
    }

    fn back_value(&self, ctx: &Ctx<'_>, value: Value) -> Result<Value> {
        match value {
            Value::Tensor(y) => Ok(Value::Tensor(self.back(ctx, y)?)),
            other => Ok(other),
        }
    }
}
