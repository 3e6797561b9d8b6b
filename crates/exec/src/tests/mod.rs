//! The executor with toy ops: numbers, sums, loops, errors.

mod calls;
mod toy;

use status::Code;
use toy::{run, traced, try_run, try_run_simplified};

#[test]
fn values_flow_along_edges() {
    assert_eq!(run("a = Number 2; b = Number 3; c = Sum a b; d = Sum c c; out = Out d"), 10);
}

#[test]
fn a_long_chain_and_a_wide_fan_end() {
    let chain: String = (1..20_000).map(|i| format!("x{i} = Sum x{} one; ", i - 1)).collect();
    assert_eq!(run(&format!("one = Number 1; x0 = Number 0; {chain} out = Out x19999")), 19_999);
    let wide: String = (1..5_000).map(|i| format!("y{i} = Sum one one; x{i} = Sum x{} y{i}; ", i - 1)).collect();
    assert_eq!(run(&format!("one = Number 1; x0 = Number 0; {wide} out = Out x4999")), 9_998);
}

#[test]
fn heavy_ops_run_on_other_threads_with_the_same_result() {
    let sums: String = (1..200).map(|i| format!("x{i} = HeavySum x{} one; ", i - 1)).collect();
    assert_eq!(run(&format!("one = Number 1; x0 = Number 0; {sums} out = Out x199")), 199);
}

#[test]
fn the_branch_not_taken_is_dead() {
    let branches = |pred: i32| {
        format!(
            "x = Number 5; p = Less x n; n = Number {pred}; s = Switch x p; t = Sum s:1 s:1; f = Fail s; \
             g = Identity s; m = Merge t g; out = Out m"
        )
    };
    // True: 5 + 5. The failing op hangs on the other branch and must not run.
    assert_eq!(run(&branches(9)), 10);
    assert_eq!(try_run(&branches(1)).unwrap_err().code, Code::InvalidArgument);
}

#[test]
fn a_merge_takes_the_first_value_and_leaves_the_other_to_those_who_read_it_too() {
    let merged = run("a = Number 10; b = Number 20; m = Merge a b; c = Sum a b; d = Sum m c; out = Out d");
    assert!(merged == 40 || merged == 50, "{merged}");
}

#[test]
fn loops_run_until_their_condition_fails() {
    let text = "zero = Number 0; ten = Number 10; one = Number 1; e = Enter zero frame; l = EnterConst ten frame; \
                o = EnterConst one frame; m = Merge e n; c = Less m l; lc = LoopCond c; s = Switch m lc; \
                i = Sum s:1 o; n = NextIteration i; x = Exit s; out = Out x";
    assert_eq!(run(text), 10);
}

#[test]
fn nested_loops_multiply() {
    // total = 0; for i in 0..4 { for j in 0..3 { total += 1 } }
    let text = "zero = Number 0; one = Number 1; four = Number 4; three = Number 3; \
        oi = Enter zero outer; ot = Enter zero outer; of = EnterConst four outer; oh = EnterConst three outer; \
        oo = EnterConst one outer; oz = EnterConst zero outer; \
        mi = Merge oi ni; mt = Merge ot nt; c = Less mi of; lc = LoopCond c; si = Switch mi lc; st = Switch mt lc; \
        i1 = Sum si:1 oo; ni = NextIteration i1; \
        ij = Enter oz inner; it = Enter st:1 inner; ih = EnterConst oh inner; io = EnterConst oo inner; \
        mj = Merge ij nj; mu = Merge it nu; d = Less mj ih; ld = LoopCond d; sj = Switch mj ld; su = Switch mu ld; \
        j1 = Sum sj:1 io; nj = NextIteration j1; u1 = Sum su:1 io; nu = NextIteration u1; \
        xt = Exit su; nt = NextIteration xt; x = Exit st; out = Out x";
    assert_eq!(run(text), 12);
}

