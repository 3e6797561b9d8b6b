//! What errors say of numbers that are none.

use super::*;

#[test]
fn errors_say_what_is_expected() {
    assert_eq!(whole::<u32>("7"), Ok(7));
    for bad in ["current_task_index", "", "-1", "1.5"] {
        assert_eq!(whole::<u32>(bad), Err("expected a whole number, 0 or larger".to_string()), "{bad}");
    }
    assert_eq!(whole::<u32>("4294967296"), Err("the number is too large".to_string()));
    assert_eq!((decimal("0.005"), decimal("1e-3")), (Ok(0.005), Ok(0.001)));
    for bad in ["fast", "nan", "inf", ""] {
        assert_eq!(decimal(bad), Err("expected a number, such as 0.005".to_string()), "{bad}");
    }
    assert_eq!(seconds("0.5"), Ok(0.5));
    for bad in ["0", "86401", "soon", "nan"] {
        assert_eq!(seconds(bad), Err("expected a number of seconds from 0.1 to 86400".to_string()), "{bad}");
    }
}
