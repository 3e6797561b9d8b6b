//! One worker of a cluster that learns digits: each worker for itself, or with `--sync_replicas` all together.
//!
//! It takes the flags that such programs have in Python: `--ps_hosts=a:1 --worker_hosts=b:2,c:3 --task_index=0
//! --checkpoint_dir=DIR`. So does its twin, and both can be workers of one job. Without flags it starts a cluster.

use flowgrid::prelude::*;
use flowgrid::train::{SyncReplicasOptimizer, hooks::Synchronous};

const BATCH: u32 = 64;
const PIXELS: u32 = 784;

/// A number that looks like chance.
fn mixed(number: u32) -> u32 {
    let number = (number ^ number >> 15).wrapping_mul(0x9e37_79b1);
    number ^ number >> 13
}

/// Noisy pictures of ten patterns, and which patterns they are.
fn digits(batch: u32) -> (Tensor, Vec<i32>) {
    let labels: Vec<u32> = (0..BATCH).map(|i| mixed(batch * BATCH + i) % 10).collect();
    let pixel = |i: u32, at: u32| {
        let ink = if mixed(labels[i as usize] * PIXELS + at).is_multiple_of(5) { 0.6 } else { 0.0 };
        ink + 0.4 * (mixed((batch * BATCH + i) * PIXELS + at + 9999) % 256) as f32 / 255.0
    };
    let pixels: Vec<f32> = (0..BATCH * PIXELS).map(|i| pixel(i / PIXELS, i % PIXELS)).collect();
    let shape = [BATCH as usize, PIXELS as usize];
    (Tensor::from_slice(shape, &pixels).expect("a batch"), labels.into_iter().map(|label| label as i32).collect())
}

/// Trains until the last step of all workers; gives the mean loss of this one, in which later steps count more.
fn work(targets: &[String], ps: usize, task: usize, folder: &str, together: bool) -> Result<f32> {
    let graph = Graph::new();
    let scope = replica_device_setter(ps).worker_device(&format!("/job:worker/task:{task}")).on(&graph.root());
    let step = create_global_step_in(&scope)?;
    let (x, labels) = (scope.placeholder(DType::F32, &[-1, 784]), scope.placeholder(DType::I32, &[-1]));
    let variables = VariableScope::new(&scope);
    let hidden = Dense::new(64).activation(TensorOps::relu).apply(&variables.enter("hidden"), &x);
    let loss = loss::sparse_softmax_cross_entropy(&labels, &Dense::new(10).apply(&variables.enter("logits"), &hidden));

    let optimizer = Optimizer::new(GradientDescent::new(0.1));
    let mut session = MonitoredTrainingSession::new(&graph).master(&targets[task]).is_chief(task == 0);
    let train = if together {
        let sync = SyncReplicasOptimizer::new(optimizer, targets.len()).worker(&scope).minimize(&loss)?;
        session = session.hook(if task == 0 { Synchronous::chief(&sync)? } else { Synchronous::worker(&sync) });
        sync.train_op
    } else {
        optimizer.minimize_with(&loss, MinimizeOptions::new().step(&step))?
    };
    let session = session.checkpoint_dir(folder).hook(hooks::StopAtStep::last_step(200)).start()?;
    let (mut batches, mut mean) = ((task as u32..).step_by(targets.len()).map(digits), 2.3);
    session.until_stop(|session| {
        let (pixels, numbers) = batches.next().expect("there is no end");
        let (now, ()): (f32, ()) = session.run_with((&loss, &train), feeds! { &x => pixels, &labels => numbers })?;
        mean += 0.1 * (now - mean);
        Ok(())
    })?;
    Ok(mean)
}

fn main() -> Result<()> {
    let flag =
        |name: &str| std::env::args().find_map(|arg| arg.strip_prefix(&format!("--{name}=")).map(str::to_string));
    let hosts =
        |name| flag(name).map(|hosts| hosts.split(',').map(|host| format!("grpc://{host}")).collect::<Vec<_>>());
    let together = std::env::args().any(|arg| arg == "--sync_replicas");
    let folder = flag("checkpoint_dir").unwrap_or_else(|| format!("/tmp/flowgrid-mnist-{}", std::process::id()));
    if let (Some(ps), Some(workers)) = (hosts("ps_hosts"), hosts("worker_hosts")) {
        let task = flag("task_index").and_then(|task| task.parse().ok()).unwrap_or(0);
        println!("loss {:.4}", work(&workers, ps.len(), task, &folder, together)?);
        return Ok(());
    }
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)])?;
    let targets = cluster.targets("worker");
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| work(&targets, 1, 1, &folder, together));
        (work(&targets, 1, 0, &folder, together), other.join().expect("the other worker ends"))
    });
    println!("losses {:.4} and {:.4}", one?, other?);
    Ok(std::fs::remove_dir_all(&folder)?)
}
