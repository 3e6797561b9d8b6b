//! Monitored sessions: hooks around steps, and servers of one cluster that come and go.

use super::log::warnings;
use super::{Folder, counting, graph};
use crate::hooks::{
    CheckpointSaver, CheckpointSaverListener, Every, FeedFn, FinalOps, GlobalStepWaiter, LoggingTensor,
};
use crate::hooks::{NanTensor, StepCounter, StopAtStep, Timer};
use crate::monitored::{
    ChiefSessionCreator, MonitoredSession, RunArgs, RunContext, RunValues, SessionContext, SessionRunHook,
    SingularMonitoredSession,
};
use crate::{MonitoredTrainingSession, Saver, create_global_step_in, latest_checkpoint, replica_device_setter};
use graph::{Graph, Output};
use layers::{Initializer, ScopeOps, TensorOps, Variable};
use parking_lot::Mutex;
use session::{LocalCluster, Session, feeds};
use status::{Code, Error, Result};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tensor::DType;

/// Notes what it is called for.
#[derive(Clone)]
struct RecordingHook(Arc<Mutex<Vec<String>>>, Output);

impl RecordingHook {
    fn note(&self, what: impl Into<String>) -> Result<()> {
        self.0.lock().push(what.into());
        Ok(())
    }
}

impl SessionRunHook for RecordingHook {
    fn begin(&mut self, graph: &Graph) -> Result<()> {
        graph.root().op("NoOp").named("made_in_begin").node();
        self.note("begin")
    }

    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        context.session().execute("made_in_begin")?;
        self.note("after_create_session")
    }

    fn before_run(&mut self, context: &RunContext<'_>) -> Result<RunArgs> {
        self.note(format!("before_run of {}", context.original_args().fetches.len()))?;
        Ok(RunArgs::fetch(&self.1))
    }

    fn after_run(&mut self, _: &RunContext<'_>, values: &RunValues) -> Result<()> {
        self.note(format!("after_run {}", values.get::<f32>(0)?))
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        self.note(format!("end {}", session.run::<i64>("global_step/Read/ReadVariableOp:0")?))
    }
}

#[test]
fn hooks_are_called_in_order() {
    let (graph, next, square) = counting();
    let notes = Arc::default();
    let session = MonitoredTrainingSession::new(&graph)
        .hook(RecordingHook(Arc::clone(&notes), square.clone()))
        .hook(StopAtStep::last_step(2))
        .start()
        .unwrap();
    session
        .until_stop(|session| {
            session.run::<((), f32)>((&next, &square))?;
            Ok(())
        })
        .unwrap();
    let wanted =
        ["begin", "after_create_session", "before_run of 2", "after_run 0", "before_run of 2", "after_run 1", "end 2"];
    assert_eq!(*notes.lock(), wanted);
    graph.root().constant(1f32);
    assert_eq!(graph.check().unwrap_err().message, "Graph is finalized and cannot be modified.");
}

#[test]
fn hooks_do_not_end_after_an_error() {
    let (graph, _, square) = counting();
    let bad = graph.root().op("CheckNumerics").input(&(&square / 0.0)).attr("message", "here").output();
    let notes = Arc::default();
    let hook = RecordingHook(Arc::clone(&notes), square.clone());
    let session = MonitoredTrainingSession::new(&graph).hook(hook).start().unwrap();
    let error = session.until_stop(|session| session.run(&bad)).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert_eq!(notes.lock().last().unwrap(), "before_run of 1");
}

#[test]
fn the_end_of_the_input_is_no_error() {
    let (graph, next, _) = counting();
    let mut left = 3;
    let x = graph.root().placeholder(DType::F32, &[]);
    let fed = x.clone();
    let hook = FeedFn::new(move || {
        left -= 1;
        match left {
            0 => Err(Error::new(Code::OutOfRange, "end of sequence")),
            left => Ok(feeds! { &fed => left as f32 }),
        }
    });
    let last = Arc::new(Mutex::new(FinalOps::new([crate::get_global_step(&graph).unwrap().value()])));
    let session = MonitoredTrainingSession::new(&graph).hook(hook).hook(last.clone()).start().unwrap();
    let mut seen = Vec::new();
    let run = |session: &mut MonitoredSession| {
        seen.push(session.run::<(f32, ())>((&x, &next))?.0);
        Ok(())
    };
    session.until_stop(run).unwrap();
    assert_eq!(seen, [2.0, 1.0]);
    assert_eq!(last.lock().value::<i64>(0).unwrap(), 2);
}

