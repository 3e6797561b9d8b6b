//! UnicodeScript: the number of the script of code points.

use super::unicode_scripts::SCRIPTS;
use op::shapes::unchanged;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::Result;
use tensor::Tensor;

pub(crate) const OPS: &[Op] = &[Op {
    def: "UnicodeScript(input: int32) -> output: int32",
    shape: unchanged,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// The number of the script of each code point, as ICU counts scripts; -1 for numbers that are no code points.
pub fn unicode_script(input: &graph::Output) -> graph::Output {
    input.scope().op("UnicodeScript").input(input).output()
}

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| {
        let scripts: Vec<i32> = input.values::<i32>()?.iter().map(|&code| script(code)).collect();
        Tensor::from_slice(input.shape(), &scripts)
    }))
}

fn script(code: i32) -> i32 {
    let Ok(code @ 0..=0x10_ffff) = u32::try_from(code) else { return -1 };
    let next = SCRIPTS.partition_point(|&(first, _)| first <= code);
    next.checked_sub(1).map_or(-1, |index| SCRIPTS[index].1.into())
}
