//! Large values of a journal, which are written over and over: what was complete is there again, after a kill at any byte
//! and after a power cut that left any pages.

use super::Folder;
use super::journal::{entry, open};
use crate::journal::{Change, Entry, Journal, Values};
use status::Code;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tensor::{DType, Shape, Tensor};

/// Enough elements of 8 bytes for a value to have slots.
const LARGE: usize = 9000;
const SECTOR: usize = 512;
const PAGE: usize = 4096;

fn filled(len: usize, number: i64) -> Tensor {
    Tensor::from(vec![number; len])
}

fn put(journal: &Journal, name: &str, value: &Tensor) {
    journal.append(&entry(name), &Change::Value(value)).unwrap();
}

/// What a task does with a journal when it starts and when the log is long.
fn renew(journal: &Journal, values: &Values) {
    let segment = journal.rotate().unwrap();
    values.iter().for_each(|(entry, value)| journal.renew(entry, value).unwrap());
    journal.drop_before(segment).unwrap();
}

/// The number that all elements are; none if there is no value.
fn number(values: &Values, name: &str) -> Option<i64> {
    let value = values.get(&entry(name))?.values::<i64>().unwrap().to_vec();
    assert!(value.iter().all(|&element| element == value[0]), "{name} is of several values");
    Some(value[0])
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let paths = std::fs::read_dir(folder).unwrap().flatten().map(|file| file.path());
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn set_files(folder: &Path, files: &Files) {
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    files.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

fn slots(files: &Files) -> (&PathBuf, &Vec<u8>) {
    files.iter().find(|(path, _)| path.extension().is_some_and(|end| end == "slots")).expect("a file of slots")
}

#[test]
fn large_values_are_there_again_and_take_no_more_room() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    let bytes = || files(path).values().map(Vec::len).sum::<usize>();
    {
        let (journal, _) = open(path);
        for step in 0..100 {
            put(&journal, "w", &filled(LARGE, step));
            put(&journal, "step", &Tensor::from(step));
            if step % 7 == 0 {
                journal.sync().unwrap();
            }
        }
        assert!(bytes() < 5 * 8 * (LARGE + PAGE), "{} bytes", bytes());
    }
    for _ in 0..3 {
        let (journal, found) = open(path);
        assert_eq!(number(&found, "w"), Some(99));
        assert_eq!(number(&found, "step"), Some(99));
        let before = bytes();
        renew(&journal, &found);
        assert!(bytes() <= before, "a value that is in a slot was written again");
    }
}

#[test]
fn rows_are_on_top_of_the_value_that_they_are_of() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    {
        let (journal, _) = open(path);
        put(&journal, "w", &two_rows(LARGE, [1, 1]));
        journal.append(&entry("w"), &Change::Rows(&two_rows(LARGE, [1, 2]), &[1])).unwrap();
        put(&journal, "w", &two_rows(LARGE, [3, 3])); // the row before it is in it
        journal.append(&entry("w"), &Change::Rows(&two_rows(LARGE, [4, 3]), &[0])).unwrap();
    }
    let (journal, found) = open(path);
    assert_eq!(rows_of(&found, "w"), Some((LARGE, [4, 3])));
    renew(&journal, &found); // the log of the row goes
    journal.append(&entry("w"), &Change::Rows(&two_rows(LARGE, [4, 5]), &[1])).unwrap();
    drop(journal);
    assert_eq!(rows_of(&open(path).1, "w"), Some((LARGE, [4, 5])));
}

#[test]
fn a_writer_killed_at_any_byte_leaves_the_value_before() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    let (before, after) = {
        let (journal, _) = open(path);
        (1..=6).for_each(|step| put(&journal, "w", &filled(LARGE, step)));
        let before = files(path);
        put(&journal, "w", &filled(LARGE, 7));
        (before, files(path))
    };
    let (name, old) = slots(&before);
    let (_, new) = slots(&after);
    assert_eq!(old.len(), new.len());
    let changed: Vec<usize> = (0..new.len()).filter(|&at| old[at] != new[at]).collect();
    let start = changed[0] / PAGE * PAGE;
    // The value comes first, then the page before it.
    let order: Vec<usize> = (start + PAGE..start + PAGE + 8 * LARGE).chain(start..start + PAGE).collect();
    assert!(changed.iter().all(|at| order.contains(at)), "only one slot is written");
    let page = 8 * LARGE;
    for cut in (0..order.len()).filter(|cut| cut % 997 == 0 || (page..page + 200).contains(cut)).chain([order.len()]) {
        let mut bytes = old.clone();
        order[..cut].iter().for_each(|&at| bytes[at] = new[at]);
        let complete = bytes == *new;
        set_files(path, &[(name.clone(), bytes)].into());
        let (journal, found) = open(path);
        assert_eq!(number(&found, "w"), Some(if complete { 7 } else { 6 }), "cut at {cut}");
        put(&journal, "w", &filled(LARGE, 8)); // not where the only complete value is
        drop(journal);
        assert_eq!(number(&open(path).1, "w"), Some(8), "cut at {cut}");
    }
}

