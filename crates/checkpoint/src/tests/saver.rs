//! Checkpoints: the nodes that write and read them, the files that are kept, parts of variables.

use super::{Folder, graph, nodes};
use crate::saver::{Progress, Retention, Saver, latest_checkpoint};
use graph::Graph;
use io::{Bundle, CheckpointState, FileSystems};
use layers::collection::global_variables_initializer;
use layers::{Initializer, Kind, ScopeOps, TensorOps, Variable};
use optimize::{Adam, ExponentialMovingAverage, Optimizer};
use parking_lot::Mutex;
use session::{COUNTERS, LocalCluster, Session, SessionConfig};
use status::{Code, Error};
use std::sync::Arc;
use tensor::{DType, PartialShape, Tensor};

/// A variable of each kind.
fn model() -> (Graph, [Variable; 2]) {
    let graph = graph();
    let ps = |task: usize| graph.root().on(&format!("/job:ps/task:{task}"));
    let a = Variable::builder(&ps(0), "a").shape([2]).build();
    let b = Variable::builder(&ps(1), "b").shape([3]).kind(Kind::Reference).build();
    (graph, [a, b])
}

#[test]
fn its_nodes_are_those_of_tensorflow() {
    let text = include_str!("../../fixtures/saver.txt");
    let (plain, sharded) = text.split_once("sharded True\n").unwrap();
    for (wanted, sharded) in [(plain.strip_prefix("sharded False\n").unwrap(), false), (sharded, true)] {
        let (graph, _) = model();
        let saver = Saver::builder(&graph).sharded(sharded).build().unwrap();
        assert_eq!(nodes(&graph, "save"), wanted.lines().collect::<Vec<_>>());
        assert_eq!(saver.def().filename_tensor, "save/Const:0");
        assert_eq!(saver.def().save_tensor, if sharded { "save/Identity:0" } else { "save/control_dependency:0" });
        assert_eq!(saver.def().restore_op, "save/restore_all");
    }
}

/// Two variables that begin as given, whatever kind, and a session in which they did.
fn local(values: [f32; 2], kind: Kind) -> (Graph, [Variable; 2], Session) {
    let graph = graph();
    let make = |name: &str, value: f32| {
        let first = Initializer::Value([value, value + 0.5].into());
        Variable::builder(&graph.root(), name).initializer(first).kind(kind).build()
    };
    let variables = [make("x", values[0]), make("y", values[1])];
    let session = Session::local(&graph);
    (graph, variables, session)
}

#[test]
fn what_was_saved_comes_back() {
    let folder = Folder::new();
    for (kind, sharded) in [(Kind::Resource, false), (Kind::Reference, false), (Kind::Resource, true)] {
        let (graph, [x, y], session) = local([1.0, 2.0], kind);
        let saver = Saver::builder(&graph).sharded(sharded).build().unwrap();
        session.execute(&global_variables_initializer(&graph)).unwrap();
        let path = saver.save(&session, folder.join("model"), 7).unwrap();
        assert_eq!(path, folder.join("model-7"));
        assert_eq!(latest_checkpoint(&folder.0).unwrap(), Some(path.clone()));
        session.execute(&x.assign(&graph.root().constant([9f32, 9.0]))).unwrap();
        saver.restore(&session, &path).unwrap();
        let found: ([Vec<f32>; 2],) = session.run(([&x, &y],)).unwrap();
        assert_eq!(found.0, [vec![1.0, 1.5], vec![2.0, 2.5]], "{kind:?} {sharded}");
    }
}

#[test]
fn variables_may_have_other_names_in_files() {
    let folder = Folder::new();
    let (graph, [x, y], session) = local([1.0, 2.0], Kind::Resource);
    let swapped = Saver::builder(&graph).named_variables([("y", &x), ("x", &y)]).build().unwrap();
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let path = swapped.save(&session, folder.join("model"), None).unwrap();
    Saver::new(&graph).unwrap().restore(&session, &path).unwrap();
    assert_eq!(session.run::<Vec<f32>>(&x).unwrap(), [2.0, 2.5]);
}

