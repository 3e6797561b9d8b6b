//! Workers that step together are as one worker with all their examples.

use super::{Folder, graph};
use crate::hooks::{Every, Synchronous};
use crate::{
    Coordinator, ExponentialMovingAverage, GradientOutcome, MinimizeOptions, MonitoredTrainingSession, Optimizer,
    SyncReplicas, SyncReplicasOptimizer, create_global_step, create_global_step_in, latest_checkpoint,
    replica_device_setter,
};
use graph::{Graph, Output, Scope};
use layers::collection::global_variables_initializer;
use layers::{Initializer, Kind, ScopeOps, TensorOps, Variable};
use optimize::{GradientDescent, Momentum};
use session::{LocalCluster, Server, ServerOptions, Session, SyncPolicy, Task, feeds};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tensor::{DType, Tensor};

const STEPS: usize = 6;

/// A ps task and as many worker tasks, in this process.
fn start(policy: SyncPolicy, workers: usize) -> LocalCluster {
    LocalCluster::start_with(&[("ps", 1), ("worker", workers)], |options| small(options, policy)).unwrap()
}

fn small(options: ServerOptions, sync_policy: SyncPolicy) -> ServerOptions {
    ServerOptions { inter_op_threads: 2, intra_op_threads: 1, sync_policy, ..options }
}

/// The examples of a step, of which each of two workers has one half.
fn example(step: usize) -> (Vec<[f32; 2]>, Vec<f32>) {
    let x: Vec<[f32; 2]> = (0..4).map(|i| [((step * 4 + i) as f32).sin(), ((step + i) as f32 * 0.7).cos()]).collect();
    let y = x.iter().map(|[a, b]| 2.0 * a - b + 0.5).collect();
    (x, y)
}

fn tensors(x: &[[f32; 2]], y: &[f32]) -> (Tensor, Tensor) {
    (Tensor::from_slice([x.len(), 2], x.as_flattened()).unwrap(), Tensor::from_slice([y.len(), 1], y).unwrap())
}

/// The examples of one worker.
fn half(step: usize, worker: usize) -> (Tensor, Tensor) {
    let (x, y) = example(step);
    let half = 2 * worker..2 * worker + 2;
    tensors(&x[half.clone()], &y[half])
}

struct Model {
    x: Output,
    y: Output,
    w: Variable,
    loss: Output,
}

fn model(scope: &Scope, kind: Kind) -> Model {
    let (x, y) = (scope.placeholder(DType::F32, &[-1, 2]), scope.placeholder(DType::F32, &[-1, 1]));
    let first = Initializer::Value([[0.1f32], [-0.3]].into());
    let w = Variable::builder(scope, "w").initializer(first).kind(kind).build();
    let b = Variable::builder(scope, "b").shape([1]).kind(kind).build();
    let loss = (x.matmul(&w) + &b - &y).square().mean();
    Model { x, y, w, loss }
}

/// What one worker with all the examples learns.
fn alone(kind: Kind) -> Vec<f32> {
    let graph = graph();
    let model = model(&graph.root(), kind);
    let train = Optimizer::new(Momentum::new(0.1, 0.9)).minimize(&model.loss).unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    for step in 0..STEPS {
        let (x, y) = example(step);
        let (x, y) = tensors(&x, &y);
        session.execute_with(&train, feeds! { &model.x => x, &model.y => y }).unwrap();
    }
    session.run(&model.w).unwrap()
}

/// The graph of a worker, with variables on this number of ps tasks.
fn built(
    index: usize,
    ps_tasks: usize,
    kind: Kind,
    optimizer: SyncReplicasOptimizer,
) -> (Graph, Model, Variable, SyncReplicas) {
    let graph = graph();
    let worker = format!("/job:worker/task:{index}");
    let scope = replica_device_setter(ps_tasks).worker_device(&worker).on(&graph.root());
    let step = create_global_step_in(&scope).unwrap();
    let model = model(&scope, kind);
    let sync = optimizer.worker(&scope).minimize(&model.loss).unwrap();
    (graph, model, step, sync)
}

struct Replica {
    index: usize,
    graph: Graph,
    model: Model,
    step: Variable,
    sync: SyncReplicas,
    session: Arc<Session>,
    coordinator: Coordinator,
}

impl Replica {
    fn open(cluster: &LocalCluster, index: usize, kind: Kind, optimizer: SyncReplicasOptimizer) -> Replica {
        let (graph, model, step, sync) = built(index, 1, kind, optimizer);
        let session = Arc::new(Session::connect(&cluster.targets("worker")[index], &graph).unwrap());
        Replica { index, graph, model, step, sync, session, coordinator: Coordinator::new() }
    }

