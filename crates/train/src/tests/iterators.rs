//! Monitored sessions that begin, save and continue input pipelines.

use super::Folder;
use crate::hooks::{Every, StopAtStep};
use crate::saver::Saver;
use crate::{MonitoredSession, MonitoredTrainingSession, Scaffold, create_global_step_in, replica_device_setter};
use graph::{Graph, Node, Output};
use input::{Dataset, DatasetIterator};
use layers::ScopeOps;
use session::LocalCluster;
use status::Result;
use std::sync::Arc;

/// A shuffled pipeline of one worker's numbers, and the node that counts a step.
struct Program {
    graph: Graph,
    iterator: DatasetIterator,
    next: Output,
    count: Node,
}

const NUMBERS: i64 = 40;
const WORKERS: usize = 2;

fn program(task: usize) -> Program {
    let graph = Graph::with_ops(data::registry());
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{task}")).on(&graph.root());
    let step = create_global_step_in(&scope).unwrap();
    let numbers = Dataset::range(&scope, 0..NUMBERS).shard(WORKERS, task).shuffle(8, Some(3));
    let iterator = numbers.parallel_map(2, |x: Output| &x * 1.0).prefetch(2).make_initializable_iterator();
    let next: Output = iterator.next().unwrap();
    let count = step.assign_add(&scope.after([next.node()]).constant(1i64));
    Program { graph, iterator, next, count }
}

/// The numbers that a worker sees until the end, or until a step.
fn seen(session: MonitoredSession, program: &Program) -> Result<Vec<i64>> {
    let mut seen = Vec::new();
    session.until_stop(|session| {
        let (number, ()): (i64, ()) = session.run((&program.next, &program.count))?;
        seen.push(number);
        Ok(())
    })?;
    Ok(seen)
}

#[test]
fn workers_that_train_again_see_each_element_once() {
    let folder = Folder::new();
    let mut all = vec![Vec::new(); WORKERS];
    for last_step in [11, 1000] {
        let cluster = LocalCluster::start(&[("ps", 1), ("worker", WORKERS)]).unwrap();
        let run = |task: usize, target: &str| {
            let program = program(task);
            let session = MonitoredTrainingSession::new(&program.graph).master(target).is_chief(task == 0);
            let session = session.checkpoint_dir(&folder.0).hook(StopAtStep::last_step(last_step));
            seen(session.iterator(&program.iterator).start()?, &program)
        };
        let seen = cluster.on_each_task("worker", run).unwrap();
        assert!(last_step > 11 || seen.concat().len() < 20, "stopped after {seen:?}");
        all.iter_mut().zip(seen).for_each(|(all, seen)| all.extend(seen));
    }
    for (task, mut numbers) in all.into_iter().enumerate() {
        let own: Vec<i64> = (0..NUMBERS).filter(|number| *number as usize % WORKERS == task).collect();
        assert_ne!(numbers, own, "worker {task} shuffles");
        numbers.sort();
        assert_eq!(numbers, own, "worker {task}");
    }
}

#[test]
fn a_killed_chief_continues_at_the_element_of_its_checkpoint() {
    let folder = Folder::new();
    let take = |count: usize| {
        let cluster = LocalCluster::start(&[("ps", 1), ("worker", WORKERS)]).unwrap();
        let program = program(0);
        let session = MonitoredTrainingSession::new(&program.graph).master(&cluster.targets("worker")[0]);
        let session =
            session.checkpoint_dir(&folder.0).save_checkpoint(Some(Every::Steps(3))).save_in_background(false);
        let mut session = session.iterator(&program.iterator).start().unwrap();
        let step = |_| session.run::<(i64, ())>((&program.next, &program.count)).unwrap().0;
        (0..count).map(step).collect::<Vec<i64>>() // the session is dropped without its last checkpoint
    };
    let (first, again) = (take(5), take(4));
    assert_eq!(first[3..], again[..2], "{first:?} and then {again:?}");
}

#[test]
fn the_saver_of_a_scaffold_may_save_iterators() {
    let folder = Folder::new();
    let mut all = Vec::new();
    for last_step in [4, 100] {
        let cluster = LocalCluster::start(&[("ps", 1), ("worker", 1)]).unwrap();
        let program = program(0);
        let saver = Saver::builder(&program.graph).sharded(true).iterators([&program.iterator]).build().unwrap();
        let initializers = [
            layers::collection::global_variables_initializer(&program.graph),
            program.iterator.initializer().unwrap().clone(),
        ];
        let init = program.graph.root().group(&initializers);
        let scaffold = Scaffold::new().saver(Arc::new(saver)).init_op(&init, Default::default());
        let session = MonitoredTrainingSession::new(&program.graph).master(&cluster.targets("worker")[0]);
        let session = session.scaffold(scaffold).checkpoint_dir(&folder.0).hook(StopAtStep::last_step(last_step));
        all.extend(seen(session.start().unwrap(), &program).unwrap());
    }
    all.sort();
    assert_eq!(all, (0..NUMBERS).step_by(WORKERS).collect::<Vec<i64>>());
}
