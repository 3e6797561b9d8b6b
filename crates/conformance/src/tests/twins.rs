//! Programs and their Python twins give the same numbers.

use super::real::{Cluster, Kind, output, program, python};
use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_demo_has_the_losses_of_its_twin() {
    let folder = std::env::temp_dir().join(format!("flowgrid-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let run = |command: &mut Command, file: &str| -> Vec<f32> {
        let path = folder.join(file);
        output(command.args(["--steps", "60", "--seed", "7", "--losses"]).arg(&path));
        let text = std::fs::read_to_string(&path).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    let theirs = run(Command::new(python()).arg(root().join("crates/cli/demo.py")), "theirs.txt");
    for args in [&["demo", "--alone"][..], &["demo", "--ps", "2", "--workers", "1"]] {
        let ours = run(Command::new(program()).args(args), "ours.txt");
        assert_eq!((ours.len(), theirs.len()), (60, 60));
        for (step, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert!((ours - theirs).abs() <= 1e-4 * theirs.abs(), "{args:?} step {step}: {ours} instead of {theirs}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_demo_trains_on_a_cluster() {
    let text = output(Command::new(program()).args(["demo", "--ps", "2", "--workers", "2", "--steps", "300"]));
    assert!(text.contains("/job:ps/replica:0/task:1"), "{text}");
    let accuracy = text.split("accuracy").nth(1).and_then(|rest| rest.trim().split(' ').next());
    let accuracy: f64 = accuracy.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!(accuracy > 80.0, "{text}");
}

#[test]
fn examples_run() {
    let folder = program().parent().unwrap().join("examples");
    const ALL: [&str; 9] = [
        "01_graph",
        "02_session",
        "03_remote_session",
        "04_train_mlp",
        "11_summaries",
        "09_monitored_training",
        "08_sync_worker",
        "10_checkpoints",
        "12_mnist_cluster",
    ];
    for example in ALL {
        let text = output(&mut Command::new(folder.join(example)));
        assert!(!text.is_empty(), "{example} printed nothing");
    }
    let ours = output(&mut built("13_supervisor"));
    assert_eq!(ours, "100 steps, a total of 4950\n");
    assert_eq!(output(&mut twin("13_supervisor")), ours);
}

#[test]
fn training_examples_print_what_their_twins_print() {
    for example in ["04_train_mlp", "05_model_parallel", "06_in_graph", "07_between_graph"] {
        let ours = numbers(&output(&mut built(example)));
        assert_close(example, &ours, &numbers(&output(&mut twin(example))), 3e-3);
    }
}

/// The same programs on clusters of the other kind: our client on TensorFlow's servers, TensorFlow's on ours.
#[test]
fn cluster_examples_run_on_either_kind_of_server() {
    for (example, workers, targets) in [("05_model_parallel", 1, 1), ("06_in_graph", 3, 1), ("07_between_graph", 2, 2)]
    {
        let expected = numbers(&output(&mut twin(example)));
        let theirs = Cluster::start(Kind::TensorFlow, workers);
        let rust = numbers(&output(built(example).args(&theirs.workers[..targets])));
        assert_close(example, &rust, &expected, 1e-4);
        let ours = Cluster::start(Kind::Flowgrid, workers);
        let python = numbers(&output(twin(example).args(&ours.workers[..targets])));
        assert_close(example, &python, &expected, 1e-4);
    }
}

fn built(example: &str) -> Command {
    Command::new(program().parent().unwrap().join("examples").join(example))
}

fn twin(example: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(root().join(format!("crates/flowgrid/examples/{example}.py")));
    command
}

fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).collect()
}

fn assert_close(example: &str, ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len(), "{example}: {ours:?} instead of {theirs:?}");
    assert!(ours.len() > 4, "{example} printed {ours:?}");
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1.0), "{example}: {ours} instead of {theirs}");
    }
}