    /// What a worker does before its first step.
    fn begin(&self, tokens: Option<usize>) {
        if self.index == 0 {
            let tokens = self.sync.init_tokens_op(tokens).unwrap();
            self.session.execute(&global_variables_initializer(&self.graph)).unwrap();
            self.session.execute(&self.sync.chief_init_op).unwrap();
            self.session.execute(&tokens).unwrap();
            self.sync.chief_queue_runner.start(&self.session, &self.coordinator).unwrap();
        } else {
            let missing: Vec<String> = self.session.run(&self.sync.ready_for_local_init_op).unwrap();
            assert_eq!(missing, Vec::<String>::new());
            self.session.execute(&self.sync.local_step_init_op).unwrap();
        }
    }

    fn train(&self, step: usize) {
        let (x, y) = half(step, self.index);
        self.session.execute_with(&self.sync.train_op, feeds! { &self.model.x => x, &self.model.y => y }).unwrap();
    }

    fn steps(&self) -> i64 {
        self.session.run(&self.step).unwrap()
    }

    fn weights(&self) -> Vec<f32> {
        self.session.run(&self.model.w).unwrap()
    }

    fn end(self) {
        self.coordinator.request_stop();
        self.session.close().unwrap();
        self.coordinator.join().unwrap();
    }
}

fn momentum(replicas: usize) -> SyncReplicasOptimizer {
    SyncReplicasOptimizer::new(Optimizer::new(Momentum::new(0.1, 0.9)), replicas)
}

fn pair(cluster: &LocalCluster, kind: Kind) -> [Replica; 2] {
    [0, 1].map(|index| Replica::open(cluster, index, kind, momentum(2)))
}

fn assert_close(found: &[f32], wanted: &[f32]) {
    let close = found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-6);
    assert!(close, "{found:?} instead of {wanted:?}");
}

#[test]
fn two_workers_are_as_one() {
    for kind in [Kind::Resource, Kind::Reference] {
        let cluster = start(SyncPolicy::Tf, 2);
        let replicas = pair(&cluster, kind);
        // Without tokens to begin with, and in step, TensorFlow's rule gives each worker one gradient for each step.
        replicas.iter().for_each(|replica| replica.begin(Some(0)));
        in_step(&replicas);
        assert_eq!(replicas[1].steps(), STEPS as i64);
        assert_close(&replicas[0].weights(), &alone(kind));
        let counters = [GradientOutcome::Accepted, GradientOutcome::Stale, GradientOutcome::Dropped].map(|fate| {
            let counter = replicas[0].sync.counter(fate).unwrap();
            replicas[0].session.run::<i64>(&counter).unwrap()
        });
        // Two variables, two workers.
        assert_eq!(counters, [4 * STEPS as i64, 0, 0]);
        replicas.into_iter().rev().for_each(Replica::end);
    }
}

/// All steps; each begins when the last is over for all.
fn in_step(replicas: &[Replica]) {
    for step in 0..STEPS {
        std::thread::scope(|threads| {
            replicas.iter().for_each(|replica| drop(threads.spawn(move || replica.train(step))));
        });
    }
}

#[test]
fn a_second_job_begins_on_the_same_ps() {
    for policy in [SyncPolicy::Tf, SyncPolicy::Exact, SyncPolicy::Shrink] {
        let cluster = start(policy, 2);
        for _ in 0..2 {
            let replicas = pair(&cluster, Kind::Resource);
            replicas.iter().for_each(|replica| replica.begin(Some(0)));
            in_step(&replicas);
            assert_eq!(replicas[1].steps(), STEPS as i64, "{policy:?}");
            assert_close(&replicas[0].weights(), &alone(Kind::Resource));
            replicas.into_iter().rev().for_each(Replica::end);
        }
    }
}

#[test]
fn exact_workers_need_no_lockstep() {
    let cluster = start(SyncPolicy::Exact, 2);
    let replicas = pair(&cluster, Kind::Resource);
    replicas.iter().for_each(|replica| replica.begin(None));
    std::thread::scope(|threads| {
        for replica in &replicas {
            threads.spawn(move || (0..STEPS).for_each(|step| replica.train(step)));
        }
    });
    assert_eq!(replicas[1].steps(), STEPS as i64);
    assert_close(&replicas[0].weights(), &alone(Kind::Resource));
    replicas.into_iter().rev().for_each(Replica::end);
}