#[test]
fn a_tensor_is_fed_by_one_only() {
    let feeding = |x: &Output| {
        let x = x.clone();
        FeedFn::new(move || Ok(feeds! { &x => 1f32 }))
    };
    let (graph, _, _) = counting();
    let x = graph.root().placeholder(DType::F32, &[]);
    let mut one = MonitoredTrainingSession::new(&graph).hook(feeding(&x)).start().unwrap();
    let error = one.run_with::<f32>(&x, feeds! { &x => 2f32 }).unwrap_err();
    assert!(error.message.starts_with("Same tensor is fed by a SessionRunHook and user."), "{error}");
    let session = MonitoredTrainingSession::new(&graph).hook(feeding(&x)).hook(feeding(&x));
    let error = session.start().unwrap().run::<f32>(&x).unwrap_err();
    assert!(error.message.starts_with("Same tensor is fed by two hooks."), "{error}");
}

#[test]
fn a_step_function_chooses_which_steps_have_hooks() {
    let (graph, next, square) = counting();
    let notes = Arc::default();
    let hooks: Vec<Box<dyn SessionRunHook>> = vec![Box::new(RecordingHook(Arc::clone(&notes), square.clone()))];
    let mut session = SingularMonitoredSession::new(ChiefSessionCreator::new(&graph), hooks).unwrap();
    let found: f32 = session
        .run_step_fn(|step| {
            step.session().execute(&next)?;
            step.request_stop();
            step.run_with_hooks(&square, feeds! {})
        })
        .unwrap();
    assert_eq!(found, 1.0);
    assert!(session.should_stop());
    assert_eq!(notes.lock()[2..], ["before_run of 1", "after_run 1"]);
    session.close().unwrap();
}

#[test]
fn not_a_number_ends_training() {
    for fails in [true, false] {
        let (graph, _, square) = counting();
        let bad = (&square - 1.0).log();
        let hook = if fails { NanTensor::new(&bad) } else { NanTensor::without_error(&bad) };
        let session = MonitoredTrainingSession::new(&graph).hook(hook).start().unwrap();
        let result = session.until_stop(|session| session.run(&square));
        match fails {
            true => assert_eq!(result.unwrap_err().message, "NaN loss during training."),
            false => result.unwrap(),
        }
    }
}

#[test]
fn any_float_may_be_no_number() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::I32] {
        let (graph, _, square) = counting();
        // The logarithm of -1, or 0 if that must be an integer.
        let loss = if dtype == DType::I32 { square.cast(dtype) } else { (&square - 1.0).log().cast(dtype) };
        let mut session = MonitoredTrainingSession::new(&graph).hook(NanTensor::new(&loss)).start().unwrap();
        let found = session.run::<f32>(&square).map_err(|error| error.message);
        let wanted = if dtype == DType::I32 { Ok(0.0) } else { Err("NaN loss during training.".to_string()) };
        assert_eq!(found, wanted, "{dtype:?}");
    }
}

#[test]
fn who_logs_says_when() {
    let begin = |change: fn(LoggingTensor) -> LoggingTensor, every: Option<Every>| {
        let (graph, _, square) = counting();
        let hook = change(LoggingTensor::new([("loss", &square)], every));
        MonitoredTrainingSession::new(&graph).hook(hook).start().map(drop).map_err(|error| error.message)
    };
    let neither = "either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.";
    assert_eq!(begin(|hook| hook, None), Err(neither.to_string()));
    assert_eq!(begin(|hook| hook, Some(Every::Steps(0))), Err("invalid every_n_iter=0.".to_string()));
    assert_eq!(begin(|hook| hook.at_end(), None), Ok(()));
}

#[test]
fn lines_may_be_made_by_others() {
    let (graph, next, square) = counting();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let hook = LoggingTensor::new([("loss", &square), ("again", &square)], Every::Steps(1)).at_end();
    let hook = hook.formatter(|values| {
        let told = values.iter().map(|(tag, value)| format!("{tag}: {:?}", value.to_scalar::<f32>().unwrap()));
        told.collect::<Vec<_>>().join("; ")
    });
    let hook = hook.sink(move |line| sink.lock().push(line.to_string()));
    let session = MonitoredTrainingSession::new(&graph).hook(hook).hook(StopAtStep::num_steps(2)).start().unwrap();
    session.until_stop(|session| session.run(&next)).unwrap();
    assert_eq!(*lines.lock(), ["loss: 0.0; again: 0.0", "loss: 1.0; again: 1.0", "loss: 4.0; again: 4.0"]);
}

