//! Checkpoints that are written while steps go on: of one moment, one at a time, and with errors that are told.

use super::graph;
use crate::hooks::{CheckpointSaver, CheckpointSaverListener, Every};
use crate::monitored::{SessionContext, SessionRunHook};
use crate::{MonitoredSession, MonitoredTrainingSession, Saver, Scaffold, create_global_step_in, latest_checkpoint_on};
use checkpoint::saver::Progress;
use graph::{Graph, Node};
use io::fs::{FileStat, MemoryFileSystem, RandomAccessFile, WritableFile};
use io::{Bundle, CheckpointState, FileSystem, FileSystems};
use layers::{Kind, ScopeOps, Variable};
use parking_lot::{Condvar, Mutex};
use session::{Extensions, LocalCluster, ServerOptions, Session, SessionConfig};
use status::Result;
use std::sync::Arc;

/// Files in memory. Those of a checkpoint's data wait at a gate.
#[derive(Default)]
struct Held {
    files: MemoryFileSystem,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Gate {
    #[default]
    Closed,
    Open,
    Broken,
    /// Broken for one of those that wait, then open.
    BrokenOnce,
}

impl Held {
    fn set(&self, gate: Gate) {
        *self.gate.lock() = gate;
        self.changed.notify_all();
    }
}

/// Breaks the gate when it goes: a session that is dropped because a test fails would wait for its checkpoint for ever.
/// Made after the session, it goes first.
struct Release(Arc<Held>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.set(Gate::Broken);
    }
}

impl FileSystem for Held {
    fn open(&self, path: &str) -> Result<Arc<dyn RandomAccessFile>> {
        self.files.open(path)
    }

    fn create(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        let mut gate = self.gate.lock();
        while path.contains(".data-") && *gate == Gate::Closed {
            self.changed.wait(&mut gate);
        }
        let broken = match *gate {
            Gate::Closed | Gate::Open => false,
            Gate::Broken => true,
            Gate::BrokenOnce => path.contains(".data-"),
        };
        if !broken {
            return self.files.create(path);
        }
        if *gate == Gate::BrokenOnce {
            *gate = Gate::Open;
        }
        Err(status::internal!("the disk is full"))
    }

    fn append(&self, path: &str) -> Result<Box<dyn WritableFile>> {
        self.files.append(path)
    }