#[test]
fn monitored_sessions_step_together() {
    let cluster = start(SyncPolicy::Exact, 2);
    let work = |index: usize| {
        let replica = Replica::open(&cluster, index, Kind::Resource, momentum(2));
        let hook = match index {
            0 => Synchronous::chief(&replica.sync).unwrap(),
            _ => Synchronous::worker(&replica.sync),
        };
        let session = MonitoredTrainingSession::new(&replica.graph).master(&cluster.targets("worker")[index]);
        let session = session.is_chief(index == 0).recovery_wait(Duration::from_millis(10)).hook(hook);
        let mut session = session.start().unwrap();
        for step in 0..STEPS {
            let (x, y) = half(step, index);
            session
                .run_with::<()>(&replica.sync.train_op, feeds! { &replica.model.x => x, &replica.model.y => y })
                .unwrap();
        }
        let weights: Vec<f32> = session.run(&replica.model.w).unwrap();
        session.close().unwrap();
        weights
    };
    std::thread::scope(|threads| {
        let other = threads.spawn(|| work(1));
        assert_close(&work(0), &alone(Kind::Resource));
        assert_close(&other.join().unwrap(), &alone(Kind::Resource));
    });
}

#[test]
fn a_job_goes_on_after_another_ps_was_lost() {
    // The step counter, the tokens and `b` are on one ps, which stays; `w` is on the other.
    let (folder, exact) = (Folder::new(), |options| small(options, SyncPolicy::Exact));
    let mut cluster = LocalCluster::start_with(&[("ps", 2), ("worker", 2)], exact).unwrap();
    let (targets, meet) = (cluster.targets("worker"), Barrier::new(3));
    let work = |index: usize| {
        let (graph, model, _, sync) = built(index, 2, Kind::Resource, momentum(2));
        let hook = match index {
            0 => Synchronous::chief(&sync).unwrap(),
            _ => Synchronous::worker(&sync),
        };
        let session = MonitoredTrainingSession::new(&graph).master(&targets[index]).is_chief(index == 0).hook(hook);
        let session = session.checkpoint_dir(&folder.0).save_checkpoint(Every::Steps(1)).save_in_background(false);
        let mut session = session.recovery_wait(Duration::from_millis(20)).start().unwrap();
        for step in 0..STEPS {
            if step == 3 {
                meet.wait();
                meet.wait();
            }
            let (x, y) = half(step, index);
            session.run_with::<()>(&sync.train_op, feeds! { &model.x => x, &model.y => y }).unwrap();
        }
        let weights: Vec<f32> = session.run(&model.w).unwrap();
        session.close().unwrap();
        weights
    };
    std::thread::scope(|threads| {
        let work = &work;
        let workers = [0, 1].map(|index| threads.spawn(move || work(index)));
        meet.wait();
        assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(folder.join("model.ckpt-3")));
        cluster.stop("ps", 1);
        let task = Task { job: "ps".to_string(), index: 1 };
        let _again = Server::start(exact(ServerOptions::new(cluster.cluster().clone(), task))).unwrap();
        meet.wait();
        for worker in workers {
            assert_close(&worker.join().unwrap(), &alone(Kind::Resource));
        }
    });
}

#[test]
fn a_lone_worker_makes_no_exact_step() {
    let cluster = start(SyncPolicy::Exact, 2);
    let [chief, other] = pair(&cluster, Kind::Resource);
    chief.begin(None);
    std::thread::scope(|threads| {
        let lone = threads.spawn(|| chief.train(0));
        let accepted = chief.sync.counter(GradientOutcome::Accepted).unwrap();
        while chief.session.run::<i64>(&accepted).unwrap() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(chief.steps(), 0);
        assert!(!lone.is_finished());
        other.begin(None);
        other.train(0);
    });
    assert_eq!(chief.steps(), 1);
    other.end();
    chief.end();
}

#[test]
fn a_worker_that_left_before_its_first_gradient_is_waited_for() {
    let cluster = start(SyncPolicy::Shrink, 2);
    let [chief, other] = pair(&cluster, Kind::Resource);
    [&chief, &other].into_iter().for_each(|replica| replica.begin(None));
    other.end();
    let again = Replica::open(&cluster, 1, Kind::Resource, momentum(2));
    std::thread::scope(|threads| {
        let lone = threads.spawn(|| chief.train(0));
        let accepted = chief.sync.counter(GradientOutcome::Accepted).unwrap();
        while chief.session.run::<i64>(&accepted).unwrap() < 2 {
            std::thread::yield_now();
        }
        assert!(!lone.is_finished());
        again.begin(None);
        again.train(0);
    });
    assert_eq!(chief.steps(), 1);
    again.end();
    chief.end();
}