#[test]
fn a_step_counter_that_stands_still_is_told() {
    let (graph, _, square) = counting();
    let hook = StepCounter::new(Every::Steps(100), None);
    let mut session = MonitoredTrainingSession::new(&graph).hook(hook).start().unwrap();
    let ((), lines) = warnings(|| (0..9).for_each(|_| session.run(&square).unwrap()));
    let wanted = "It seems that global step (tf.train.get_global_step) has not been increased. Current value (could be \
                  stable): 0 vs previous value: 0. You could increase the global step by passing \
                  tf.train.get_global_step() to Optimizer.apply_gradients or Optimizer.minimize.";
    assert_eq!(lines, [wanted; 5]);
}

/// Counts how often it begins.
struct Beginning(Arc<Mutex<usize>>);

impl SessionRunHook for Beginning {
    fn begin(&mut self, _: &Graph) -> Result<()> {
        *self.0.lock() += 1;
        Ok(())
    }
}

#[test]
fn some_hooks_are_for_the_chief_only() {
    for (is_chief, wanted) in [(true, (1, 1)), (false, (1, 0))] {
        let graph = graph();
        let (all, chiefs): (Arc<Mutex<usize>>, Arc<Mutex<usize>>) = Default::default();
        let session = MonitoredTrainingSession::new(&graph).is_chief(is_chief);
        let session = session.hook(Beginning(all.clone())).chief_only_hook(Beginning(chiefs.clone()));
        session.start().unwrap().close().unwrap();
        assert_eq!((*all.lock(), *chiefs.lock()), wanted);
    }
}

/// Starts a thread that hears no stop.
struct BlockedHook(Option<std::sync::mpsc::Receiver<()>>);

impl SessionRunHook for BlockedHook {
    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        let released = self.0.take();
        context.coordinator().spawn("deaf", move |_| {
            let _ = released.map(|released| released.recv());
            Ok(())
        })
    }
}

/// With the two minutes that threads have otherwise, the thread would have to end before the session could.
#[test]
fn threads_have_as_long_as_was_said() {
    let deaf = || {
        let (release, released) = std::sync::mpsc::channel();
        let hooks: Vec<Box<dyn SessionRunHook>> = vec![Box::new(BlockedHook(Some(released)))];
        (release, hooks)
    };
    let (release, hooks) = deaf();
    let session = MonitoredSession::new(ChiefSessionCreator::new(&counting().0), hooks).unwrap();
    session.stop_grace(Duration::ZERO).close().unwrap();
    release.send(()).unwrap();
    let (release, hooks) = deaf();
    let session = SingularMonitoredSession::new(ChiefSessionCreator::new(&counting().0), hooks).unwrap();
    session.stop_grace(Duration::ZERO).close().unwrap();
    release.send(()).unwrap();
}

#[test]
fn values_are_logged() {
    let (graph, next, square) = counting();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let hook = LoggingTensor::new([("loss", &square)], Every::Steps(2)).at_end();
    let hook = hook.sink(move |line| sink.lock().push(line.split(" (").next().unwrap().to_string()));
    let session = MonitoredTrainingSession::new(&graph).hook(hook).hook(StopAtStep::num_steps(4)).start().unwrap();
    session.until_stop(|session| session.run(&next)).unwrap();
    assert_eq!(*lines.lock(), ["loss = 0.0", "loss = 4.0", "loss = 16.0"]);
}

#[test]
fn time_and_steps_make_something_due() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let mut steps = Timer::new(Every::Steps(10));
    assert!(steps.is_due_at(5, now));
    assert_eq!(steps.done_at(5, now), None);
    assert!(!steps.is_due_at(14, now + 99 * second));
    assert!(steps.is_due_at(15, now));
    assert_eq!(steps.done_at(15, now + second), Some((10, second)));
    let mut time = Timer::new(Every::Time(10 * second));
    time.done_at(5, now);
    assert!(!time.is_due_at(99, now + 9 * second));
    assert!(time.is_due_at(99, now + 10 * second));
    assert!(!time.is_due_at(5, now + 10 * second));
}

