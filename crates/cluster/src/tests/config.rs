//! A client's configuration, completed with the default of a server.

use crate::SessionConfig;
use crate::tests::ms;

#[test]
fn a_client_keeps_its_own_values_and_gets_the_rest_from_the_default() {
    let client = SessionConfig {
        device_filters: vec!["/job:ps".to_string()],
        step_timeout: Some(ms(5)),
        intra_op_threads: 2,
        device_count: vec![("CPU".to_string(), 1)],
        isolate_state: true,
        ..SessionConfig::default()
    };
    let server = SessionConfig {
        device_filters: vec!["/job:worker".to_string()],
        step_timeout: Some(ms(9)),
        intra_op_threads: 3,
        inter_op_threads: 4,
        device_count: vec![("CPU".to_string(), 8), ("GPU".to_string(), 0)],
        soft_placement: true,
        ..SessionConfig::default()
    };
    let both = client.or_default(&server);
    assert_eq!(both.device_filters, ["/job:worker", "/job:ps"]);
    assert_eq!((both.step_timeout, both.intra_op_threads, both.inter_op_threads), (Some(ms(5)), 2, 4));
    assert_eq!(both.device_count, [("CPU".to_string(), 1), ("GPU".to_string(), 0)]);
    assert!(both.soft_placement && both.isolate_state && !both.log_placement);
}
