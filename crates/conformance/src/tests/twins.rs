//! Programs and their Python twins give the same numbers.

use super::real::{output, program, python};
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
    for example in ["01_graph", "02_session", "03_remote_session", "04_train_mlp", "07_summaries"] {
        let text = output(&mut Command::new(folder.join(example)));
        assert!(!text.is_empty(), "{example} printed nothing");
    }
}

#[test]
fn a_training_example_prints_what_its_twin_prints() {
    let ours = output(&mut Command::new(program().parent().unwrap().join("examples/04_train_mlp")));
    let theirs = output(Command::new(python()).arg(root().join("crates/flowgrid/examples/04_train_mlp.py")));
    let numbers = |text: &str| -> Vec<f64> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).collect()
    };
    let (ours, theirs) = (numbers(&ours), numbers(&theirs));
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours - theirs).abs() <= 3e-3, "{ours} instead of {theirs}");
    }
}
