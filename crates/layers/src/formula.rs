//! Formulas that read as formulas: methods on outputs and scopes.

use graph::{Output, Scope};
use tensor::{DType, PartialShape, Tensor};

/// What formulas begin with.
pub trait Formulas {
    /// A constant.
    fn constant(&self, value: impl Into<Tensor>) -> Output;
    /// A value given to each step; dimensions below zero are open.
    fn placeholder(&self, dtype: DType, dims: &[i64]) -> Output;
    /// A node that runs after all these and does nothing else. It is `group_deps`; if the nodes are on several
    /// devices, it waits for one `group_deps/NoOp` on each.
    fn group(&self, nodes: &[graph::Node]) -> graph::Node;
}

impl Formulas for Scope {
    fn constant(&self, value: impl Into<Tensor>) -> Output {
        ops::array::constant::constant(self, value.into())
    }

    fn placeholder(&self, dtype: DType, dims: &[i64]) -> Output {
        ops::array::constant::placeholder(self, dtype, PartialShape::new(dims))
    }

    fn group(&self, nodes: &[graph::Node]) -> graph::Node {
        ops::control::no_op::group(self, nodes)
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)*) => {
        unary! { @trait $($(#[$doc])* $name;)* @impl $($name = $op;)* }
    };
    (@trait $($(#[$doc:meta])* $declared:ident;)* @impl $($name:ident = $op:literal;)*) => {
        /// What formulas are made of: each method adds a node in the output's scope.
        pub trait Formula {
            $($(#[$doc])* fn $declared(&self) -> Output;)*
            /// The product of two matrices.
            fn matmul(&self, rhs: &Output) -> Output;
            /// This to the power of `rhs`.
            fn pow(&self, rhs: &Output) -> Output;
            /// The larger of two, element by element.
            fn maximum(&self, rhs: &Output) -> Output;
            /// The smaller of two, element by element.
            fn minimum(&self, rhs: &Output) -> Output;
            /// Whether two are equal, element by element.
            fn equals(&self, rhs: &Output) -> Output;
            /// Whether this is larger, element by element.
            fn greater(&self, rhs: &Output) -> Output;
            /// Whether this is smaller, element by element.
            fn less(&self, rhs: &Output) -> Output;
            /// The sum of all elements.
            fn sum(&self) -> Output;
            /// The sum over some axes.
            fn sum_over(&self, axes: &[i32]) -> Output;
            /// The mean of all elements.
            fn mean(&self) -> Output;
            /// The mean over some axes.
            fn mean_over(&self, axes: &[i32]) -> Output;
            /// The largest element over some axes.
            fn max_over(&self, axes: &[i32]) -> Output;
            /// The place of the largest element along an axis.
            fn argmax(&self, axis: i32) -> Output;
            /// The same elements under another shape; one dimension may be -1.
            fn reshape(&self, dims: &[i64]) -> Output;
            /// Another element type.
            fn cast(&self, dtype: DType) -> Output;
            /// Rows by number.
            fn gather(&self, indices: &Output) -> Output;
            /// Values between two numbers.
            fn clip(&self, low: f64, high: f64) -> Output;
        }

        impl Formula for Output {
            $(fn $name(&self) -> Output { self.scope().op($op).input(self).output() })*

            fn matmul(&self, rhs: &Output) -> Output { pair(self, "MatMul", rhs) }
            fn pow(&self, rhs: &Output) -> Output { pair(self, "Pow", rhs) }
            fn maximum(&self, rhs: &Output) -> Output { pair(self, "Maximum", rhs) }
            fn minimum(&self, rhs: &Output) -> Output { pair(self, "Minimum", rhs) }
            fn equals(&self, rhs: &Output) -> Output { pair(self, "Equal", rhs) }
            fn greater(&self, rhs: &Output) -> Output { pair(self, "Greater", rhs) }
            fn less(&self, rhs: &Output) -> Output { pair(self, "Less", rhs) }
            fn sum(&self) -> Output { reduce_all(self, "Sum") }
            fn sum_over(&self, axes: &[i32]) -> Output { reduce(self, "Sum", axes) }
            fn mean(&self) -> Output { reduce_all(self, "Mean") }
            fn mean_over(&self, axes: &[i32]) -> Output { reduce(self, "Mean", axes) }
            fn max_over(&self, axes: &[i32]) -> Output { reduce(self, "Max", axes) }

            fn argmax(&self, axis: i32) -> Output {
                self.scope().op("ArgMax").input(self).input(&self.scope().constant(axis)).output()
            }

            fn reshape(&self, dims: &[i64]) -> Output {
                let dims: Vec<i32> = dims.iter().map(|&dim| dim as i32).collect();
                self.scope().op("Reshape").input(self).input(&self.scope().constant(dims)).output()
            }

            fn cast(&self, dtype: DType) -> Output {
                if self.dtype() == dtype {
                    return self.clone();
                }
                self.scope().op("Cast").input(self).attr("DstT", dtype).output()
            }

            fn gather(&self, indices: &Output) -> Output {
                let axis = self.scope().constant(0i32);
                self.scope().op("GatherV2").input(self).input(indices).input(&axis).output()
            }

            fn clip(&self, low: f64, high: f64) -> Output {
                self.minimum(&self.like(high)).maximum(&self.like(low))
            }
        }
    };
}

unary! {
    /// `max(x, 0)`.
    relu = "Relu";
    /// `1 / (1 + exp(-x))`.
    sigmoid = "Sigmoid";
    /// The hyperbolic tangent.
    tanh = "Tanh";
    /// `exp(x)` over the sum of its row.
    softmax = "Softmax";
    /// The logarithm of `softmax`.
    log_softmax = "LogSoftmax";
    /// The exponential.
    exp = "Exp";
    /// The natural logarithm.
    log = "Log";
    /// `log(1 + x)`.
    log1p = "Log1p";
    /// The square root.
    sqrt = "Sqrt";
    /// One over the square root.
    rsqrt = "Rsqrt";
    /// `x x`.
    square = "Square";
    /// The value without its sign.
    abs = "Abs";
    /// -1, 0 or 1.
    sign = "Sign";
    /// The largest integer not above.
    floor = "Floor";
    /// The smallest integer not below.
    ceil = "Ceil";
    /// The cosine.
    cos = "Cos";
    /// The sine.
    sin = "Sin";
    /// Zeros of the same shape.
    zeros_like = "ZerosLike";
    /// Ones of the same shape.
    ones_like = "OnesLike";
    /// The value, through which no gradient passes.
    stop_gradient = "StopGradient";
    /// The value, as another node.
    identity = "Identity";
    /// The dimensions.
    dims = "Shape";
}

fn pair(lhs: &Output, op: &str, rhs: &Output) -> Output {
    lhs.scope().op(op).input(lhs).input(rhs).output()
}

fn reduce(x: &Output, op: &str, axes: &[i32]) -> Output {
    x.scope().op(op).input(x).input(&x.scope().constant(axes)).output()
}

/// Over all axes: as many as are known, or found out when the step runs.
fn reduce_all(x: &Output, op: &str) -> Output {
    match x.shape().rank() {
        Some(rank) => reduce(x, op, &(0..rank as i32).collect::<Vec<_>>()),
        None => {
            let scope = x.scope();
            let rank = scope.op("Rank").input(x).output();
            let axes =
                scope.op("Range").input(&scope.constant(0i32)).input(&rank).input(&scope.constant(1i32)).output();
            scope.op(op).input(x).input(&axes).output()
        }
    }
}
