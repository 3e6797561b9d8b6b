//! When the progress of a save or a restore is logged.

use crate::checkpoint::pace::Pace;
use std::time::{Duration, Instant};

#[test]
fn only_long_operations_are_logged_and_not_too_often() {
    let begin = Instant::now();
    let mut pace = Pace::new(begin);
    let at = |seconds: f64| begin + Duration::from_secs_f64(seconds);
    let logged: Vec<Option<u64>> = [0.0, 1.0, 4.9, 5.0, 5.1, 9.9, 10.5].map(|time| pace.moved(10, at(time))).to_vec();
    assert_eq!(logged, [None, None, None, Some(40), None, None, Some(70)]);
}
