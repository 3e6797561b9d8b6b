//! The pages of the documentation. Their Rust blocks are compiled as doc tests: `cargo test --doc -p flowgrid-conformance`.
//!
//! They are here because this crate is not published: a published crate cannot include files outside its folder.

macro_rules! pages {
    ($($name:ident = $path:literal;)*) => {
        $(#[doc = include_str!($path)] pub struct $name;)*
    };
}

pages! {
    Readme = "../../../README.md";
    Contents = "../../../docs/README.md";
    AllReduce = "../../../docs/all-reduce.md";
    BetweenGraph = "../../../docs/between-graph.md";
    FileSystems = "../../../docs/file-systems.md";
    InGraph = "../../../docs/in-graph.md";
    InputPipelines = "../../../docs/input-pipelines.md";
    Journal = "../../../docs/journal.md";
    Monitored = "../../../docs/monitored.md";
    ParameterUpdate = "../../../docs/parameter-update.md";
    Reports = "../../../docs/reports.md";
    Ops = "../../../docs/ops.md";
    Server = "../../../docs/server.md";
    Style = "../../../docs/style.md";
    Synchronous = "../../../docs/synchronous.md";
}
