//! When a notice is shown.

use super::*;

#[test]
fn a_notice_is_shown_after_its_delay_and_not_before() {
    let (send, shown) = channel();
    let notice = Notice::after(Duration::ZERO, move || send.send("waiting").unwrap()).unwrap();
    assert_eq!(shown.recv(), Ok("waiting"));
    drop(notice);
    let (send, shown) = channel();
    drop(Notice::after(Duration::from_secs(3600), move || send.send("waiting").unwrap()).unwrap());
    assert!(shown.recv().is_err(), "a notice that was dropped in time shows nothing");
}
