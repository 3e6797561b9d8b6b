//! QuantizedRelu and its relatives.

use super::args::{mapped, range, unchanged_with_range, with_range};
use super::level::Level;
use op::{Grad, Kernel, Op, PLAIN, Setup, many};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "QuantizedRelu(features: Tinput, min_features: float, max_features: float) -> activations: out_type, \
              min_activations: float, max_activations: float; Tinput: {qint8, quint8, qint32, qint16, quint16}; \
              out_type: {qint8, quint8, qint32, qint16, quint16} = quint8",
        shape: unchanged_with_range,
        grad: Grad::Unknown,
        kernel: |setup| kernel(setup, None),
        facts: PLAIN,
    },
    Op {
        def: "QuantizedRelu6(features: Tinput, min_features: float, max_features: float) -> activations: out_type, \
              min_activations: float, max_activations: float; Tinput: {qint8, quint8, qint32, qint16, quint16}; \
              out_type: {qint8, quint8, qint32, qint16, quint16} = quint8",
        shape: unchanged_with_range,
        grad: Grad::Unknown,
        kernel: |setup| kernel(setup, Some(6.0)),
        facts: PLAIN,
    },
    Op {
        def: "QuantizedReluX(features: Tinput, max_value: float, min_features: float, max_features: float) -> \
              activations: out_type, min_activations: float, max_activations: float; \
              Tinput: {qint8, quint8, qint32, qint16, quint16}; \
              out_type: {qint8, quint8, qint32, qint16, quint16} = quint8",
        shape: unchanged_with_range,
        grad: Grad::Unknown,
        // TensorFlow has the op, but no kernel for processors.
        kernel: |setup| Err(setup.no_kernel()),
        facts: PLAIN,
    },
];

fn kernel(setup: &Setup<'_>, highest: Option<f32>) -> Result<Kernel> {
    let dtype = setup.dtype("Tinput")?;
    if setup.dtype("out_type")? != dtype {
        return Err(setup.no_kernel());
    }
    for_levels!(setup, dtype, [QU8 = u8, QI32 = i32], T => Ok(many(move |_, mut inputs| {
        let range = range(&inputs, 1, ["min_input", "max_input"])?;
        let lowest = range.quantized::<T>(0.0);
        let highest = highest.map_or(T::truncated(T::HIGHEST), |highest| range.quantized::<T>(highest));
        let clamped = |value: T| value.max(lowest).min(highest);
        Ok(with_range(mapped::<T, T>(&inputs.tensor(0)?, dtype, clamped)?, range))
    })))
}