#[test]
fn no_worker_waits_for_one_that_left() {
    let cluster = start(SyncPolicy::Shrink, 2);
    let [chief, other] = pair(&cluster, Kind::Resource);
    [&chief, &other].into_iter().for_each(|replica| replica.begin(None));
    std::thread::scope(|threads| {
        [&chief, &other].into_iter().for_each(|replica| drop(threads.spawn(|| replica.train(0))));
    });
    other.end();
    (1..4).for_each(|step| chief.train(step));
    assert_eq!(chief.steps(), 4);
    // A worker that comes back from the same task is waited for again.
    let again = Replica::open(&cluster, 1, Kind::Resource, momentum(2));
    again.begin(None);
    std::thread::scope(|threads| {
        [&chief, &again].into_iter().for_each(|replica| drop(threads.spawn(|| replica.train(4))));
    });
    assert_eq!(chief.steps(), 5);
    again.end();
    chief.end();
}

#[test]
fn no_worker_waits_for_one_that_died() {
    let mut cluster = start(SyncPolicy::Shrink, 2);
    let [chief, other] = pair(&cluster, Kind::Resource);
    [&chief, &other].into_iter().for_each(|replica| replica.begin(None));
    std::thread::scope(|threads| {
        [&chief, &other].into_iter().for_each(|replica| drop(threads.spawn(|| replica.train(0))));
    });
    // Its server goes away without a word to the ps.
    cluster.stop("worker", 1);
    (1..4).for_each(|step| chief.train(step));
    assert_eq!(chief.steps(), 4);
    chief.end();
}

#[test]
fn one_worker_can_give_several_gradients() {
    give_several(|w| vec![w.clone()]);
}

#[test]
fn all_trainable_variables_are_averaged_if_none_are_named() {
    give_several(|_| Vec::new());
}

/// One worker makes a step of two gradients, and the average of its weight follows.
fn give_several(averaged: impl FnOnce(&Variable) -> Vec<Variable>) {
    let cluster = start(SyncPolicy::Tf, 1);
    let graph = graph();
    let root = graph.root();
    let step = create_global_step(&graph).unwrap();
    let x = root.placeholder(DType::F32, &[]);
    let w = Variable::builder(&root, "w").initializer(Initializer::Constant(10.0)).build();
    let averages = ExponentialMovingAverage::new(0.5);
    let optimizer = SyncReplicasOptimizer::new(Optimizer::new(GradientDescent::new(1.0)), 2).total_num_replicas(1);
    let optimizer = optimizer.averages(averages, &averaged(&w));
    let sync = optimizer.minimize(&(w.value() * &x)).unwrap();
    assert!(sync.init_tokens_op(Some(0)).is_err());
    let tokens = sync.init_tokens_op(None).unwrap();
    let average = optimizer.average(&w).unwrap();
    assert!(optimizer.average(&step).is_none());
    let session = Arc::new(Session::connect(&cluster.targets("worker")[0], &graph).unwrap());
    session.execute(&global_variables_initializer(&graph)).unwrap();
    session.execute(&sync.chief_init_op).unwrap();
    session.execute(&tokens).unwrap();
    let coordinator = Coordinator::new();
    sync.chief_queue_runner.start(&session, &coordinator).unwrap();
    for gradient in [1f32, 3.0] {
        session.execute_with(&sync.train_op, feeds! { &x => gradient }).unwrap();
    }
    while session.run::<i64>(&step).unwrap() == 0 {
        std::thread::yield_now();
    }
    // Its token is the second of step 0: it is too late.
    session.execute_with(&sync.train_op, feeds! { &x => 100f32 }).unwrap();
    let follow = || session.run::<(f32, f32)>((&w, &average)).unwrap();
    // The average follows after the tokens were given.
    while follow() != (8.0, 9.0) {
        assert_eq!(follow().0, 8.0);
        std::thread::yield_now();
    }
    coordinator.request_stop();
    session.close().unwrap();
    coordinator.join().unwrap();
}

/// A replica of three whose gradient is what is fed; two are averaged.
struct Scalar {
    x: Output,
    w: Variable,
    step: Variable,
    sync: SyncReplicas,
    session: Arc<Session>,
    coordinator: Coordinator,
}

