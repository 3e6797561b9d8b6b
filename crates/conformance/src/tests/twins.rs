//! Programs in Rust and their Python twins compute the same numbers.

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

/// An example whose output is compared with that of its Python twin, number by number.
struct Comparison {
    example: &'static str,
    /// The part of a line whose numbers are compared; none if the line differs by its nature.
    part: fn(&str) -> Option<&str>,
    /// The greatest difference, relative to the number or to 1.
    tolerance: f64,
}

const COMPARISONS: [Comparison; 10] = [
    // The size in bytes differs: TensorFlow writes the default values of attributes, too. The error for shapes that do not
    // match names the inputs in Rust only.
    Comparison {
        example: "01_graph",
        part: |line| line.split(" in ").next()?.split(" from inputs").next(),
        tolerance: 0.0,
    },
    // How many nodes run depends on the optimizer of the graph.
    Comparison { example: "02_session", part: |line| (!line.contains("nodes ran")).then_some(line), tolerance: 1e-6 },
    // Ports differ.
    Comparison {
        example: "03_remote_session",
        part: |line| Some(line.split_once(" counted").map_or(line, |(_, count)| count)),
        tolerance: 0.0,
    },
    Comparison { example: "04_train_mlp", part: whole, tolerance: 3e-3 },
    Comparison { example: "05_model_parallel", part: whole, tolerance: 3e-3 },
    Comparison { example: "06_in_graph", part: whole, tolerance: 3e-3 },
    // TensorFlow's LoggingTensorHook writes to the log, not to standard output.
    Comparison { example: "09_monitored_training", part: |line| line.strip_prefix("after"), tolerance: 1e-3 },
    Comparison { example: "10_checkpoints", part: whole, tolerance: 0.0 },
    // The folder differs.
    Comparison { example: "11_summaries", part: |line| line.split(", see").next(), tolerance: 1e-3 },
    Comparison { example: "13_supervisor", part: whole, tolerance: 0.0 },
];

fn whole(line: &str) -> Option<&str> {
    Some(line)
}

/// Examples whose twins are one worker of a cluster. Each has a test of its own below.
const WORKERS: [&str; 4] = ["08_sync_worker", "12_mnist_cluster", "07_between_graph", "14_input_pipeline"];

