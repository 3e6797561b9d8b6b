//! Macros for builder functions that only name an op and its inputs.

/// `name = "Op";` makes `pub fn name(x: &Output) -> Output`.
macro_rules! unary_builders {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(x: &graph::Output) -> graph::Output {
            x.scope().op($op).input(x).output()
        }
    )*};
}

/// `name = "Op";` makes `pub fn name(x: &Output, y: &Output) -> Output`.
macro_rules! binary_builders {
    ($($(#[$doc:meta])* $name:ident = $op:literal;)*) => {$(
        $(#[$doc])*
        pub fn $name(x: &graph::Output, y: &graph::Output) -> graph::Output {
            x.scope().op($op).input(x).input(y).output()
        }
    )*};
}
