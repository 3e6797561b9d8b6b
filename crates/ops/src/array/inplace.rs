//! InplaceUpdate, InplaceAdd and InplaceSub: a tensor with some of its rows replaced or changed.

use math::function::Number;
use op::shapes::{integers, unchanged};
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{DType, Element, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "InplaceUpdate(x: T, i: int32, v: T) -> y: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: update_kernel,
        facts: PLAIN,
    },
    Op {
        def: "InplaceAdd(x: T, i: int32, v: T) -> y: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: |setup| change_kernel(setup, false),
        facts: PLAIN,
    },
    Op {
        def: "InplaceSub(x: T, i: int32, v: T) -> y: T; T: type",
        shape: unchanged,
        grad: Grad::Unknown,
        kernel: |setup| change_kernel(setup, true),
        facts: PLAIN,
    },
];

fn update_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let dtype = setup.dtype("T")?;
    if dtype == DType::STRING {
        return Ok(many(|_, mut inputs| {
            let (mut x, rows, v) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
            let rows = Rows::of(&x, &rows, &v)?;
            if !rows.numbers.is_empty() {
                let (values, size) = (x.strings_mut()?, rows.size);
                for (&row, v) in rows.numbers.iter().zip(v.strings()?.chunks(size.max(1))) {
                    values[row * size..][..size].clone_from_slice(v);
                }
            }
            Ok(outputs![x])
        }));
    }
    if dtype == DType::BOOL {
        return Ok(changing::<bool>(|x, v| *x = v));
    }
    for_changed(setup, dtype, |setup, dtype| for_numbers!(setup, dtype, T => Ok(changing::<T>(|x, v| *x = v))))
}

fn change_kernel(setup: &Setup<'_>, subtracted: bool) -> Result<Kernel> {
    for_changed(setup, setup.dtype("T")?, |setup, dtype| {
        for_numbers!(setup, dtype, T => Ok(match subtracted {
            true => changing::<T>(|x, v| *x = Number::sub(*x, v)),
            false => changing::<T>(|x, v| *x = Number::add(*x, v)),
        }))
    })
}

/// The kernel of a type of numbers. For other types there is one too, which accepts empty tensors.
fn for_changed(
    setup: &Setup<'_>,
    dtype: DType,
    kernel: impl FnOnce(&Setup<'_>, DType) -> Result<Kernel>,
) -> Result<Kernel> {
    if dtype.is_integer() && dtype.size() > 0 && dtype != DType::I4 && dtype != DType::U4
        || dtype.is_floating()
        || dtype.is_complex()
    {
        return kernel(setup, dtype);
    }
    Ok(many(move |_, mut inputs| {
        let (x, rows, v) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        match Rows::of(&x, &rows, &v)?.numbers.is_empty() {
            true => Ok(outputs![x]),
            false => Err(invalid!("Unsupported data type: {dtype}")),
        }
    }))
}

fn changing<T: Element>(change: impl Fn(&mut T, T) + Copy + Send + Sync + 'static) -> Kernel {
    many(move |_, mut inputs| {
        let (mut x, rows, v) = (inputs.tensor(0)?, inputs.tensor(1)?, inputs.tensor(2)?);
        let rows = Rows::of(&x, &rows, &v)?;
        if !rows.numbers.is_empty() {
            let (values, size) = (x.values_mut::<T>()?, rows.size);
            for (&row, v) in rows.numbers.iter().zip(v.values::<T>()?.chunks(size.max(1))) {
                values[row * size..][..size].iter_mut().zip(v).for_each(|(x, &v)| change(x, v));
            }
        }
        Ok(outputs![x])
    })
}

/// The rows that change, and their size; none if a tensor is empty.
struct Rows {
    numbers: Vec<usize>,
    size: usize,
}

impl Rows {
    fn of(x: &Tensor, rows: &Tensor, v: &Tensor) -> Result<Rows> {
        check(x.shape(), rows.shape(), v.shape())?;
        if x.elements() == 0 || v.elements() == 0 {
            return Ok(Rows { numbers: Vec::new(), size: 0 });
        }
        let count = x.shape()[0];
        // Indices are counted modulo the number of rows.
        let numbers = integers(rows)?.into_iter().map(|row| row.rem_euclid(count as i64) as usize).collect();
        Ok(Rows { numbers, size: x.elements() / count })
    }
}

fn check(x: &Shape, rows: &Shape, v: &Shape) -> Result<()> {
    if rows.rank() != 1 {
        return Err(invalid!("i must be a vector. {rows}"));
    }
    if x.rank() != v.rank() {
        return Err(invalid!("x and v shape doesn't match (ranks differ): {x} vs. {v}"));
    }
    if x.rank() == 0 {
        return Err(invalid!("x and v must have at least one dimension"));
    }
    if let Some(axis) = (1..x.rank()).find(|&axis| x[axis] != v[axis]) {
        return Err(invalid!("x and v shape doesn't match at index {axis} : {x} vs. {v}"));
    }
    match rows[0] == v[0] {
        true => Ok(()),
        false => Err(invalid!("i and x shape doesn't match at index 0: {rows} vs. {v}")),
    }
}