#[test]
fn five_checkpoints_are_kept() {
    let folder = Folder::new();
    let (graph, _, session) = local([1.0, 2.0], Kind::Resource);
    let saver = Saver::new(&graph).unwrap();
    session.execute(&global_variables_initializer(&graph)).unwrap();
    for step in 1..=7 {
        saver.save(&session, folder.join("model"), step).unwrap();
    }
    let kept: Vec<String> = (3..=7).map(|step| folder.join(&format!("model-{step}"))).collect();
    let state = CheckpointState::read(&FileSystems::local(), &folder.0, "checkpoint").unwrap().unwrap();
    assert_eq!(state.all_model_checkpoint_paths, kept);
    assert_eq!(saver.last_checkpoints(), kept);
    let systems = FileSystems::local();
    assert!(!systems.exists(&folder.join("model-2.index")).unwrap());
    assert!(!systems.exists(&folder.join("model-2.meta")).unwrap());
    assert!(systems.exists(&folder.join("model-3.index")).unwrap());
    // Another program goes on where this one ended.
    let next = Saver::new(&graph).unwrap();
    next.recover_last_checkpoints(&kept).unwrap();
    next.save(&session, folder.join("model"), 8).unwrap();
    assert!(!systems.exists(&folder.join("model-3.index")).unwrap());
}

#[test]
fn some_checkpoints_are_kept_for_good() {
    const HOUR: f64 = 3600.0;
    let mut kept = Retention::new(2, HOUR, 0.0);
    let mut deleted = Vec::new();
    for quarter in 1..=12 {
        deleted.extend(kept.record(&quarter.to_string(), f64::from(quarter) * HOUR / 4.0));
    }
    // The first after each full hour stays: 5, then 9.
    assert_eq!(deleted, ["1", "2", "3", "4", "6", "7", "8", "10"]);
    assert_eq!(kept.paths(), ["11", "12"]);
}

#[test]
fn parts_of_a_variable_are_one_in_files() {
    let folder = Folder::new();
    let first: Tensor = [[0f32, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]].into();
    for kind in [Kind::Resource, Kind::Reference] {
        let parted = graph();
        let builder = Variable::builder(&parted.root(), "p").initializer(Initializer::Value(first.clone())).kind(kind);
        let p = builder.partitioned(0, 2);
        let names: Vec<String> = p.parts().iter().map(Variable::name).collect();
        assert_eq!(names, ["p/part_0", "p/part_1"]);
        assert_eq!(p.parts()[1].slice().unwrap().spec(), "5 2 3,2:0,2");
        let saver = Saver::new(&parted).unwrap();
        let value = p.value();
        let session = Session::local(&parted);
        session.execute(&global_variables_initializer(&parted)).unwrap();
        assert_eq!(session.run::<Tensor>(&value).unwrap().values::<f32>(), first.values::<f32>());
        let path = saver.save(&session, folder.join("parts"), None).unwrap();
        let whole = Bundle::open(&FileSystems::local(), &path).unwrap().read("p").unwrap();
        assert_eq!(whole.values::<f32>(), first.values::<f32>());
        // Read into another number of parts.
        let other = graph();
        let q = Variable::builder(&other.root(), "p").shape([5, 2]).partitioned(0, 3);
        let (saver, value) = (Saver::new(&other).unwrap(), q.value());
        let session = Session::local(&other);
        saver.restore(&session, &path).unwrap();
        assert_eq!(session.run::<Tensor>(&value).unwrap().values::<f32>(), first.values::<f32>());
    }
}

#[test]
fn what_is_kept_for_parts_is_one_in_files() {
    let folder = Folder::new();
    let graph = graph();
    let p = Variable::builder(&graph.root(), "p").shape([4, 2]).partitioned(0, 2);
    let averages = ExponentialMovingAverage::new(0.9);
    averages.apply(p.parts()).unwrap();
    Optimizer::new(Adam::new(0.1)).minimize(&p.value().square().sum()).unwrap();
    let saver = Saver::new(&graph).unwrap();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let path = saver.save(&session, folder.join("model"), None).unwrap();
    let bundle = Bundle::open(&FileSystems::local(), &path).unwrap();
    // As TensorFlow names them.
    let wanted = ["beta1_power", "beta2_power", "p", "p/Adam", "p/Adam_1", "p/ExponentialMovingAverage"];
    assert_eq!(bundle.entries().keys().collect::<Vec<_>>(), wanted);
}

