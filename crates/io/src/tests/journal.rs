//! Journals: what was written is there again, also after the writer was cut off at any byte.

use super::Folder;
use crate::journal::{Change, Entry, Journal, Values};
use status::Code;
use std::path::Path;
use tensor::Tensor;

pub(super) fn entry(name: &str) -> Entry {
    Entry { reference: false, container: "ps".to_string(), name: name.to_string() }
}

/// Opens a journal that is closed. Between the fork and the exec of a program that another test starts, that program
/// has our files, and so the journal's lock.
pub(super) fn open(folder: &Path) -> (Journal, Values) {
    let mut tries = 0;
    loop {
        match Journal::open(folder) {
            Err(error) if error.code == Code::FailedPrecondition && tries < 1_000_000 => tries += 1,
            opened => return opened.unwrap(),
        }
        std::thread::yield_now();
    }
}

fn values(folder: &Path) -> Values {
    open(folder).1
}

fn numbers(values: &Values, name: &str) -> Vec<f32> {
    values[&entry(name)].values::<f32>().unwrap().to_vec()
}

#[test]
fn the_last_values_are_there_again() {
    let folder = Folder::new();
    {
        let (journal, before) = open(folder.path());
        assert!(before.is_empty());
        let w = Tensor::from([[1f32, 2.], [3., 4.], [5., 6.]]);
        journal.append(&entry("w"), &Change::Value(&w)).unwrap();
        let changed = Tensor::from([[1f32, 2.], [30., 40.], [5., 6.]]);
        journal.append(&entry("w"), &Change::Rows(&changed, &[1])).unwrap();
        journal.append(&entry("text"), &Change::Value(&Tensor::from(["a", "", "bc"]))).unwrap();
        journal.append(&entry("step"), &Change::Value(&Tensor::from(7i64))).unwrap();
        journal.append(&entry("step"), &Change::Value(&Tensor::from(8i64))).unwrap();
        journal.append(&entry("gone"), &Change::Value(&w)).unwrap();
        journal.append(&entry("gone"), &Change::Gone).unwrap();
        let other = Entry { container: "other".to_string(), ..entry("w") };
        journal.append(&other, &Change::Value(&w)).unwrap();
        journal.append(&Entry { container: "other".to_string(), ..entry("") }, &Change::Forgotten).unwrap();
    }
    let found = values(folder.path());
    let names: Vec<&str> = found.keys().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["step", "text", "w"]);
    assert_eq!(numbers(&found, "w"), [1., 2., 30., 40., 5., 6.]);
    assert_eq!(found[&entry("step")].to_scalar::<i64>().unwrap(), 8);
    assert_eq!(found[&entry("text")].strings().unwrap(), [&b"a"[..], b"", b"bc"]);
}

#[test]
fn a_writer_cut_off_anywhere_leaves_what_was_complete() {
    let folder = Folder::new();
    let mut ends = Vec::new();
    let segment = folder.path().join("00000001.journal");
    {
        let (journal, _) = open(folder.path());
        for step in 1..=4i64 {
            journal.append(&entry("step"), &Change::Value(&Tensor::from(step))).unwrap();
            ends.push(std::fs::metadata(&segment).unwrap().len());
        }
    }
    let whole = std::fs::read(&segment).unwrap();
    for cut in 0..whole.len() {
        let _ = std::fs::remove_dir_all(folder.path());
        std::fs::create_dir_all(folder.path()).unwrap();
        std::fs::write(&segment, &whole[..cut]).unwrap();
        let complete = ends.iter().filter(|&&end| end <= cut as u64).count();
        let found = values(folder.path());
        let step = found.get(&entry("step")).map_or(0, |step| step.to_scalar::<i64>().unwrap());
        assert_eq!(step, complete as i64, "cut at {cut}");
        let again = values(folder.path()); // the torn end is gone, though its segment is no longer the last
        assert_eq!(again.len(), found.len(), "cut at {cut}");
    }
}

#[test]
fn damage_is_named() {
    let folder = Folder::new();
    let segment = folder.path().join("00000001.journal");
    {
        let (journal, _) = open(folder.path());
        journal.append(&entry("a"), &Change::Value(&Tensor::from(1i64))).unwrap();
        journal.append(&entry("b"), &Change::Value(&Tensor::from(2i64))).unwrap();
        journal.sync().unwrap();
        journal.append(&entry("c"), &Change::Value(&Tensor::from(3i64))).unwrap();
    }
    let whole = std::fs::read(&segment).unwrap();
    for at in [0, 8, 16, 20, 27, 33, 50] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&segment, bytes).unwrap();
        let error = Journal::open(folder.path()).err().expect("a byte is wrong");
        assert_eq!(error.code, Code::DataLoss, "byte {at}");
        assert!(error.message.contains("00000001.journal"), "{error}");
    }
    std::fs::write(&segment, &whole[..60]).unwrap();
    assert_eq!(Journal::open(folder.path()).err().expect("the end is missing").code, Code::DataLoss);
    // What was not on the disk may be anything.
    let mut bytes = whole.clone();
    bytes[whole.len() - 30] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    assert_eq!(values(folder.path()).keys().map(|entry| &*entry.name).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn other_files_are_named() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path()).unwrap();
    std::fs::write(folder.path().join("00000001.journal"), [7; 100]).unwrap();
    let error = Journal::open(folder.path()).err().expect("no segment");
    assert_eq!(error.code, Code::DataLoss);
    assert!(error.message.ends_with("00000001.journal: not a segment of a journal of this version"), "{error}");
    std::fs::remove_file(folder.path().join("00000001.journal")).unwrap();
    std::fs::write(folder.path().join(format!("{}.journal", u64::MAX)), b"").unwrap();
    assert!(values(folder.path()).is_empty());
}

