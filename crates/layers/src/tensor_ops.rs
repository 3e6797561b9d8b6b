//! Operations as methods: of outputs ([`TensorOps`]) and of scopes ([`ScopeOps`]).

use graph::{OpBuilder, Output, Scope};
use ops::raw;
use tensor::{DType, PartialShape, Tensor};

/// Operations that a scope begins with, because they have no input.
pub trait ScopeOps {
    /// A constant.
    fn constant(&self, value: impl Into<Tensor>) -> Output;
    /// A value that is fed to each step; dimensions below zero are unknown.
    fn placeholder(&self, dtype: DType, dims: &[i64]) -> Output;
    /// A node that runs after all these and does nothing else. It is `group_deps`; if the nodes are on several
    /// devices, it waits for one `group_deps/NoOp` on each.
    fn group(&self, nodes: &[graph::Node]) -> graph::Node;
}

impl ScopeOps for Scope {
    fn constant(&self, value: impl Into<Tensor>) -> Output {
        ops::array::constant(self, value.into())
    }

    fn placeholder(&self, dtype: DType, dims: &[i64]) -> Output {
        ops::array::placeholder(self, dtype, PartialShape::new(dims))
    }

    fn group(&self, nodes: &[graph::Node]) -> graph::Node {
        ops::control::group(self, nodes)
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident = $op:ident;)*) => {
        unary! { @trait $($(#[$doc])* $name;)* @impl $($name = $op;)* }
    };
    (@trait $($(#[$doc:meta])* $declared:ident;)* @impl $($name:ident = $op:ident;)*) => {
        /// Operations on tensors; each method adds a node in the scope of the output.
        pub trait TensorOps {
            $($(#[$doc])* fn $declared(&self) -> Output;)*
            /// The product of two matrices.
            fn matmul(&self, rhs: &Output) -> Output;
            /// The power: `self` is the base, `rhs` the exponent.
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
            /// The index of the largest element along an axis.
            fn argmax(&self, axis: i32) -> Output;
            /// The same elements with another shape; one dimension may be -1 and is computed.
            fn reshape(&self, dims: &[i64]) -> Output;
            /// The same values with another element type.
            fn cast(&self, dtype: DType) -> Output;
            /// The rows with these indices.
            fn gather(&self, indices: &Output) -> Output;
            /// The values, limited to the range from `low` to `high`.
            fn clip(&self, low: f64, high: f64) -> Output;
        }

        impl TensorOps for Output {
            $(fn $name(&self) -> Output { raw::$op(self).output() })*

            fn matmul(&self, rhs: &Output) -> Output { raw::mat_mul(self, rhs).output() }
            fn pow(&self, rhs: &Output) -> Output { raw::pow(self, rhs).output() }
            fn maximum(&self, rhs: &Output) -> Output { raw::maximum(self, rhs).output() }
            fn minimum(&self, rhs: &Output) -> Output { raw::minimum(self, rhs).output() }
            fn equals(&self, rhs: &Output) -> Output { raw::equal(self, rhs).output() }
            fn greater(&self, rhs: &Output) -> Output { raw::greater(self, rhs).output() }
            fn less(&self, rhs: &Output) -> Output { raw::less(self, rhs).output() }
            fn sum(&self) -> Output { reduce_all(self, raw::sum) }
            fn sum_over(&self, axes: &[i32]) -> Output { reduce(self, raw::sum, axes) }
            fn mean(&self) -> Output { reduce_all(self, raw::mean) }
            fn mean_over(&self, axes: &[i32]) -> Output { reduce(self, raw::mean, axes) }
            fn max_over(&self, axes: &[i32]) -> Output { reduce(self, raw::max, axes) }

            fn argmax(&self, axis: i32) -> Output {
                raw::arg_max(self, &self.scope().constant(axis)).output()
            }

            fn reshape(&self, dims: &[i64]) -> Output {
                let dims: Vec<i32> = dims.iter().map(|&dim| dim as i32).collect();
                raw::reshape(self, &self.scope().constant(dims)).output()
            }

            fn cast(&self, dtype: DType) -> Output {
                if self.dtype() == dtype {
                    return self.clone();
                }
                raw::cast(self, dtype).output()
            }

            fn gather(&self, indices: &Output) -> Output {
                raw::gather_v2(self, indices, &self.scope().constant(0i32)).output()
            }

            fn clip(&self, low: f64, high: f64) -> Output {
                self.minimum(&self.like(high)).maximum(&self.like(low))
            }
        }
    };
}

unary! {
    /// `max(x, 0)`.
    relu = relu;
    /// `1 / (1 + exp(-x))`.
    sigmoid = sigmoid;
    /// The hyperbolic tangent.
    tanh = tanh;
    /// `exp(x)` divided by its sum over the last dimension.
    softmax = softmax;
    /// The logarithm of `softmax`.
    log_softmax = log_softmax;
    /// The exponential.
    exp = exp;
    /// The natural logarithm.
    log = log;
    /// `log(1 + x)`.
    log1p = log1p;
    /// The square root.
    sqrt = sqrt;
    /// One over the square root.
    rsqrt = rsqrt;
    /// `x x`.
    square = square;
    /// The absolute value.
    abs = abs;
    /// -1, 0 or 1.
    sign = sign;
    /// The largest integer that is not larger.
    floor = floor;
    /// The smallest integer that is not smaller.
    ceil = ceil;
    /// The cosine.
    cos = cos;
    /// The sine.
    sin = sin;
    /// Zeros of the same shape.
    zeros_like = zeros_like;
    /// Ones of the same shape.
    ones_like = ones_like;
    /// The value, treated as a constant by gradients.
    stop_gradient = stop_gradient;
    /// The value, as the output of a new node.
    identity = identity;
    /// The shape, as a vector of integers.
    dims = shape;
}

/// Builds a reduction from its input and the axes.
type Reduction = fn(&Output, &Output) -> OpBuilder;

fn reduce(x: &Output, reduction: Reduction, axes: &[i32]) -> Output {
    reduction(x, &x.scope().constant(axes)).output()
}

/// Reduces over all axes. If the rank is unknown while building, the step computes it.
fn reduce_all(x: &Output, reduction: Reduction) -> Output {
    match x.shape().rank() {
        Some(rank) => reduce(x, reduction, &(0..rank as i32).collect::<Vec<_>>()),
        None => {
            let scope = x.scope();
            let rank = raw::rank(x).output();
            let axes = raw::range(&scope.constant(0i32), &rank, &scope.constant(1i32)).output();
            reduction(x, &axes).output()
        }
    }
}