#[test]
fn errors_say_what_is_wrong() {
    let folder = Folder::new();
    let (graph, [x, _], session) = local([1.0, 2.0], Kind::Resource);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let saver = Saver::builder(&graph).variables([&x]).build().unwrap();
    let error = saver.restore(&session, folder.join("none")).unwrap_err();
    assert!(error.message.starts_with("The passed save_path is not a valid checkpoint: "), "{error}");
    let path = saver.save(&session, folder.join("x"), None).unwrap();
    let error = Saver::new(&graph).unwrap().restore(&session, &path).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    check_explained(&error, "a Variable name or other graph key that is missing", "Key y not found in checkpoint");
    let other = super::graph();
    Variable::builder(&other.root(), "x").shape([3]).kind(Kind::Reference).build();
    let error = Saver::new(&other).unwrap().restore(&Session::local(&other), &path).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    let original = "Assign requires shapes of both tensors to match. lhs shape= [3] rhs shape= [2]";
    check_explained(&error, "a mismatch between the current graph and the graph", original);
    let error = saver.save(&session, folder.join("checkpoint"), None).unwrap_err();
    assert!(error.message.starts_with("'latest_filename' collides with 'save_path'"), "{error}");
    let error = Saver::builder(&super::graph()).build().err().unwrap();
    assert_eq!(error.message, "No variables to save");
}

/// The sentence in which TensorFlow wraps errors of a restore.
#[track_caller]
fn check_explained(error: &Error, cause: &str, original: &str) {
    let wanted = format!(
        "Restoring from checkpoint failed. This is most likely due to {cause} from the checkpoint. Please ensure that \
         you have not altered the graph expected based on the checkpoint. Original error:\n\n"
    );
    let rest = error.message.strip_prefix(&wanted).unwrap_or_else(|| panic!("{error}"));
    assert!(rest.contains(original), "{error}");
}

#[test]
fn a_save_and_a_restore_tell_how_far_they_are() {
    let folder = Folder::new();
    let cluster = LocalCluster::start(&[("ps", 2), ("worker", 1)]).unwrap();
    let far = cluster.targets("worker");
    for (sharded, target) in [(false, ""), (true, ""), (true, far[0].as_str())] {
        let graph = graph();
        let device = |task: usize| if target.is_empty() { String::new() } else { format!("/job:ps/task:{task}") };
        let make = |name: &str, task: usize, floats: usize| {
            Variable::builder(&graph.root().on(&device(task)), name).shape([floats]).build()
        };
        // Larger than the pieces that are read and written at once.
        let variables = [make("a", 0, 5 << 20), make("b", 1, 3 << 20)];
        let total = (8 << 20) * 4;
        let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
        let noted = Arc::clone(&told);
        let saver = Saver::builder(&graph).sharded(sharded).progress(move |progress| noted.lock().push(progress));
        let saver = saver.build().unwrap();
        let counters = ["bytes_saved", "bytes_restored"];
        let counters = [0, 1].map(|task| {
            let scope = graph.root().on(&device(task));
            counters.map(|name| {
                let handle = scope.op("VarHandleOp").attr("container", COUNTERS).attr("shared_name", name);
                let handle = handle.attr("dtype", DType::I64).attr("shape", PartialShape::scalar()).output();
                ops::state::read_variable(&handle, DType::I64)
            })
        });
        let session = Session::with_config(target, &graph, SessionConfig::default()).unwrap();
        session.execute(&global_variables_initializer(&graph)).unwrap();
        let path = saver.save(&session, folder.join("model"), None).unwrap();
        check_told(&told, total);
        saver.restore(&session, &path).unwrap();
        check_told(&told, total);
        let counts: [[i64; 2]; 2] =
            session.run([[&counters[0][0], &counters[0][1]], [&counters[1][0], &counters[1][1]]]).unwrap();
        let wanted = match target {
            "" => [[total as i64; 2]; 2],
            _ => variables.each_ref().map(|variable| [variable.shape().known().unwrap().elements() as i64 * 4; 2]),
        };
        assert_eq!(counts, wanted);
    }
}

/// What was told begins at nothing, grows, and ends with everything.
#[track_caller]
fn check_told(told: &Mutex<Vec<Progress>>, total: u64) {
    let told = std::mem::take(&mut *told.lock());
    assert_eq!(told.first(), Some(&Progress { bytes: 0, total }));
    assert_eq!(told.last(), Some(&Progress { bytes: total, total }));
    assert!(told.is_sorted_by_key(|progress| progress.bytes), "{told:?}");
}
