//! Scalar summaries: numbers under tags.

use super::real::Real;
use super::text;
use graph::Output;
use io::event::{SummaryData, SummaryValue, write_summary};
use op::shapes::scalar as scalar_shape;
use op::{Kernel, Op, Setup, binary};
use status::{Result, invalid};
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "ScalarSummary(tags: string, values: T) -> summary: string; T: realnumbertype", scalar_shape, scalar_kernel;
};

/// A summary of numbers under as many tags.
pub fn scalar_summary(tags: &Output, values: &Output) -> Output {
    values.scope().op("ScalarSummary").input(tags).input(values).output()
}

fn scalar_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    for_reals!(setup, setup.dtype("T")?, T => {
        Ok(binary(|_, tags, values| {
            if tags.shape() != values.shape() {
                return Err(not_the_same(&tags, &values));
            }
            let values = values.values::<T>()?.iter().zip(tags.strings()?);
            let values: Vec<_> = values.map(|(&value, tag)| under(text(tag), value)).collect();
            Ok(Tensor::string(write_summary(&values)?))
        }))
    })
}

/// One number under its tag.
pub(super) fn under<T: Real>(tag: String, value: T) -> SummaryValue {
    SummaryValue { tag, data: SummaryData::Scalar(value.narrow()), ..SummaryValue::default() }
}

fn not_the_same(tags: &Tensor, values: &Tensor) -> status::Error {
    let only = match tags.strings() {
        Ok([tag]) => format!(" (tag '{}')", text(tag)),
        _ => String::new(),
    };
    invalid!("tags and values are not the same shape: {} != {}{only}", tags.shape(), values.shape())
}

/// A Summary message of one number.
pub(super) fn message<T: Real>(tag: String, value: T) -> Result<Bytes> {
    write_summary(&[under(tag, value)])
}
