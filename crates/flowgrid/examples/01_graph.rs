//! A graph is described first, and checked while it is described; nothing is computed yet.

use flowgrid::prelude::*;

fn main() -> Result<()> {
    let graph = Graph::new();
    let scope = graph.root();

    // Names come from scopes, devices too.
    let model = scope.named("model");
    let x = model
        .op("Placeholder")
        .named("x")
        .attr("dtype", DType::F32)
        .attr("shape", PartialShape::new(&[-1, 3]))
        .output();
    let w = model.on("/cpu:0").constant([[1.0f32], [2.0], [3.0]]);
    let y = x.matmul(&w) * 2.0 + 1.0;

    // Types and shapes are known before anything runs.
    assert_eq!(y.dtype(), DType::F32);
    assert_eq!(y.shape().to_string(), "[?,1]");

    // The graph in TensorFlow's own format, for anybody who reads it.
    let def = graph.to_def()?;
    let bytes = flowgrid::wire::write_graph(&def);
    let names: Vec<&str> = def.nodes.iter().map(|node| node.name.as_str()).collect();
    println!("{} nodes in {} bytes: {}", names.len(), bytes.len(), names.join(", "));

    // The graph keeps an error, with the names of the user, until it is checked or run.
    let wrong = Graph::new();
    let a = wrong.root().constant([[1.0f32, 2.0]]);
    let _ = a.matmul(&a);
    let error = wrong.check().expect_err("1x2 times 1x2 is no product");
    println!("{error}");
    Ok(())
}
