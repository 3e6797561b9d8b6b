//! An input pipeline on the workers that train: records are shuffled, parsed, scaled and batched ahead of the training step.
//! Each worker sees its half of the examples once, although training is interrupted and continues on other servers: the
//! checkpoints hold the state of the pipelines, too.

use flowgrid::{Example, RecordWriter, prelude::*};

/// An example: its number, between one and four values, and twice their sum, which the model learns.
fn example(id: i64) -> Example {
    let xs: Vec<f32> = (0..=id % 4).map(|k| ((id * 7 + k * 3) % 11) as f32).collect();
    let y = 2.0 * xs.iter().sum::<f32>();
    Example::new().with("id", id).with("xs", xs).with("y", y)
}

/// Trains on the part of one worker until a step of all workers, or to its end.
fn train(task: usize, target: &str, folder: &str, last_step: i64) -> Result<()> {
    let graph = Graph::new();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{task}")).on(&graph.root());
    let number = |dtype| Feature::fixed(dtype, &[]);
    let features = [("id", number(DType::I64)), ("xs", Feature::sequence(DType::F32)), ("y", number(DType::F32))];
    let records = Dataset::tf_records(&scope, [format!("{folder}/examples")]).shard(2, task).shuffle(20, Some(7));
    let scaled = |[id, xs, y]: [Output; 3]| [id, xs / 20.0, y / 20.0];
    let batches = records.parse_example(&features).parallel_map(2, scaled).padded_batch(4).prefetch(2);
    let iterator = batches.make_initializable_iterator();
    let [ids, xs, y] = iterator.next()?;

    let (w, step) = (Variable::zeros(&scope, "w", []), create_global_step_in(&scope)?);
    let loss = (xs.sum_over(&[1]) * &w - y).square().mean();
    let options = MinimizeOptions::new().step(&step);
    let train = Optimizer::new(GradientDescent::new(0.3)).minimize_with(&loss, options)?;
    let session = MonitoredTrainingSession::new(&graph).master(target).is_chief(task == 0).checkpoint_dir(folder);
    let session = session.iterator(&iterator).hook(hooks::StopAtStep::last_step(last_step)).start()?;
    session.until_stop(|session| {
        let (ids, w, ()): (Vec<i64>, f32, ()) = session.run((&ids, &w, &train))?;
        println!("worker {task}: w {w:.3}, examples {ids:?}");
        Ok(())
    })
}

fn main() -> Result<()> {
    let folder = format!("{}/flowgrid-pipeline-{}", std::env::temp_dir().display(), std::process::id());
    std::fs::create_dir_all(&folder)?;
    RecordWriter::create(format!("{folder}/examples"))?.write_all((0..96).map(|id| example(id).encode()))?;
    for last_step in [10, i64::MAX] {
        let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)])?;
        cluster.on_each_task("worker", |task, target| train(task, target, &folder, last_step))?;
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}
