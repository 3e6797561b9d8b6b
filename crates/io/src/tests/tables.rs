//! Tables, byte for byte, and the keys of slices.

use super::{bytes, fixture, holding};
use crate::slice::parse_shape_and_slice;
use crate::{FileSystems, Table, TableBuilder, TensorSlice, ordered};
use status::Result;

fn rewritten(name: &str) -> Vec<u8> {
    let systems = FileSystems::local();
    let table = Table::open(&systems, &fixture(name)).unwrap();
    let mut builder = TableBuilder::create(&systems, "ram://table").unwrap();
    for (key, value) in table.entries().unwrap() {
        builder.add(&key, &value).unwrap();
        assert_eq!(table.get(&key).unwrap().as_ref(), Some(&value));
    }
    let size = builder.finish().unwrap();
    assert_eq!(systems.stat("ram://table").unwrap().size, size);
    systems.read("ram://table").unwrap().to_vec()
}

#[test]
fn tables_are_written_as_tensorflow_writes_them() {
    for name in ["model.index", "sharded/model-3.index", "unmerged/part-0.index", "first_format"] {
        assert!(rewritten(name) == bytes(name), "{name}");
    }
}

#[test]
fn tables_of_many_blocks_are_searched() {
    let systems = FileSystems::local();
    let mut builder = TableBuilder::create(&systems, "ram://table").unwrap();
    let key = |number: usize| format!("key/{:07}", number * 3).into_bytes();
    for number in 0..20_000 {
        builder.add(&key(number), &vec![number as u8; number % 97]).unwrap();
    }
    assert!(builder.add(b"a", b"").is_err());
    builder.finish().unwrap();
    let table = Table::open(&systems, "ram://table").unwrap();
    assert_eq!(table.entries().unwrap().len(), 20_000);
    for number in (0..20_000).step_by(379) {
        assert_eq!(table.get(&key(number)).unwrap().unwrap(), vec![number as u8; number % 97]);
        assert!(table.get(&[&key(number)[..], b"x"].concat()).unwrap().is_none());
    }
    assert!(table.get(b"zzz").unwrap().is_none() && table.get(b"").unwrap().is_none());
}

#[test]
fn damaged_tables_never_panic() {
    let read = |file: &[u8]| -> Result<usize> { Ok(Table::open(&holding(file), "ram://file")?.entries()?.len()) };
    for name in ["model.index", "first_format"] {
        let whole = bytes(name);
        let count = read(&whole).unwrap();
        for place in 0..whole.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[place] ^= change;
                // Padding of the footer and the block of filters may change; whatever else does is found out.
                assert!(read(&damaged).is_ok_and(|found| found == count) || read(&damaged).is_err());
            }
            assert!(read(&whole[..place]).is_err(), "{place} bytes");
        }
    }
}

/// What the comments of TensorFlow's `ordered_code.cc` give as examples, and every length.
#[test]
fn numbers_keep_their_order() {
    let coded = |value: i64| {
        let mut bytes = Vec::new();
        ordered::put_signed(&mut bytes, value);
        bytes
    };
    assert_eq!(coded(0x424242), [0xf0, 0x42, 0x42, 0x42]);
    assert_eq!(coded(-0x800), [0x38, 0]);
    assert_eq!((coded(0), coded(-1), coded(63), coded(-64)), (vec![0x80], vec![0x7f], vec![0xbf], vec![0x40]));
    let mut values: Vec<i64> =
        (0..63).flat_map(|bit| [1i64 << bit, (1 << bit) - 1, -(1 << bit), -(1 << bit) - 1]).collect();
    values.extend([i64::MAX, i64::MIN]);
    values.sort();
    values.dedup();
    for pair in values.windows(2) {
        assert!(coded(pair[0]) < coded(pair[1]), "{pair:?}");
    }
    for value in values {
        let bytes = coded(value);
        assert_eq!(ordered::take_signed(&mut &bytes[..]), Some(value));
        assert_eq!(ordered::take_signed(&mut &bytes[..bytes.len() - 1]), None);
    }
}

#[test]
fn keys_of_slices_come_apart() {
    let slice = TensorSlice::parse("0,200:-:5,1").unwrap();
    let name = b"a\0b\xffc";
    assert_eq!(TensorSlice::from_key(&slice.key(name)).unwrap(), (name.to_vec(), slice.clone()));
    let key = slice.key(name);
    (0..key.len()).for_each(|length| assert!(TensorSlice::from_key(&key[..length]).is_err()));
}

#[test]
fn slices_are_written_as_in_tensorflow() {
    let (shape, slice, part) = parse_shape_and_slice("4 10 0,2:-").unwrap();
    assert_eq!(
        (shape.to_string(), slice.to_string(), part.to_string()),
        ("[4,10]".into(), "0,2:-".into(), "[2,10]".into())
    );
    let said = |text: &str| parse_shape_and_slice(text).unwrap_err().message;
    assert_eq!(said("4"), "Need least two elements in shape_and_slice specification: 4");
    assert_eq!(said("x 0,1"), "Non numerical dimension in shape_and_slice: x 0,1");
    assert_eq!(said("4 1"), "Expected a pair of numbers or '-' but got '1': string = 1");
    assert_eq!(
        said("4 -1,2"),
        "Expected non-negative start and positive length but got start = -1, length = 2: string = -1,2"
    );
    assert_eq!(said("4 3,2"), "Extent in dimension 0 out of bounds: shape = [4], slice = 3,2");
    assert_eq!(said("4 3,2:-"), "Mismatching ranks: shape = [4], slice = 3,2:-");
}