impl Scalar {
    fn open(cluster: &LocalCluster, index: usize) -> Scalar {
        let graph = graph();
        let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{index}")).on(&graph.root());
        let step = Variable::builder(&scope, "global_step").dtype(DType::I64).trainable(false).build();
        let x = scope.placeholder(DType::F32, &[]);
        let w = Variable::builder(&scope, "w").initializer(Initializer::Constant(10.0)).build();
        let optimizer = SyncReplicasOptimizer::new(Optimizer::new(GradientDescent::new(1.0)), 2).total_num_replicas(3);
        let optimizer = optimizer.worker(&scope);
        let sync = optimizer.minimize_with(&(w.value() * &x), MinimizeOptions::new().step(&step)).unwrap();
        let session = Arc::new(Session::connect(&cluster.targets("worker")[index], &graph).unwrap());
        let coordinator = Coordinator::new();
        if index == 0 {
            session.execute(&global_variables_initializer(&graph)).unwrap();
            session.execute(&sync.chief_init_op).unwrap();
            sync.chief_queue_runner.start(&session, &coordinator).unwrap();
        } else {
            session.execute(&sync.local_step_init_op).unwrap();
        }
        Scalar { x, w, step, sync, session, coordinator }
    }

    fn train(&self, gradient: f32) {
        self.session.execute_with(&self.sync.train_op, feeds! { &self.x => gradient }).unwrap();
    }

    fn arrived(&self, fate: GradientOutcome) -> i64 {
        self.session.run(&self.sync.counter(fate).unwrap()).unwrap()
    }
}

#[test]
fn the_gradient_of_a_backup_worker_comes_too_late() {
    let cluster = start(SyncPolicy::Tf, 3);
    let replicas: Vec<Scalar> = (0..3).map(|index| Scalar::open(&cluster, index)).collect();
    // In each step another one is late, and the mean of the others' gradients is 2, 3, 4.
    let mut wanted = 10.0;
    for (number, mean) in [2f32, 3.0, 4.0].into_iter().enumerate() {
        let late = (number + 2) % 3;
        std::thread::scope(|threads| {
            for (gradient, index) in [mean - 1.0, mean + 1.0].into_iter().zip((0..3).filter(|&index| index != late)) {
                let replica = &replicas[index];
                threads.spawn(move || replica.train(gradient));
            }
        });
        replicas[late].train(100.0);
        wanted -= mean;
        let found: (f32, i64) = replicas[late].session.run((&replicas[late].w, &replicas[late].step)).unwrap();
        assert_eq!(found, (wanted, number as i64 + 1));
    }
    let fates = [GradientOutcome::Accepted, GradientOutcome::Stale, GradientOutcome::Dropped]
        .map(|fate| replicas[0].arrived(fate));
    assert_eq!(fates, [6, 3, 0]);
    for replica in replicas.into_iter().rev() {
        replica.coordinator.request_stop();
        replica.session.close().unwrap();
        replica.coordinator.join().unwrap();
    }
}

#[test]
fn rows_are_averaged_over_those_who_have_them() {
    let cluster = start(SyncPolicy::Exact, 2);
    let replicas: Vec<_> = (0..2).map(|index| rows(&cluster, index)).collect();
    std::thread::scope(|threads| {
        for (session, sync, ..) in &replicas {
            threads.spawn(|| session.execute(&sync.train_op).unwrap());
        }
    });
    let found: Vec<f32> = replicas[0].0.run(&replicas[0].2).unwrap();
    // Row 1 of both, twice in the second; rows 0 and 3 of one each.
    assert_eq!(found, [-1.0, -1.5, 0.0, -1.0]);
    for (session, _, _, coordinator) in replicas {
        coordinator.request_stop();
        session.close().unwrap();
        coordinator.join().unwrap();
    }
}

/// A replica that picks rows 3 and 1, or 1, 0 and 1.
fn rows(cluster: &LocalCluster, index: usize) -> (Arc<Session>, SyncReplicas, Variable, Coordinator) {
    let graph = graph();
    let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{index}")).on(&graph.root());
    let step = Variable::builder(&scope, "global_step").dtype(DType::I64).trainable(false).build();
    let table = Variable::builder(&scope, "table").shape([4, 1]).build();
    let picked: &[i32] = if index == 0 { &[3, 1] } else { &[1, 0, 1] };
    let loss = table.gather(&scope.constant(picked)).sum();
    let optimizer = SyncReplicasOptimizer::new(Optimizer::new(GradientDescent::new(1.0)), 2);
    let sync = optimizer.worker(&scope).minimize_with(&loss, MinimizeOptions::new().step(&step)).unwrap();
    let session = Arc::new(Session::connect(&cluster.targets("worker")[index], &graph).unwrap());
    let coordinator = Coordinator::new();
    if index == 0 {
        session.execute(&global_variables_initializer(&graph)).unwrap();
        session.execute(&sync.chief_init_op).unwrap();
        sync.chief_queue_runner.start(&session, &coordinator).unwrap();
    } else {
        session.execute(&sync.local_step_init_op).unwrap();
    }
    (session, sync, table, coordinator)
}
