//! The number of candidates of ApproxTopK.

use crate::nn::approx_top_k::Partial;

#[test]
fn the_number_of_candidates_is_that_of_tensorflows_shapes() {
    // The elements, k, the recall, the elements of all parts, the rank; and what TensorFlow 2.21 infers.
    let cases = [
        (100, 10, 0.95, None, 2, 100),
        (500, 1, 0.95, None, 2, 128),
        (500, 10, 0.95, None, 2, 256),
        (5000, 10, 0.95, None, 2, 384),
        (100_000, 10, 0.95, None, 2, 256),
        (100_000, 10, 0.5, None, 2, 256),
        (100_000, 10, 0.95, Some(1_000_000), 2, 128),
        (3000, 5, 0.95, None, 1, 2048),
        (5000, 10, 1.0, None, 2, 5000),
    ];
    for (size, count, recall, whole, rank, expected) in cases {
        let partial = Partial { recall, whole };
        assert_eq!(partial.candidates(count, size, rank), expected, "{size} elements, k = {count}, recall {recall}");
    }
}