#[test]
fn a_loop_in_the_branch_not_taken_ends_dead() {
    let text = "x = Number 5; y = Number 1; p = Less x y; s = Switch x p; one = Number 1; \
        e = Enter s:1 frame; o = EnterConst one frame; m = Merge e n; c = Less m o; lc = LoopCond c; \
        w = Switch m lc; i = Sum w:1 o; n = NextIteration i; q = Exit w; g = Identity s; r = Merge q g; out = Out r";
    assert_eq!(run(text), 5);
}

#[test]
fn what_waits_for_a_trigger_lives_although_the_trigger_waits_for_the_dead() {
    let text = "x = Number 5; y = Number 1; p = Less x y; s = Switch x p; d = Identity s:1; \
        t = ControlTrigger ^d; g = Sum x y ^t; out = Out g";
    assert_eq!(run(text), 6);
}

#[test]
fn unread_values_are_skipped_but_not_what_they_wait_for() {
    let said =
        |text: &str| try_run_simplified(text).map_err(|error| error.message.lines().next().unwrap_or("").to_string());
    let fails = |text: &str, with: &str| assert_eq!(said(text), Err(with.to_string()), "{text}");
    assert_eq!(said("a = Number 1; f = Fail a; h = Fail f; g = Sum a a ^h; out = Out g"), Ok(2));
    fails("a = Number 1; f = Fail a; h = Sum f f ^f; out = Out h", "told to fail");
    fails("a = Number 1; f = Fail a; out = Out a", "told to fail"); // the step was asked to run it
    fails("a = Number 1; s = Speak a; f = Fail s; g = Sum a a ^f; out = Out g", "I am here");
    fails("a = Number 1; s = Speak a; f = Fail a ^s; g = Sum a a ^f; out = Out g", "I am here");
}

#[test]
fn unread_values_are_dead_as_before() {
    for unread in ["e = Sum s:1 s:1", "d = Sum s:1 s:1; e = Sum d d", "d = Sum x y ^i; i = Identity s:1; e = Sum d d"] {
        let text = |more: i32| {
            format!(
                "x = Number 5; y = Number {more}; p = Less x y; s = Switch x p; {unread}; g = Sum x x ^e; out = Out g"
            )
        };
        assert_eq!(try_run_simplified(&text(6)), Ok(10), "{unread}");
        assert_eq!(
            try_run_simplified(&text(1)).map_err(|error| error.message),
            Err("the result is dead".to_string()),
            "{unread}"
        );
    }
}

#[test]
fn the_first_error_names_its_node_and_spoils_no_other_step() {
    let error = try_run("a = Number 1; b = Fail a; out = Out b").unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(error.message.ends_with("[[{{node b}}]]"), "{}", error.message);
    assert_eq!(run("a = Number 1; out = Out a"), 1);
}

#[test]
fn a_panic_is_an_error_of_its_step() {
    let error = try_run("a = Number 1; b = Panic a; out = Out b").unwrap_err();
    assert_eq!(error.code, Code::Internal);
    assert!(error.message.contains("on purpose"), "{}", error.message);
}

#[test]
fn frames_have_tensorflows_keys() {
    assert_eq!(crate::frame::frame_key(0, 0, "loop/while_context"), 6_339_987_812_709_914_503);
}

#[test]
fn different_frames_must_not_meet() {
    let text = "a = Number 1; e = Enter a frame; b = Sum e a; out = Out b";
    let error = try_run(text).unwrap_err();
    assert!(error.message.contains("inputs from different frames"), "{}", error.message);
}

#[test]
fn a_trace_shows_the_nodes_of_functions_in_place_of_calls() {
    let graph = "a = Number 2; b = twice a; c = twice b; out = Out c";
    assert_eq!(traced(graph, false), ["a", "sum", "sum"]);
    assert_eq!(traced(graph, true), ["a", "b", "c", "sum", "sum"]);
}

#[test]
fn work_that_panics_does_not_end_its_thread() {
    let threads = crate::Threads::new(1);
    let (send, receive) = std::sync::mpsc::channel();
    threads.spawn(Box::new(|| panic!("of the test")));
    threads.spawn(Box::new(move || send.send(7).unwrap()));
    assert_eq!(receive.recv(), Ok(7));
}
