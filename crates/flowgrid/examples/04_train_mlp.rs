//! A network with one hidden layer learns which points lie inside a circle.

use flowgrid::prelude::*;

fn main() -> Result<()> {
    // Points on a grid in the square from -1 to 1, and whether they are inside the circle.
    let points: Vec<[f32; 2]> = (0..441).map(|i| [i % 21, i / 21].map(|at| at as f32 / 10.0 - 1.0)).collect();
    let inside: Vec<i32> = points.iter().map(|[x, y]| i32::from(x * x + y * y < 0.5)).collect();

    let graph = Graph::new();
    let scope = graph.root();
    let (x, labels) = (scope.placeholder(DType::F32, &[-1, 2]), scope.placeholder(DType::I32, &[-1]));
    let weights = |seed| Initializer::glorot_uniform().seeded(seed);
    let hidden = Dense::new(16).activation(TensorOps::tanh).kernel(weights(1));
    let model = Sequential::new().add_named("hidden", hidden).add_named("logits", Dense::new(2).kernel(weights(2)));
    let logits = model.apply(&VariableScope::new(&scope), &x);
    let loss = loss::sparse_softmax_cross_entropy(&labels, &logits);
    let accuracy = logits.argmax(1).cast(DType::I32).equals(&labels).cast(DType::F32).mean();
    let train = Optimizer::new(Adam::new(0.05)).minimize(&loss)?;

    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph))?;
    for step in 0..=300 {
        let feeds = feeds! { &x => points.clone(), &labels => inside.clone() };
        let (loss, accuracy, ()): (f32, f32, ()) = session.run_with((&loss, &accuracy, &train), feeds)?;
        if step % 100 == 0 {
            println!("step {step}: loss {loss:.4}, accuracy {accuracy:.3}");
        }
    }
    Ok(())
}