#[test]
fn the_first_value_of_a_killed_writer_is_there_as_a_whole_or_not_at_all() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    put(&open(path).0, "w", &filled(LARGE, 1));
    let after = files(path);
    let (name, new) = slots(&after);
    let mut without_page = new.clone();
    without_page[..PAGE].fill(0);
    for (bytes, expected) in [(without_page, None), (new[..PAGE + 99].to_vec(), None), (new.clone(), Some(1))] {
        set_files(path, &[(name.clone(), bytes)].into());
        let (journal, found) = open(path);
        assert_eq!(number(&found, "w"), expected);
        renew(&journal, &found);
        put(&journal, "w", &filled(LARGE, 2));
        drop(journal);
        assert_eq!(number(&open(path).1, "w"), Some(2));
    }
}

#[test]
fn damage_of_what_was_on_the_disk_is_named() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    {
        let (journal, _) = open(path);
        put(&journal, "w", &filled(LARGE, 1));
        put(&journal, "w", &filled(LARGE, 2));
        journal.sync().unwrap();
    }
    let whole = files(path);
    let (name, bytes) = slots(&whole);
    let slot: usize = name.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    for at in [9, 60, PAGE, PAGE + 8 * LARGE - 1] {
        let mut damaged = whole.clone();
        damaged.get_mut(name).unwrap()[at] ^= 1; // the older value is of no use any more
        set_files(path, &damaged);
        assert_eq!(number(&open(path).1, "w"), Some(2), "byte {at}");
        damaged.insert(name.clone(), bytes.clone());
        damaged.get_mut(name).unwrap()[slot + at] ^= 1;
        set_files(path, &damaged);
        let error = Journal::open(path).err().expect("a byte is wrong");
        assert_eq!(error.code, Code::DataLoss, "byte {at}");
        assert!(error.message.contains(&*name.to_string_lossy()), "{error}");
    }
    let mut short = whole.clone();
    short.get_mut(name).unwrap().truncate(slot + PAGE + 10);
    set_files(path, &short);
    assert_eq!(Journal::open(path).err().expect("the file is short").code, Code::DataLoss);
}

#[test]
fn a_file_of_any_bytes_is_an_error_or_empty() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    for name in ["0.slots", "4096.slots", "5000.slots", "x.slots", "18446744073709547520.slots"] {
        set_files(path, &[(path.join(name), vec![7; 9000])].into());
        let error = Journal::open(path).err().expect("no size of a slot");
        assert_eq!(error.code, Code::DataLoss, "{name}");
        assert!(error.message.contains(name), "{error}");
    }
    for name in ["8192.slots", "1099511627776.slots"] {
        for bytes in [vec![], vec![0; 50_000], vec![0; 4095]] {
            set_files(path, &[(path.join(name), bytes)].into());
            assert!(open(path).1.is_empty());
        }
        set_files(path, &[(path.join(name), vec![0xff; 50_000])].into());
        assert_eq!(Journal::open(path).err().expect("a mark of nothing").code, Code::DataLoss);
    }
}

#[test]
fn what_is_gone_stays_gone_and_its_room_is_used_again() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    let (mut journal, mut found) = open(path);
    let mut sizes = Vec::new();
    for round in 0..6 {
        assert!(found.is_empty(), "round {round}");
        renew(&journal, &found);
        put(&journal, "a", &filled(LARGE, round));
        put(&journal, "b", &filled(LARGE, round));
        put(&journal, "b", &filled(2, round)); // small: it is in the log
        journal.sync().unwrap();
        journal.append(&entry("a"), &Change::Gone).unwrap();
        journal.append(&entry(""), &Change::Forgotten).unwrap();
        if round % 2 == 0 {
            let segment = journal.rotate().unwrap();
            journal.drop_before(segment).unwrap();
        }
        sizes.push(slots(&files(path)).1.len());
        drop(journal);
        (journal, found) = open(path);
    }
    assert!(sizes[1] > 0);
    assert!(sizes.chunks(2).all(|two| two == [0, sizes[1]]), "room is given back, or used again: {sizes:?}");
}

