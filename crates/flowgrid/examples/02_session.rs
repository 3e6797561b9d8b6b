//! A session runs a graph: it is given values, and asked for others.

use flowgrid::prelude::*;

fn main() -> Result<()> {
    let graph = Graph::new();
    let scope = graph.root();
    let x = scope.placeholder(DType::F32, &[-1]);
    let mean = x.mean();
    let spread = (&x - &mean).square().mean().sqrt();

    // Variables live as long as the session.
    let total = Variable::zeros(&scope, "total", []);
    let add = total.assign_add(&x.sum());

    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph))?;

    // What is fetched is read as the types that the caller names; nodes that only run give ().
    let (mean, spread, ()): (f32, f32, ()) =
        session.run_with((&mean, &spread, &add), feeds! { &x => [1.0f32, 2.0, 3.0, 6.0] })?;
    println!("mean {mean}, spread {spread}");

    session.execute_with(&add, feeds! { &x => [8.0f32] })?;
    let total: f32 = session.run(&total)?;
    println!("total {total}");
    assert_eq!((mean, total), (3.0, 20.0));

    // Options of a step, and the metadata that it returns.
    let options = RunOptions { trace: true, ..RunOptions::default() };
    let ((), metadata) = session.run_with_options(&add, feeds! { &x => [0.0f32] }, options)?;
    let count: usize = metadata.stats.iter().map(|(_, nodes)| nodes.len()).sum();
    println!("{count} nodes ran");
    Ok(())
}
