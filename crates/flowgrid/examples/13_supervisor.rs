//! Training under a supervisor: one thread fills a queue, another looks on, and all stop together when the input ends.

use flowgrid::layers::{Queue, collection::LOCAL_VARIABLES};
use flowgrid::prelude::*;
use flowgrid::train::{QueueRunner, Supervisor};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The numbers from 0 to 99, from a queue that a thread fills and closes.
fn numbers(scope: &Scope) -> Output {
    let next = Variable::builder(scope, "next").dtype(DType::I64).collections(&[LOCAL_VARIABLES]).build();
    let number =
        scope.op("ResourceCountUpTo").input(next.handle()).attr("limit", 100i64).attr("T", DType::I64).output();
    let queue = Queue::fifo(scope, &[DType::I64]).capacity(8).build();
    QueueRunner::new(&queue, &[queue.enqueue(&[number])]).register();
    queue.dequeue().remove(0)
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("flowgrid-supervisor-{}", std::process::id()));
    let graph = Graph::new();
    let scope = graph.root();
    let number = numbers(&scope);
    let total = Variable::builder(&scope, "total").dtype(DType::I64).trainable(false).build();
    let step = create_global_step(&graph)?;
    let add = total.assign_add(&number);
    let train = step.assign_add(&scope.after([&add]).constant(1i64));

    // It initializes, restores and saves; the graph stays as it is from now on.
    let supervisor = Supervisor::builder(&graph).logdir(&folder).build()?;
    let seen = Arc::new(AtomicI64::new(0));
    // The end of the input is a clean end: the session stops all threads, and gives the first error of any of them.
    supervisor.managed_session("", |session| {
        let (looking, watched, counter) = (session.clone(), seen.clone(), step.clone());
        supervisor.repeat(Some(Duration::from_millis(10)), move || {
            watched.store(looking.run(&counter)?, Ordering::SeqCst);
            Ok(())
        })?;
        while !supervisor.should_stop() {
            if let Err(end) = session.execute(&train) {
                let (steps, total): (i64, i64) = session.run((&step, &total))?;
                println!("{steps} steps, a total of {total}");
                return Err(end);
            }
        }
        Ok(())
    })?;
    assert!((0..=100).contains(&seen.load(Ordering::SeqCst)));
    Ok(std::fs::remove_dir_all(&folder)?)
}
