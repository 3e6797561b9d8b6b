//! Ops that call Python functions of the client. Their kernels say what to use instead.

use op::shapes;
use op::{Grad, Kernel, Op, PLAIN, Setup};
use status::{Result, unimplemented_op};

pub(crate) const OPS: &[Op] = &[
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