/// Notes the steps at which checkpoints are written, and stops after some.
struct Listening(Arc<Mutex<Vec<i64>>>, usize);

impl CheckpointSaverListener for Listening {
    fn after_save(&mut self, _: &Session, step: i64) -> Result<bool> {
        self.0.lock().push(step);
        Ok(self.0.lock().len() == self.1)
    }
}

#[test]
fn checkpoints_are_written_as_training_goes_on() {
    let folder = Folder::new();
    let (graph, next, _) = counting();
    let saved = Arc::default();
    let saver = Arc::new(Saver::builder(&graph).sharded(true).build().unwrap());
    let hook = CheckpointSaver::new(&folder.0, Every::Steps(3), saver).listener(Listening(Arc::clone(&saved), 3));
    let hook = hook.in_background(false);
    let session = MonitoredTrainingSession::new(&graph).hook(hook).start().unwrap();
    session.until_stop(|session| session.run(&next)).unwrap();
    // At first, every three steps, and no more at the end: nothing has changed since.
    assert_eq!(*saved.lock(), [0, 3, 6]);
    assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(folder.join("model.ckpt-6")));
}

#[test]
fn a_training_program_goes_on_where_it_ended() {
    let folder = Folder::new();
    for last in [3, 5] {
        let (graph, next, square) = counting();
        let session = MonitoredTrainingSession::new(&graph)
            .checkpoint_dir(&folder.0)
            .hook(StopAtStep::last_step(last))
            .hook(StepCounter::new(Every::Steps(1), None))
            .start()
            .unwrap();
        assert_eq!(session.last_step(), Some(if last == 3 { 0 } else { 3 }));
        session.until_stop(|session| session.run((&next, &square)).map(|((), _): ((), f32)| ())).unwrap();
        assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(folder.join(&format!("model.ckpt-{last}"))));
    }
    let files: Vec<String> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert!(files.iter().any(|file| file.starts_with("events.out.tfevents.")), "{files:?}");
    assert!(files.contains(&"graph.pbtxt".to_string()), "{files:?}");
}

#[test]
fn a_worker_begins_when_the_step_counter_is_far_enough() {
    let cluster = LocalCluster::start(&[("ps", 1), ("worker", 2)]).unwrap();
    let targets = cluster.targets("worker");
    let counting = |worker: usize| {
        let graph = graph();
        let scope = replica_device_setter(1).worker_device(&format!("/job:worker/task:{worker}")).on(&graph.root());
        let step = create_global_step_in(&scope).unwrap();
        let next = step.assign_add(&scope.constant(1i64));
        (graph, step, next)
    };
    let (graph, _, next) = counting(0);
    let mut chief = MonitoredTrainingSession::new(&graph).master(&targets[0]).start().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        let late = threads.spawn(|| {
            let (graph, step, _) = counting(1);
            let worker = MonitoredTrainingSession::new(&graph).master(&targets[1]).is_chief(false);
            let worker = worker.hook(FeedFn::new(move || {
                let _ = tell.send(());
                Ok(feeds! {})
            }));
            let worker = worker.hook(GlobalStepWaiter::new(3).wait(Duration::from_millis(1)));
            worker.start().unwrap().run::<i64>(&step).unwrap()
        });
        told.recv().unwrap();
        // It waits from now on.
        for _ in 0..3 {
            assert!(!late.is_finished());
            chief.run::<()>(&next).unwrap();
        }
        assert_eq!(late.join().unwrap(), 3);
    });
}

#[test]
fn a_model_that_is_not_ready_says_what_is_missing() {
    let (graph, _, _) = counting();
    Variable::builder(&graph.root(), "w").initializer(Initializer::Zeros).build();
    let creator = crate::monitored::WorkerSessionCreator::new(&graph)
        .max_wait(Some(Duration::from_millis(20)))
        .recovery_wait(Duration::from_millis(5));
    let error = MonitoredSession::new(creator, Vec::new()).err().unwrap();
    assert_eq!(error.code, Code::DeadlineExceeded);
    assert!(error.message.contains("Session was not ready after waiting"), "{error}");
    assert!(error.message.contains("Variables not initialized: global_step, w"), "{error}");
}
