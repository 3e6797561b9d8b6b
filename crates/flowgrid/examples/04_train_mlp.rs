//! A network with one hidden layer learns which points lie inside a circle.

use flowgrid::prelude::*;

/// Points on a grid in the square from -1 to 1, and whether they are inside the circle.
fn points() -> (Tensor, Tensor) {
    let at = |i: usize| i as f32 / 10.0 - 1.0;
    let grid = || (0..21 * 21).map(|i| (at(i % 21), at(i / 21)));
    let xs: Vec<f32> = grid().flat_map(|(x, y)| [x, y]).collect();
    let labels: Vec<i32> = grid().map(|(x, y)| i32::from(x * x + y * y < 0.5)).collect();
    (Tensor::from_slice([441, 2], &xs).expect("441 points"), labels.into())
}

fn main() -> Result<()> {
    let graph = Graph::new();
    let scope = graph.root();
    let x = scope.placeholder(DType::F32, &[-1, 2]);
    let labels = scope.placeholder(DType::I32, &[-1]);

    let variables = VariableScope::new(&scope);
    let hidden = Dense::new(16).activation(Formula::tanh).kernel(Initializer::glorot_uniform().seeded(1));
    let hidden = hidden.apply(&variables.enter("hidden"), &x);
    let logits = Dense::new(2).kernel(Initializer::glorot_uniform().seeded(2));
    let logits = logits.apply(&variables.enter("logits"), &hidden);

    let loss = loss::sparse_softmax_cross_entropy(&labels, &logits);
    let right = logits.argmax(1).cast(DType::I32).equals(&labels);
    let accuracy = right.cast(DType::F32).mean();

    let step = create_global_step(&graph)?;
    let rate = schedule::exponential_decay(0.05, step.value(), 100.0, 0.9, false);
    let train = Optimizer::new(Adam::new(rate)).minimize_with(&loss, &[], Some(&step))?;

    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph))?;
    let (xs, ys) = points();
    for round in 0..=300 {
        let (now, right, ()): (f32, f32, ()) =
            session.run_with((&loss, &accuracy, &train), feeds! { &x => &xs, &labels => &ys })?;
        if round % 100 == 0 {
            println!("step {round}: loss {now:.4}, accuracy {right:.3}");
        }
    }
    let (steps, right): (i64, f32) = session.run_with((&step, &accuracy), feeds! { &x => &xs, &labels => &ys })?;
    println!("{steps} steps, accuracy {right:.3}");
    assert!(right > 0.95);
    Ok(())
}