    fn stat(&self, path: &str) -> Result<FileStat> {
        self.files.stat(path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.files.list(folder)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.files.delete(path)
    }

    fn create_dir(&self, path: &str) -> Result<()> {
        self.files.create_dir(path)
    }

    fn delete_dir(&self, path: &str) -> Result<()> {
        self.files.delete_dir(path)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.files.rename(from, to)
    }
}

/// A step counter and a variable on other devices; a step adds one to both.
fn counting(kind: Kind, devices: [&str; 2]) -> (Graph, Node) {
    let graph = graph();
    let on = |device: &str| if device.is_empty() { graph.root() } else { graph.root().on(device) };
    let step = create_global_step_in(&on(devices[0])).unwrap();
    let w = Variable::builder(&on(devices[1]), "w").shape([2]).kind(kind).build();
    let next = step.assign_add(&on(devices[0]).constant(1i64));
    let next = on("").group(&[next, w.assign_add(&on(devices[1]).constant([1f32, 1.0]))]);
    (graph, next)
}

fn held() -> (Arc<Held>, FileSystems) {
    let held = Arc::new(Held::default());
    (held.clone(), FileSystems::local().with("held", held))
}

fn begin(graph: &Graph, systems: &FileSystems, master: &str) -> MonitoredSession {
    let config = SessionConfig { extensions: Extensions::new().with(systems.clone()), ..SessionConfig::default() };
    let session = MonitoredTrainingSession::new(graph).config(config).master(master).checkpoint_dir("held://run");
    session.save_checkpoint(Every::Steps(2)).start().unwrap()
}

/// What is in a checkpoint.
fn read(systems: &FileSystems, step: i64) -> (i64, Vec<f32>) {
    let bundle = Bundle::open(systems, &format!("held://run/model.ckpt-{step}")).unwrap();
    let w = bundle.read("w").unwrap();
    (bundle.read("global_step").unwrap().to_scalar().unwrap(), w.values::<f32>().unwrap().to_vec())
}

fn checkpoints(systems: &FileSystems) -> Vec<String> {
    let state = CheckpointState::read(systems, "held://run", "checkpoint").unwrap();
    state.map_or_else(Vec::new, |state| state.all_model_checkpoint_paths)
}

#[test]
fn steps_go_on_while_a_checkpoint_is_written() {
    for on_cluster in [false, true] {
        let (gate, systems) = held();
        let with_systems = |options| ServerOptions { extensions: Extensions::new().with(systems.clone()), ..options };
        let cluster = on_cluster.then(|| LocalCluster::start_with(&[("ps", 2), ("worker", 1)], with_systems).unwrap());
        let master = cluster.as_ref().map_or(String::new(), |cluster| cluster.targets("worker")[0].clone());
        let devices = if on_cluster { ["/job:ps/task:0", "/job:ps/task:1"] } else { ["", ""] };
        let (graph, next) = counting(Kind::Resource, devices);
        let mut session = begin(&graph, &systems, &master);
        let _release = Release(gate.clone());
        for _ in 0..5 {
            session.run::<()>(&next).unwrap();
        }
        assert_eq!(checkpoints(&systems), Vec::<String>::new());
        gate.set(Gate::Open);
        session.close().unwrap();
        // The one that was held up is of the moment when it began. Those that were due meanwhile were left out.
        assert_eq!(checkpoints(&systems), ["held://run/model.ckpt-0", "held://run/model.ckpt-5"]);
        assert_eq!(read(&systems, 0), (0, vec![0.0, 0.0]));
        assert_eq!(read(&systems, 5), (5, vec![5.0, 5.0]));
    }
}

#[test]
fn a_checkpoint_that_was_not_written_is_an_error_of_the_next_step_or_the_end() {
    for at_end in [false, true] {
        let (gate, systems) = held();
        let (graph, next) = counting(Kind::Resource, ["", ""]);
        let mut session = begin(&graph, &systems, "");
        gate.set(Gate::Broken);
        let error = match at_end {
            true => session.close().unwrap_err(),
            false => loop {
                if let Err(error) = session.run::<()>(&next) {
                    break error;
                }
            },
        };
        assert!(error.message.contains("the disk is full"), "{error}");
    }
}

#[test]
fn the_last_checkpoint_is_written_if_one_before_was_not() {
    for steps in [0i64, 3] {
        let (gate, systems) = held();
        let (graph, next) = counting(Kind::Resource, ["", ""]);
        let mut session = begin(&graph, &systems, "");
        let _release = Release(gate.clone());
        for _ in 0..steps {
            session.run::<()>(&next).unwrap();
        }
        gate.set(Gate::BrokenOnce);
        let error = session.close().unwrap_err();
        assert!(error.message.contains("the disk is full"), "{error}");
        assert_eq!(checkpoints(&systems), [format!("held://run/model.ckpt-{steps}")]);
        assert_eq!(read(&systems, steps), (steps, vec![steps as f32; 2]));
    }
}

/// Opens the gate when the threads of the session are asked to stop.
struct Opening(Arc<Held>);

impl SessionRunHook for Opening {
    fn after_create_session(&mut self, context: &SessionContext<'_>) -> Result<()> {
        let gate = self.0.clone();
        context.coordinator().spawn("opening", move |coordinator| {
            coordinator.wait_for_stop(None);
            gate.set(Gate::Open);
            Ok(())
        })
    }
}

#[test]
fn a_checkpoint_under_way_is_written_when_a_step_fails() {
    let (gate, systems) = held();
    let (graph, _) = counting(Kind::Resource, ["", ""]);
    let root = graph.root();
    let bad = root.op("CheckNumerics").input(&root.constant(f32::NAN)).attr("message", "here").output();
    let config = SessionConfig { extensions: Extensions::new().with(systems.clone()), ..SessionConfig::default() };
    let session = MonitoredTrainingSession::new(&graph).config(config).checkpoint_dir("held://run");
    let mut session = session.hook(Opening(gate.clone())).start().unwrap();
    let _release = Release(gate.clone());
    session.run::<f32>(&bad).unwrap_err();
    assert_eq!(checkpoints(&systems), Vec::<String>::new());
    drop(session);
    assert_eq!(checkpoints(&systems), ["held://run/model.ckpt-0"]);
    assert_eq!(read(&systems, 0), (0, vec![0.0, 0.0]));
}

#[test]
fn steps_wait_for_variables_that_are_read_as_they_are_written() {
    let (gate, systems) = held();
    gate.set(Gate::Open);
    let (graph, next) = counting(Kind::Reference, ["", ""]);
    let mut session = begin(&graph, &systems, "");
    // It is there when steps begin.
    assert_eq!(read(&systems, 0), (0, vec![0.0, 0.0]));
    for _ in 0..3 {
        session.run::<()>(&next).unwrap();
    }
    session.close().unwrap();
    assert_eq!(read(&systems, 3), (3, vec![3.0, 3.0]));
}

/// Notes what it is told.
struct Listening(Arc<Mutex<Vec<String>>>);

impl Listening {
    fn note(&self, what: &str, step: i64) -> Result<()> {
        self.0.lock().push(format!("{what} {step}"));
        Ok(())
    }
}

impl CheckpointSaverListener for Listening {
    fn begin(&mut self, _: &Graph) -> Result<()> {
        self.note("begin", -1)
    }