/// A small generator of numbers that look random (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// What a power cut leaves: of each file any sectors that were written since they were synced; the log may be shorter.
fn cut_power(random: &mut Random, safe: &Files, now: &Files) -> Files {
    let mut left = now.clone();
    for (path, bytes) in &mut left {
        let safe = safe.get(path).cloned().unwrap_or_default();
        let old = [0, 1, 8, 16][random.below(4) as usize]; // sixteenths of its sectors
        for (at, sector) in bytes.chunks_mut(SECTOR).enumerate() {
            if random.below(16) < old {
                let start = (at * SECTOR).min(safe.len());
                let end = (start + sector.len()).min(safe.len());
                sector.fill(0);
                sector[..end - start].copy_from_slice(&safe[start..end]);
            }
        }
        if path.extension().is_none_or(|end| end != "slots") && random.below(2) == 0 {
            bytes.truncate(safe.len() + random.below((bytes.len() - safe.len()) as u64 + 1) as usize);
        }
    }
    left
}

/// Two rows, of which each has one number.
fn two_rows(len: usize, rows: [i64; 2]) -> Tensor {
    let mut value = Tensor::scratch_of(DType::I64, Shape::new(&[2, len])).unwrap();
    let all: Vec<i64> = rows.iter().flat_map(|&row| vec![row; len]).collect();
    value.values_mut::<i64>().unwrap().copy_from_slice(&all);
    value
}

/// How many numbers the rows have, and which; none if there is no value.
fn rows_of(values: &Values, name: &str) -> Option<(usize, [i64; 2])> {
    let value = values.get(&entry(name))?.values::<i64>().unwrap().to_vec();
    let rows: Vec<&[i64]> = value.chunks(value.len() / 2).collect();
    rows.iter().for_each(|row| assert!(row.iter().all(|number| *number == row[0]), "{name} is of several values"));
    Some((rows[0].len(), [rows[0][0], rows[1][0]]))
}

#[test]
fn a_power_cut_leaves_what_was_synced_or_newer() {
    const NAMES: [&str; 3] = ["a", "b", "c"];
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    let mut random = Random(1);
    let mut next = 0;
    for life in 0..300 {
        let (journal, found) = open(path);
        renew(&journal, &found);
        // Of each name, what it was since it was synced.
        let mut since: BTreeMap<&str, Vec<_>> = NAMES.iter().map(|&name| (name, vec![rows_of(&found, name)])).collect();
        let mut safe = files(path);
        for _ in 0..random.below(40) {
            let name = NAMES[random.below(3) as usize];
            let values = since.get_mut(name).unwrap();
            next += 1;
            match random.below(16) {
                0 => {
                    journal.append(&entry(name), &Change::Gone).unwrap();
                    values.push(None);
                }
                1 if random.below(4) == 0 => {
                    journal.append(&entry(""), &Change::Forgotten).unwrap();
                    since.values_mut().for_each(|values| values.push(None));
                }
                2..=3 => {
                    safe = files(path); // and nothing that is written after they are on the disk
                    journal.sync().unwrap();
                    since.values_mut().for_each(|values| drop(values.drain(..values.len() - 1)));
                }
                kind @ 4..=7 => {
                    let Some(Some((len, mut rows))) = values.last().copied() else { continue };
                    rows[kind as usize % 2] = next;
                    journal.append(&entry(name), &Change::Rows(&two_rows(len, rows), &[kind as usize % 2])).unwrap();
                    values.push(Some((len, rows)));
                }
                kind => {
                    let len = [3, 700, LARGE].get((kind as usize).wrapping_sub(8)).copied().unwrap_or(LARGE / 2);
                    put(&journal, name, &two_rows(len, [next; 2]));
                    values.push(Some((len, [next; 2])));
                }
            }
        }
        drop(journal);
        let now = files(path);
        set_files(path, &cut_power(&mut random, &safe, &now));
        let (_, found) = open(path);
        for (name, values) in since {
            let value = rows_of(&found, name);
            assert!(values.contains(&value), "life {life}: {name} is {value:?}, not one of {values:?}");
        }
    }
}

#[test]
fn two_worlds_and_containers_are_apart() {
    let folder = Folder::new();
    let path = Path::new(&folder.0);
    let other = [Entry { reference: true, ..entry("w") }, Entry { container: "x".to_string(), ..entry("w") }];
    {
        let (journal, _) = open(path);
        put(&journal, "w", &filled(LARGE, 1));
        for (at, entry) in other.iter().enumerate() {
            journal.append(entry, &Change::Value(&filled(LARGE, 2 + at as i64))).unwrap();
        }
        journal.append(&entry(""), &Change::Forgotten).unwrap();
    }
    let found = open(path).1;
    assert_eq!(found.keys().map(|entry| &*entry.container).collect::<Vec<_>>(), ["x"]);
    assert_eq!(found[&other[1]].values::<i64>().unwrap()[0], 3);
}
