//! Isotonic regression against its closed form: the lowest, over all starts before a place, of the highest mean to an end
//! after it.

use crate::Pool;
use crate::isotonic::isotonic;
use crate::philox::Philox;

#[test]
fn rows_are_what_the_closed_form_says() {
    let pool = Pool::new(2);
    for (rows, width) in [(0, 3), (3, 0), (1, 1), (7, 5), (3, 31), (400, 40)] {
        let words = Philox::new(rows as u64, width as u128);
        let given: Vec<f64> = words.words(0).take(rows * width).map(|word| f64::from(word % 16)).collect();
        let (mut found, mut runs) = (given.clone(), vec![-1; given.len()]);
        isotonic(&pool, width, &mut found, &mut runs);
        for (row, (values, runs)) in found.chunks(width.max(1)).zip(runs.chunks(width.max(1))).enumerate() {
            check(&given[row * width..][..width], values, runs);
        }
    }
}

fn check(given: &[f64], values: &[f64], runs: &[i32]) {
    for (place, value) in values.iter().enumerate() {
        assert!((value - closed_form(given, place)).abs() < 1e-9, "place {place} of {given:?}");
    }
    for (pair, run) in values.windows(2).zip(runs.windows(2)) {
        assert!(pair[0] >= pair[1] && (run[1] == run[0] || run[1] == run[0] + 1), "{values:?} in {runs:?}");
        assert!(run[0] != run[1] || pair[0] == pair[1], "{values:?} in {runs:?}");
    }
}

fn closed_form(row: &[f64], place: usize) -> f64 {
    let mean = |start: usize, end: usize| row[start..=end].iter().sum::<f64>() / (end + 1 - start) as f64;
    let highest = |start| (place..row.len()).map(|end| mean(start, end)).fold(f64::MIN, f64::max);
    (0..=place).map(highest).fold(f64::MAX, f64::min)
}
