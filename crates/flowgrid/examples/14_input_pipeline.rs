//! An input pipeline: records are shuffled, parsed, scaled and batched ahead of the training step, on the task that trains.

use flowgrid::prelude::*;
use flowgrid::{Example, FileSystems, RecordWriter, Values};

/// Writes 60 examples of `y = 2 a + b + ...`: each has between one and four numbers and their weighted sum.
fn write(path: &str) -> Result<()> {
    let mut writer = RecordWriter::create(&FileSystems::local(), path, flowgrid::Compression::None)?;
    for i in 0..60i64 {
        let xs: Vec<f32> = (0..=i % 4).map(|k| ((i * 7 + k * 3) % 11) as f32).collect();
        let y = xs.iter().zip([2.0, 1.0, 0.5, -1.0]).map(|(x, w)| x * w).sum();
        let example = Example::new().with("xs", Values::Floats(xs)).with("y", Values::Floats(vec![y]));
        writer.write(&example.encode())?;
    }
    writer.close()
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("flowgrid-pipeline-{}.tfrecord", std::process::id()));
    write(&path.to_string_lossy())?;
    let graph = Graph::new();
    let scope = graph.root();
    let features = [("xs", Feature::sequence(DType::F32)), ("y", Feature::fixed(DType::F32, &[]))];
    let dataset = Dataset::tf_records(&scope, [&*path.to_string_lossy()])
        .shuffle(20, Some(7))
        .repeat(2)
        .map(|record: Output| {
            let parsed = parse_example(&record, &features).expect("the features are those of the list");
            (parsed.dense("xs").expect("a feature"), parsed.dense("y").expect("a feature"))
        })
        .parallel_map(2, |(xs, y): (Output, Output)| (xs / 10.0, y / 10.0))
        .padded_batch(12)
        .prefetch(2);
    let iterator = dataset.make_initializable_iterator();
    let (xs, y): (Output, Output) = iterator.next()?;
    let w = Variable::zeros(&scope, "w", []);
    let loss = (xs.sum_over(&[1]) * &w - y).square().mean();
    let train = Optimizer::new(GradientDescent::new(0.2)).minimize(&loss)?;

    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph))?;
    session.execute(iterator.initializer().expect("it is initializable"))?;
    loop {
        match session.run::<(f32, ())>((&loss, &train)) {
            Ok((loss, ())) => println!("loss {loss:.5}"),
            Err(error) if error.code == flowgrid::Code::OutOfRange => break,
            Err(error) => return Err(error),
        }
    }
    println!("after both rounds w is {:.4}", session.run::<f32>(&w)?);
    Ok(std::fs::remove_file(path)?)
}
