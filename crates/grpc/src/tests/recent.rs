//! Requests that come twice.

use crate::server::recent::{REMEMBERED, Recent};

#[test]
fn a_number_is_taken_once_and_zero_always() {
    let recent = Recent::default();
    let check = |id| recent.check(id, "RunGraph (Worker)", || format!("request_id: {id}"));
    assert_eq!((check(0), check(0), check(7)), (Ok(()), Ok(()), Ok(())));
    let error = check(7).unwrap_err();
    assert_eq!(error.message, "The same RunGraph (Worker) request was received twice. request_id: 7");
    (8..8 + REMEMBERED as i64).for_each(|id| assert_eq!(check(id), Ok(())));
    assert_eq!(check(7), Ok(()), "the oldest are forgotten");
}
