//! Ops that call Python functions of the client. Their kernels say what to use instead.

use crate::attrs::DATASET;
use op::shapes;
use op::{Grad, Kernel, Op, PLAIN, Setup};
use status::{Result, unimplemented_op};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "GeneratorDataset(init_func_other_args: [Tinit_func_args], next_func_other_args: [Tnext_func_args], \
              finalize_func_other_args: [Tfinalize_func_args]) -> handle: variant; init_func: func; next_func: func; \
              finalize_func: func; Tinit_func_args: list(type) >= 0; Tnext_func_args: list(type) >= 0; \
              Tfinalize_func_args: list(type) >= 0; output_types: list(type) >= 1; output_shapes: list(shape) >= 1; \
              metadata: string = \"\"; stateful",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "PyFunc(input: [Tin]) -> output: [Tout]; token: string; Tin: list(type) >= 0; Tout: list(type) >= 0; \
              stateful",
        shape: shapes::unknown,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "PyFuncStateless(input: [Tin]) -> output: [Tout]; token: string; Tin: list(type) >= 0; \
              Tout: list(type) >= 0",
        shape: shapes::unknown,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
    Op {
        def: "EagerPyFunc(input: [Tin]) -> output: [Tout]; token: string; is_async: bool = false; \
              Tin: list(type) >= 0; Tout: list(type) >= 0; stateful",
        shape: shapes::unknown,
        grad: Grad::Stop,
        kernel,
        facts: PLAIN,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let op = setup.def().op.clone();
    Ok(op::many(move |_, _| {
        Err(unimplemented_op!(
            "{op} calls a Python function that exists only in the process of the client (tf.py_func, tf.numpy_function, \
             Dataset.from_generator). A Flowgrid server runs no Python: use ops of the graph, Dataset.from_tensor_slices, \
             TFRecord files, or feed the values with feed_dict"
        ))
    }))
}