#[test]
fn old_segments_go_and_one_process_writes() {
    let folder = Folder::new();
    let (journal, _) = open(folder.path());
    let error = Journal::open(folder.path()).err().expect("it is open already");
    assert_eq!(error.code, Code::FailedPrecondition);
    journal.append(&entry("a"), &Change::Value(&Tensor::from(1i64))).unwrap();
    let segment = journal.rotate().unwrap();
    assert_eq!(journal.bytes(), 0);
    journal.append(&entry("a"), &Change::Value(&Tensor::from(1i64))).unwrap();
    journal.drop_before(segment).unwrap();
    let files =
        || std::fs::read_dir(folder.path()).unwrap().flatten().filter(|f| f.path().extension().is_some()).count();
    assert_eq!(files(), 1);
    drop(journal);
    assert_eq!(values(folder.path())[&entry("a")].to_scalar::<i64>().unwrap(), 1);
}

#[test]
fn nothing_is_written_after_a_new_segment_could_not_be_begun() {
    let folder = Folder::new();
    let (journal, _) = open(folder.path());
    let value = Tensor::from(1i64);
    journal.append(&entry("a"), &Change::Value(&value)).unwrap();
    std::fs::write(folder.path().join("00000002.journal"), b"").unwrap(); // of another program
    let error = journal.rotate().unwrap_err();
    assert!(error.message.contains("00000002.journal"), "{error}");
    let again = journal.append(&entry("a"), &Change::Value(&Tensor::from(2i64))).unwrap_err();
    assert_eq!(again, error);
    drop(journal);
    assert_eq!(values(folder.path())[&entry("a")].to_scalar::<i64>().unwrap(), 1);
}

#[test]
fn a_segment_of_which_only_the_length_reached_the_disk_is_empty() {
    let folder = Folder::new();
    {
        let (journal, _) = open(folder.path());
        journal.append(&entry("a"), &Change::Value(&Tensor::from(1i64))).unwrap();
        journal.sync().unwrap();
    }
    std::fs::write(folder.path().join("00000002.journal"), [0; 20]).unwrap();
    for _ in 0..2 {
        assert_eq!(values(folder.path())[&entry("a")].to_scalar::<i64>().unwrap(), 1);
    }
}

/// The values are written anew while they change: w, then its middle row, then b.
fn write_anew(journal: &Journal) -> u64 {
    let segment = journal.rotate().unwrap();
    let changed = Tensor::from([[1f32, 2.], [30., 40.]]);
    journal.append(&entry("w"), &Change::Rows(&changed, &[1])).unwrap();
    journal.append(&entry("w"), &Change::Value(&changed)).unwrap();
    let later = Tensor::from([[10f32, 20.], [30., 40.]]);
    journal.append(&entry("w"), &Change::Rows(&later, &[0])).unwrap();
    journal.append(&entry("b"), &Change::Value(&Tensor::from(8i64))).unwrap();
    segment
}

fn write_first(journal: &Journal) {
    journal.append(&entry("w"), &Change::Value(&Tensor::from([[1f32, 2.], [3., 4.]]))).unwrap();
    journal.append(&entry("b"), &Change::Value(&Tensor::from(8i64))).unwrap();
}

#[test]
fn rows_may_change_before_their_value_is_written_anew() {
    let folder = Folder::new();
    {
        let (journal, _) = open(folder.path());
        write_first(&journal);
        let segment = write_anew(&journal);
        journal.drop_before(segment).unwrap();
    }
    assert_eq!(numbers(&values(folder.path()), "w"), [10., 20., 30., 40.]);
}

#[test]
fn rows_of_nothing_are_named() {
    let folder = Folder::new();
    {
        let (journal, _) = open(folder.path());
        journal.append(&entry("w"), &Change::Rows(&Tensor::from([[1f32]]), &[0])).unwrap();
    }
    let error = Journal::open(folder.path()).err().expect("there is no value");
    assert_eq!(error.code, Code::DataLoss);
    assert!(error.message.ends_with("rows of w without its value"), "{error}");
}

#[test]
fn a_process_killed_while_rewriting_the_journal_loses_nothing() {
    let folder = Folder::new();
    let paths = [folder.path().join("00000001.journal"), folder.path().join("00000002.journal")];
    {
        let (journal, _) = open(folder.path());
        write_first(&journal);
        write_anew(&journal);
    }
    let [old, new] = paths.each_ref().map(|path| std::fs::read(path).unwrap());
    let mut seen = Vec::new();
    for cut in 0..=new.len() {
        std::fs::remove_dir_all(folder.path()).unwrap();
        std::fs::create_dir_all(folder.path()).unwrap();
        std::fs::write(&paths[0], &old).unwrap();
        std::fs::write(&paths[1], &new[..cut]).unwrap();
        let found = values(folder.path());
        assert_eq!(found[&entry("b")].to_scalar::<i64>().unwrap(), 8, "cut at {cut}");
        seen.push(numbers(&found, "w"));
    }
    seen.dedup();
    assert_eq!(seen, [vec![1., 2., 3., 4.], vec![1., 2., 30., 40.], vec![10., 20., 30., 40.]]);
}