#[test]
fn every_example_is_compared_with_its_twin() {
    let mut compared: Vec<&str> = COMPARISONS.iter().map(|comparison| comparison.example).chain(WORKERS).collect();
    compared.sort();
    let names = std::fs::read_dir(root().join("crates/flowgrid/examples")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut examples: Vec<String> = names.filter_map(|name| name.strip_suffix(".rs").map(str::to_string)).collect();
    examples.sort();
    assert_eq!(compared, examples);
}

#[test]
fn examples_print_the_numbers_of_their_twins() {
    for Comparison { example, part, tolerance } in COMPARISONS {
        let found = |text: &str| text.lines().filter_map(part).flat_map(numbers).collect::<Vec<f64>>();
        let (ours, theirs) = (output(&mut built(example)), output(&mut twin(example)));
        assert_close(example, &found(&ours), &found(&theirs), tolerance);
    }
}

/// What gradient descent learns in ten steps from the examples of both workers of `08_sync_worker`: slope and intercept.
fn line_of_both_workers() -> [f64; 2] {
    let (mut w, mut b) = (0.0, 0.0);
    for step in 0..10 {
        let xs = [0, 1, 2, 3].map(|i| f64::from((step * 4 + i) % 7) / 4.0);
        let errors = xs.map(|x| w * x + b - (2.0 * x - 1.0));
        let slope: f64 = errors.iter().zip(&xs).map(|(error, x)| 2.0 * error * x / 4.0).sum();
        w -= 0.1 * slope;
        b -= 0.1 * errors.iter().sum::<f64>() * 2.0 / 4.0;
    }
    [w, b]
}

#[test]
fn synchronous_workers_learn_what_one_learns_from_the_examples_of_both() {
    let example = WORKERS[0];
    let expected = line_of_both_workers().repeat(2);
    assert_close(example, &numbers(&output(&mut built(example))), &expected, 1e-6);
    let cluster = Cluster::start_with(Kind::Flowgrid, 2, &["--sync-policy", "exact"]);
    let python = |task: usize| numbers(&output(twin(example).arg(&cluster.workers[task]).arg(task.to_string())));
    let both = in_parallel([&|| python(0), &|| python(1)]);
    assert_close(example, &both.concat(), &expected, 1e-6);
}

/// The weights are random, and how the steps are shared is, too. One of two workers makes at least half of them, and the
/// loss, which begins at ln 10, is below 0.1 by then.
#[test]
fn workers_of_a_cluster_learn_digits() {
    let example = WORKERS[1];
    for flags in [&[][..], &["--sync_replicas"]] {
        let rust = numbers(&output(built(example).args(flags)));
        let cluster = Cluster::start(Kind::Flowgrid, 2);
        let hosts = |targets: &[String]| targets.join(",").replace("grpc://", "");
        let folder = std::env::temp_dir().join(format!("flowgrid-mnist-twin-{}", std::process::id()));
        let python = |task: usize| {
            let mut worker = twin(example);
            worker.arg(format!("--ps_hosts={}", hosts(&cluster.ps)));
            worker.arg(format!("--worker_hosts={}", hosts(&cluster.workers)));
            worker.arg(format!("--checkpoint_dir={}", folder.display()));
            numbers(&output(worker.arg(format!("--task_index={task}")).args(flags)))
        };
        let python = in_parallel([&|| python(0), &|| python(1)]).concat();
        std::fs::remove_dir_all(&folder).unwrap();
        for losses in [rust, python] {
            assert_eq!(losses.len(), 2, "{flags:?}: {losses:?}");
            let best = losses[0].min(losses[1]);
            assert!((0.0..0.1).contains(&best), "{flags:?}: {losses:?}");
        }
    }
}

/// Runs two functions at the same time.
fn in_parallel<T: Send>(functions: [&(dyn Fn() -> T + Sync); 2]) -> [T; 2] {
    std::thread::scope(|scope| {
        let second = scope.spawn(functions[1]);
        [functions[0](), second.join().expect("the second function does not panic")]
    })
}

/// How the steps of the workers alternate differs from run to run; the examples of each worker do not.
#[test]
fn interrupted_pipelines_give_each_example_once_in_the_order_of_their_twins() {
    let example = WORKERS[3];
    let run = |program: &mut Command| {
        let text = output(program);
        let of_worker = |task: usize| text.lines().filter(move |line| line.starts_with(&format!("worker {task}:")));
        let (weights, examples): (Vec<f64>, Vec<Vec<f64>>) = [0, 1]
            .map(|task| {
                // The numbers of a line: worker, weight, examples.
                let lines: Vec<Vec<f64>> = of_worker(task).map(numbers).collect();
                (lines.last().map_or(0.0, |line| line[1]), lines.iter().flat_map(|line| line[2..].to_vec()).collect())
            })
            .into_iter()
            .unzip();
        assert!(weights.iter().all(|weight| (weight - 2.0).abs() < 0.1), "{example}: {text}");
        examples
    };
    let (ours, theirs) = (run(&mut built(example)), run(&mut twin(example)));
    assert_eq!(ours, theirs);
    let mut all = ours.concat();
    all.sort_by(f64::total_cmp);
    assert_eq!(all, (0..96).map(f64::from).collect::<Vec<f64>>());
}

/// What the workers of 07_between_graph print if the chief runs to its end before the other worker starts: this order
/// makes the numbers reproducible.
fn between_graph(program: fn(&str) -> Command, targets: &[String]) -> Vec<f64> {
    let run = |(task, target): (usize, &String)| {
        numbers(&output(program("07_between_graph").arg(target).arg(task.to_string())))
    };
    targets.iter().enumerate().flat_map(run).collect()
}

#[test]
fn between_graph_workers_print_what_their_twins_print() {
    let theirs = Cluster::start(Kind::TensorFlow, 2);
    let expected = between_graph(twin, &theirs.workers);
    drop(theirs);
    for kind in [Kind::TensorFlow, Kind::Flowgrid] {
        let cluster = Cluster::start(kind, 2);
        assert_close("07_between_graph", &between_graph(built, &cluster.workers), &expected, 1e-4);
    }
    let ours = Cluster::start(Kind::Flowgrid, 2);
    assert_close("07_between_graph.py", &between_graph(twin, &ours.workers), &expected, 1e-4);
}

/// The other worker starts first, waits for the chief, and both train at the same time.
#[test]
fn between_graph_workers_train_together() {
    let cluster = Cluster::start(Kind::Flowgrid, 2);
    let losses = std::thread::scope(|scope| {
        let start = |task: usize| {
            let target = &cluster.workers[task];
            scope.spawn(move || numbers(&output(built("07_between_graph").arg(target).arg(task.to_string()))))
        };
        let (other, chief) = (start(1), start(0));
        [chief, other].map(|worker| worker.join().unwrap())
    });
    for (task, numbers) in losses.iter().enumerate() {
        // The numbers of a line: batch, worker, loss. How many lines there are depends on how the steps interleave.
        let first: Vec<f64> = numbers[..3.min(numbers.len())].to_vec();
        assert_eq!(first[..2], [task as f64, task as f64], "worker {task}: {numbers:?}");
        assert!(numbers.chunks(3).all(|line| line[2].is_finite() && line[2] < 2.0), "worker {task}: {numbers:?}");
    }
}

/// The same programs on clusters of the other kind: our client on TensorFlow's servers, TensorFlow's on ours.
#[test]
fn cluster_examples_run_on_either_kind_of_server() {
    for (example, workers, targets) in [("05_model_parallel", 1, 1), ("06_in_graph", 3, 1)] {
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

/// All numbers in a text, with their signs.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !c.is_ascii_digit() && !['.', '+', '-', 'e'].contains(&c));
    // `5.` at the end of a sentence and `e` of a word are no obstacle: what does not parse is not a number.
    words.filter_map(|word| word.parse().ok()).collect()
}

fn assert_close(example: &str, ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len(), "{example}: {ours:?} instead of {theirs:?}");
    assert!(!ours.is_empty(), "{example} printed no numbers");
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1.0), "{example}: {ours} instead of {theirs}");
    }
}
