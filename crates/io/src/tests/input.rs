//! Sequential reading in blocks, compared with the whole contents.

use super::holding;
use crate::{Compression, FileSystems, InputStream};

fn open(systems: &FileSystems, block_size: usize) -> InputStream {
    InputStream::open(systems, "ram://file", Compression::None, block_size).unwrap()
}

fn contents(size: usize) -> Vec<u8> {
    (0..size).map(|index| if index % 7 == 3 { b'\n' } else { (index % 251) as u8 | 128 }).collect()
}

#[test]
fn pieces_of_all_sizes_are_the_contents() {
    for size in [0, 1, 4095, 4096, 4097, 20_000] {
        let expected = contents(size);
        let systems = holding(&expected);
        for piece in [1, 13, 4096, 5000, 100_000] {
            let (mut stream, mut found) = (open(&systems, 1), Vec::new());
            loop {
                let bytes = stream.read(piece).unwrap();
                found.extend_from_slice(&bytes);
                assert_eq!(stream.offset(), found.len() as u64);
                if bytes.len() < piece {
                    break;
                }
            }
            assert!(found == expected, "{size} bytes in pieces of {piece}");
        }
    }
}

#[test]
fn lines_are_those_of_the_contents() {
    let expected = contents(20_000);
    let systems = holding(&expected);
    let mut stream = open(&systems, 1);
    for line in expected.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        assert_eq!(stream.read_line().unwrap().unwrap(), line);
    }
    assert_eq!(stream.read_line().unwrap(), None);
}

#[test]
fn a_wrong_length_allocates_no_more_than_the_file_has() {
    let systems = holding(&contents(100));
    let mut stream = open(&systems, usize::MAX);
    assert_eq!(stream.peek(usize::MAX).unwrap().len(), 100);
    assert_eq!(stream.read(usize::MAX).unwrap().len(), 100);
    assert!(!stream.skip(u64::MAX).unwrap());
}

#[test]
fn reading_begins_at_an_offset_or_at_the_end() {
    let systems = holding(b"abcdef");
    for (offset, expected) in [(0, "abcdef"), (4, "ef"), (6, ""), (u64::MAX, "")] {
        let mut stream = InputStream::open_at(&systems, "ram://file", Compression::None, 0, offset).unwrap();
        assert_eq!(stream.read(10).unwrap(), expected.as_bytes());
    }
}
