//! Selects the loop of a function that is defined for all floating-point and complex types.

/// `analytic!(setup, exp: vector, scalar; |z| z.exp())`: the kernel of a function of `math::function::Real`,
/// with the kinds of loops for float and for double, and the function of complex numbers.
macro_rules! analytic {
    ($setup:expr, $real:ident: $single:ident, $double:ident; $complex:expr) => {
        match $setup.dtype("T")? {
            dtype if dtype.is_complex() => for_types!($setup, dtype, [tensor::Complex32, tensor::Complex64], T => {
                let function: fn(T) -> T = $complex;
                Ok($crate::math_ops::kernels::mapping_by(function))
            }),
            _ => real_function!($setup, $real: $single, $double),
        }
    };
}

/// `real_function!(setup, erf: vector, scalar)`: as `analytic!`, for functions of real numbers only.
macro_rules! real_function {
    ($setup:expr, $real:ident: $single:ident, $double:ident) => {
        $crate::math_ops::kernels::real_kernel(
            $setup,
            math::lanes::Map::$single(<f32 as math::function::Real>::$real),
            math::lanes::Map::$double(<f64 as math::function::Real>::$real),
        )
    };
}
