//! The limits of inlining: functions that nest deep, double with every level, or call themselves.

use super::text::{graph, ops};
use crate::{LowerOptions, lower};
use graph::{DeviceSpec, FlatGraph};
use status::{Code, Result};

fn lowered(text: &str) -> Result<Option<FlatGraph>> {
    let home = DeviceSpec::parse("/job:worker/replica:0/task:0").unwrap();
    lower(&graph(text), &ops(), &LowerOptions { home, conditionals: true })
}

/// A call of the first of functions, each of which calls the next one; the last names another task.
fn calls(depth: usize, twice: bool) -> String {
    let call =
        |next: usize, name: &str, arg: &str| format!("{name} PartitionedCall {arg} Tin=float Tout=float f=f{next}\n");
    let function = |place: usize| {
        let (a, b) = (call(place + 1, "a", "x"), call(place + 1, "b", "x"));
        let (b, sum) = if twice { (b, "a:output:0 b:output:0") } else { (String::new(), "a:output:0 x") };
        format!("fn f{place}(x: float) -> y: float\n{a}{b}s Add {sum}\nret y s:z:0\nend\n")
    };
    let last = format!("fn f{depth}(x: float) -> y: float\ns Neg x @/job:worker/task:1\nret y s:y:0\nend\n");
    let functions: String = (0..depth).map(function).chain([last]).collect();
    format!("x Const\n{}{functions}", call(0, "c", "x"))
}

/// Conditionals in the branches of conditionals; the innermost names another task.
fn conditionals(depth: usize) -> String {
    let branch = |place: usize| {
        let next = place + 1;
        format!(
            "fn f{place}(p: bool, x: float) -> y: float\n\
             c If p p x Tin=bool,float Tout=float then_branch=f{next} else_branch=same _lower_using_switch_merge=true\n\
             ret y c:output:0\nend\n"
        )
    };
    let last = format!("fn f{depth}(p: bool, x: float) -> y: float\ns Neg x @/job:worker/task:1\nret y s:y:0\nend\n");
    let functions: String = (0..depth).map(branch).chain([last]).collect();
    format!(
        "p Placeholder dtype=bool\nx Const\n\
         c If p p x Tin=bool,float Tout=float then_branch=f0 else_branch=same _lower_using_switch_merge=true\n\
         fn same(p: bool, x: float) -> y: float\nret y x\nend\n{functions}"
    )
}

fn refused(text: &str, with: &str) {
    let error = lowered(text).map(|_| ()).unwrap_err();
    assert_eq!(error.code, Code::ResourceExhausted);
    assert!(error.message.contains(with), "{}", error.message);
}

#[test]
fn hundreds_of_calls_in_calls_are_inlined() {
    let graph = lowered(&calls(400, false)).unwrap().unwrap();
    let innermost = graph.nodes.iter().find(|node| node.def.op == "Neg").unwrap();
    assert_eq!(innermost.def.name.matches('/').count(), 401);
    assert!(graph.nodes.iter().all(|node| node.def.op != "PartitionedCall"));
}

#[test]
fn hundreds_of_conditionals_in_conditionals_are_lowered() {
    let graph = lowered(&conditionals(200)).unwrap().unwrap();
    assert!(graph.nodes.iter().all(|node| node.def.op != "If"));
}

#[test]
fn thousands_of_calls_in_calls_are_too_deep() {
    refused(&calls(3_000, false), "Function f1000 cannot be inlined: calls nest deeper than 1000");
    refused(&conditionals(3_000), " cannot be inlined: the inlined functions take more than ");
}

#[test]
fn conditionals_on_one_task_are_lowered_to_a_depth() {
    let graph = lowered(&conditionals(3_000).replace("@/job:worker/task:1", "")).unwrap().unwrap();
    let left = graph.nodes.iter().filter(|node| node.def.op == "If").count();
    assert_eq!(left, 1);
}

#[test]
fn calls_that_double_with_every_level_are_too_many() {
    refused(&calls(40, true), " cannot be inlined: the inlined functions take more than ");
}

#[test]
fn functions_that_call_each_other_stay_calls() {
    let function = |own: &str, other: &str| {
        format!(
            "fn {own}(x: float) -> y: float\na PartitionedCall x Tin=float Tout=float f={other}\n\
             s Neg a:output:0 @/job:worker/task:1\nret y s:y:0\nend\n"
        )
    };
    for (one, other) in [("f", "f"), ("f", "g")] {
        let second = if one == other { String::new() } else { function(other, one) };
        let text = format!("x Const\nc PartitionedCall x Tin=float Tout=float f=f\n{}{second}", function(one, other));
        assert!(lowered(&text).unwrap().is_none());
    }
}
