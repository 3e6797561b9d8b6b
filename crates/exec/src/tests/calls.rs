//! Functions that call themselves, each other, and others in long chains.

use super::toy::{cancelled, try_run_calls};
use status::Code;

/// The sum of the numbers up to `n`, by a function that calls itself while `n` is positive.
const SUM_UP_TO: &str = "up_to(n: int32) -> r: int32 = zero = Number 0; one = Number -1; p = Less zero:out:0 n; \
     s = Switch n p:out:0; less = Sum s:t:0 one:out:0; rest = up_to less:out:0; all = Sum rest:r:0 s:t:0; \
     none = Identity s:f:0; m = Merge all:out:0 none:out:0; r = m:out:0";

/// `next0` to `next{count}`, each of which calls the one after it as often as `calls` says and adds the results.
fn chain(count: usize, calls: usize) -> Vec<String> {
    let last = format!("next{count}(x: int32) -> y: int32 = a = Number 1; s = Sum x a:out:0; y = s:out:0");
    let link = |place: usize| {
        let (next, name) = (place + 1, format!("next{place}"));
        let second = if calls == 2 { format!("b = next{next} x") } else { "b = Number 0".to_string() };
        let output = if calls == 2 { "b:y:0" } else { "b:out:0" };
        format!("{name}(x: int32) -> y: int32 = a = next{next} x; {second}; s = Sum a:y:0 {output}; y = s:out:0")
    };
    (0..count).map(link).chain([last]).collect()
}

fn run_chain(count: usize) -> status::Result<i32> {
    let functions = chain(count, 1);
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    try_run_calls("x = Number 5; c = next0 x; out = Out c", &functions)
}

#[test]
fn a_recursion_that_ends_has_its_result() {
    for n in [0, 1, 7, 8, 100, 5_000] {
        let result = try_run_calls(&format!("n = Number {n}; c = up_to n; out = Out c"), &[SUM_UP_TO]);
        assert_eq!(result, Ok(n * (n + 1) / 2));
    }
}

#[test]
fn a_function_of_fibonacci_numbers_calls_itself_twice() {
    let fibonacci = "fib(n: int32) -> r: int32 = one = Number 1; a = Number -1; b = Number -2; p = Less one:out:0 n; \
         s = Switch n p:out:0; x = Sum s:t:0 a:out:0; y = Sum s:t:0 b:out:0; u = fib x:out:0; v = fib y:out:0; \
         w = Sum u:r:0 v:r:0; i = Identity s:f:0; m = Merge w:out:0 i:out:0; r = m:out:0";
    assert_eq!(try_run_calls("n = Number 20; c = fib n; out = Out c", &[fibonacci]), Ok(6765));
}

#[test]
fn functions_that_call_themselves_without_end_fail() {
    let itself = "f(x: int32) -> y: int32 = a = f x; y = a:y:0";
    let (one, other) = (
        "f(x: int32) -> y: int32 = a = g x; y = a:y:0",
        "g(x: int32) -> y: int32 = a = f x; s = Sum a:y:0 x; y = s:out:0",
    );
    for functions in [&[itself][..], &[one, other]] {
        let error = try_run_calls("x = Number 5; c = f x; out = Out c", functions).unwrap_err();
        assert_eq!(error.code, Code::ResourceExhausted);
        assert!(error.message.starts_with("Calls of functions nest deeper than 10000; the last is of function "));
    }
}

#[test]
fn thousands_of_functions_may_nest() {
    assert_eq!(run_chain(3_000), Ok(6));
}

#[test]
fn calls_that_double_with_every_level_can_be_cancelled() {
    let functions = chain(40, 2);
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    let result = cancelled("x = Number 5; c = next0 x; out = Out c", &functions);
    assert_eq!(result.unwrap_err().code, Code::Cancelled);
}

#[test]
fn dead_loops_in_loops_end_without_recursion() {
    let count = 20_000;
    let enters: String = (1..count).map(|i| format!("e{i} = Enter e{} f{i}; ", i - 1)).collect();
    let exits: String = (1..count).rev().map(|i| format!("x{i} = Exit x{}; ", i + 1)).collect();
    let text = format!(
        "x = Number 5; y = Number 1; p = Less x y; s = Switch x p; e0 = Enter s:1 f0; {enters} \
         x{count} = Exit e{}; {exits} x0 = Exit x1; g = Identity s; r = Merge x0 g; out = Out r",
        count - 1
    );
    assert_eq!(super::run(&text), 5);
}
