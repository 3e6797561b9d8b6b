//! File systems passed to a session: its kernels, saver, event files and saved models use them.

use super::graph;
use crate::hooks::{Every, StopAtStep};
use crate::{
    MonitoredTrainingSession, Optimizer, Supervisor, create_global_step, import_meta_graph_on, latest_checkpoint_on,
};
use checkpoint::saved_model::{MetaGraphOptions, SERVING, SavedModelBuilder, load_on};
use graph::Graph;
use io::FileSystems;
use layers::collection::global_variables_initializer;
use layers::{ScopeOps, TensorOps, Variable};
use ops::data_structures::reader::{read_file, write_file};
use optimize::{GradientDescent, MinimizeOptions};
use session::{Extensions, Session, SessionConfig};

/// A file system in memory for this test only, and a configuration that contains it.
fn memory_systems() -> (FileSystems, SessionConfig) {
    let systems = FileSystems::local();
    let config = SessionConfig { extensions: Extensions::new().with(systems.clone()), ..SessionConfig::default() };
    (systems, config)
}

/// A graph that learns, and its step.
fn model() -> (Graph, graph::Node) {
    let graph = graph();
    let w = Variable::zeros(&graph.root(), "w", [2]);
    let loss = (w.value() - 1.0).square().sum();
    let step = create_global_step(&graph).unwrap();
    let train =
        Optimizer::new(GradientDescent::new(0.1)).minimize_with(&loss, MinimizeOptions::new().step(&step)).unwrap();
    (graph, train)
}

#[test]
fn kernels_of_all_devices_see_them_also_in_isolated_sessions() {
    for isolate_state in [false, true] {
        let (systems, config) = memory_systems();
        let config = SessionConfig { isolate_state, device_count: vec![("CPU".to_string(), 2)], ..config };
        let graph = graph();
        let on = |device: &str| graph.root().on(device);
        let (first, second) = (on("/device:CPU:0"), on("/device:CPU:1"));
        let write = write_file(&first.constant("ram://folder/file"), &first.constant("text"));
        let read = read_file(&second.constant("ram://folder/file"));
        let session = Session::with_config("", &graph, config).unwrap();
        session.execute(&write).unwrap();
        assert_eq!(session.run::<String>(&read).unwrap(), "text");
        assert_eq!(systems.read("ram://folder/file").unwrap(), "text");
    }
}

#[test]
fn a_monitored_session_has_its_files_there() {
    let (systems, config) = memory_systems();
    for steps in [4, 6] {
        let (graph, train) = model();
        let session = MonitoredTrainingSession::new(&graph)
            .config(config.clone())
            .checkpoint_dir("ram://run")
            .save_checkpoint(Every::Steps(2))
            .hook(StopAtStep::last_step(steps))
            .start()
            .unwrap();
        session.until_stop(|session| session.run(&train)).unwrap();
        let latest = latest_checkpoint_on(&systems, "ram://run").unwrap();
        assert_eq!(latest.unwrap(), format!("ram://run/model.ckpt-{steps}"));
    }
    assert_eq!(systems.glob("ram://run/*tfevents*").unwrap().len(), 2);
    let saver = import_meta_graph_on(&systems, &graph(), "ram://run/model.ckpt-6.meta").unwrap().unwrap();
    assert_eq!(saver.latest_checkpoint("ram://run").unwrap().unwrap(), "ram://run/model.ckpt-6");
}

#[test]
fn a_supervisor_has_its_files_there() {
    let (systems, config) = memory_systems();
    let (graph, train) = model();
    let supervisor = Supervisor::builder(&graph).logdir("ram://run").file_systems(&systems).build().unwrap();
    supervisor.managed_session_with("", &config, None, |session| session.execute(&train)).unwrap();
    assert_eq!(systems.glob("ram://run/*tfevents*").unwrap().len(), 1);
}

#[test]
fn a_saved_model_is_there() {
    let (systems, config) = memory_systems();
    let (graph, _) = model();
    let init = global_variables_initializer(&graph);
    let session = Session::with_config("", &graph, config.clone()).unwrap();
    session.execute(&init).unwrap();
    let mut builder = SavedModelBuilder::on(&systems, "ram://model").unwrap();
    builder.add_meta_graph_and_variables(&session, &[SERVING], MetaGraphOptions::default()).unwrap();
    builder.save().unwrap();
    let graph = super::graph();
    let loaded = load_on(&systems, &graph, "ram://model", &[SERVING]).unwrap();
    let session = Session::with_config("", &graph, config).unwrap();
    loaded.restore(&session).unwrap();
    assert_eq!(session.run::<Vec<f32>>("w/Read/ReadVariableOp:0").unwrap(), [0.0, 0.0]);
}