    fn before_save(&mut self, _: &Session, step: i64) -> Result<()> {
        self.note("before", step)
    }

    fn after_save(&mut self, _: &Session, step: i64) -> Result<bool> {
        self.note("after", step).map(|()| false)
    }

    fn end(&mut self, _: &Session, step: i64) -> Result<()> {
        self.note("end", step)
    }
}

#[test]
fn listeners_are_told_in_order() {
    for background in [false, true] {
        let (gate, systems) = held();
        gate.set(Gate::Open);
        let (graph, next) = counting(Kind::Resource, ["", ""]);
        let notes: Arc<Mutex<Vec<String>>> = Arc::default();
        let saver = Saver::builder(&graph).file_systems(&systems).build().unwrap();
        let hook = CheckpointSaver::new("held://run", Every::Steps(2), Arc::new(saver)).in_background(background);
        let hook = hook.listener(Listening(notes.clone())).listener(Listening(notes.clone()));
        let config = SessionConfig { extensions: Extensions::new().with(systems.clone()), ..SessionConfig::default() };
        let mut session = MonitoredTrainingSession::new(&graph).config(config).hook(hook).start().unwrap();
        for _ in 0..3 {
            session.run::<()>(&next).unwrap();
        }
        session.close().unwrap();
        let notes = notes.lock();
        let (first, second): (Vec<&String>, Vec<&String>) = notes.chunks(2).map(|pair| (&pair[0], &pair[1])).unzip();
        assert_eq!(first, second, "one listener after the other");
        let saves = ["before 0", "after 0", "before 2", "after 2", "before 3", "after 3"];
        // The one of step 2 is left out if the first is not written by then.
        let found: Vec<&str> = first.iter().map(|note| note.as_str()).filter(|note| !note.ends_with(" 2")).collect();
        let wanted: Vec<&str> = saves.into_iter().filter(|note| !note.ends_with(" 2")).collect();
        assert_eq!(found, [&["begin -1"], &wanted[..], &["end 3"]].concat());
        assert!(background || first.len() == saves.len() + 2, "{first:?}");
    }
}

#[test]
fn the_saver_of_a_session_tells_how_far_it_is() {
    let (gate, systems) = held();
    gate.set(Gate::Open);
    let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
    for _ in 0..2 {
        let (graph, next) = counting(Kind::Resource, ["", ""]);
        let noted = told.clone();
        let scaffold = Scaffold::new().progress(move |progress| noted.lock().push(progress));
        let config = SessionConfig { extensions: Extensions::new().with(systems.clone()), ..SessionConfig::default() };
        let session = MonitoredTrainingSession::new(&graph).config(config).scaffold(scaffold);
        let mut session = session.checkpoint_dir("held://run").save_in_background(false).start().unwrap();
        session.run::<()>(&next).unwrap();
        session.close().unwrap();
    }
    // An integer and two floats. Saved at the beginning and at the end; restored, and saved twice again.
    let mut told = std::mem::take(&mut *told.lock());
    told.dedup();
    assert_eq!(told, [Progress { bytes: 0, total: 16 }, Progress { bytes: 16, total: 16 }].repeat(5));
    assert_eq!(latest_checkpoint_on(&systems, "held://run").unwrap().unwrap(), "held://run/model.ckpt-2");
}
