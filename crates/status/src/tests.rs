//! Codes, printing and conversions of errors.

use super::*;
use std::io;

#[test]
fn every_number_of_grpc_is_the_code_with_that_number() {
    for number in 0..=16 {
        assert_eq!(Code::from_number(number) as i32, number);
    }
}

#[test]
fn undefined_numbers_are_unknown() {
    for number in [-1, 17, i32::MIN, i32::MAX] {
        assert_eq!(Code::from_number(number), Code::Unknown, "{number}");
    }
}

#[test]
fn names_are_distinct_and_in_upper_case() {
    let names: std::collections::BTreeSet<_> = (0..=16).map(|number| Code::from_number(number).name()).collect();
    assert_eq!(names.len(), 17);
    for name in names {
        assert!(name.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase()), "{name}");
    }
}

#[test]
fn an_error_prints_its_code_and_message() {
    assert_eq!(not_found!("no variable named {}", "w").to_string(), "NOT_FOUND: no variable named w");
}

#[test]
fn every_macro_builds_its_code() {
    let errors = [
        (invalid!("x"), Code::InvalidArgument),
        (not_found!("x"), Code::NotFound),
        (unimplemented_op!("x"), Code::Unimplemented),
        (internal!("x"), Code::Internal),
        (failed_precondition!("x"), Code::FailedPrecondition),
        (exhausted!("x"), Code::ResourceExhausted),
        (out_of_range!("x"), Code::OutOfRange),
        (cancelled!("x"), Code::Cancelled),
        (aborted!("x"), Code::Aborted),
        (already_exists!("x"), Code::AlreadyExists),
        (unavailable!("x"), Code::Unavailable),
    ];
    for (error, code) in errors {
        assert_eq!(error, Error { code, message: "x".to_string(), derived: false });
    }
}

#[test]
fn a_derived_error_keeps_code_and_message() {
    let error = aborted!("step 7");
    let derived = error.clone().derived();
    assert!(derived.derived);
    assert_eq!((derived.code, derived.message), (error.code, error.message));
}

#[test]
fn the_first_node_is_named_and_no_other() {
    let error = invalid!("shapes differ").at_node("layer/add").at_node("outer/call");
    assert_eq!(error.message, "shapes differ\n\t [[{{node layer/add}}]]");
}

#[test]
fn io_errors_get_the_code_of_their_number() {
    let cases = [
        (2, Code::NotFound),
        (13, Code::PermissionDenied),
        (17, Code::AlreadyExists),
        (22, Code::InvalidArgument),
        (21, Code::FailedPrecondition),
        (28, Code::ResourceExhausted),
        (27, Code::OutOfRange),
        (95, Code::Unimplemented),
        (111, Code::Unavailable),
        (116, Code::Aborted),
        (110, Code::DeadlineExceeded),
        (125, Code::Cancelled),
        (9999, Code::Unknown),
    ];
    for (number, code) in cases {
        assert_eq!(Error::from(io::Error::from_raw_os_error(number)).code, code, "error number {number}");
    }
}

#[test]
fn io_errors_lose_the_number_that_rust_appends() {
    assert_eq!(Error::from(io::Error::from_raw_os_error(2)).message, "No such file or directory");
    let other = Error::from(io::Error::other("half a record"));
    assert_eq!((other.code, other.message.as_str()), (Code::Unknown, "half a record"));
}

#[test]
fn the_question_mark_converts_io_errors() {
    fn read() -> Result<Vec<u8>> {
        Ok(std::fs::read("/nonexistent/file")?)
    }
    assert_eq!(read().unwrap_err().code, Code::NotFound);
}
