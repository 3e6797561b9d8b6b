//! The flags that `flowgrid local` passes to its tasks.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: TaskArgs,
}

fn read(flags: &[&str]) -> Result<TaskArgs, String> {
    let line = Line::try_parse_from(std::iter::once(&"flowgrid").chain(flags));
    line.map(|line| line.args).map_err(|error| error.to_string())
}

#[test]
fn flags_are_passed_on_and_journals_have_a_folder_for_each_task() {
    let task = Task { job: "ps".to_string(), index: 3 };
    let passed = |flags: &[&str]| read(flags).unwrap().for_task(&task).join(" ");
    assert_eq!(passed(&[]), "--sync-policy tf");
    assert_eq!(passed(&["--sync-policy", "shrink", "--journal", "/j"]), "--sync-policy shrink --journal /j/ps-3");
    let metrics = ["--metrics", "/m", "--metrics-interval", "100steps"];
    assert_eq!(passed(&metrics), "--sync-policy tf --metrics /m --metrics-interval 100steps");
    let again: Vec<String> = read(&metrics).unwrap().for_task(&task);
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    assert_eq!(read(&again).unwrap().metrics_interval.every, Every::Steps(100));
}

#[test]
fn intervals_are_seconds_or_steps() {
    let every = |text: &str| read(&["--metrics-interval", text]).map(|args| args.metrics_interval.every);
    assert_eq!(every("0.5"), Ok(Every::Time(Duration::from_millis(500))));
    assert_eq!(every("20s"), Ok(Every::Time(Duration::from_secs(20))));
    assert_eq!(every("20 steps"), Ok(Every::Steps(20)));
    for bad in ["0", "inf", "nan", "0steps", "steps", "fast"] {
        assert!(
            every(bad).is_err_and(|error| error.contains("expected a number of seconds from 0.1 to 86400")),
            "{bad}"
        );
    }
    let error = read(&["--sync-policy", "loose"]).unwrap_err();
    assert!(error.contains("unknown sync policy 'loose'; expected tf, exact or shrink"), "{error}");
}
