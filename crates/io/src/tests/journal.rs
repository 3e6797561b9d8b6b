//! Journals: what was written is there again, also after the writer was cut off at any byte.

use crate::journal::{Change, Entry, Journal, Values};
use status::Code;
use std::path::{Path, PathBuf};
use tensor::Tensor;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("flowgrid-journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn entry(name: &str) -> Entry {
    Entry { reference: false, container: "ps".to_string(), name: name.to_string() }
}

/// Opens a journal that is closed. Between the fork and the exec of a program that another test starts, that program
/// has our files, and so the journal's lock.
fn open(folder: &Path) -> (Journal, Values) {
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
    let folder = Folder::new("last");
    {
        let (journal, before) = open(&folder.0);
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
    let found = values(&folder.0);
    let names: Vec<&str> = found.keys().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["step", "text", "w"]);
    assert_eq!(numbers(&found, "w"), [1., 2., 30., 40., 5., 6.]);
    assert_eq!(found[&entry("step")].to_scalar::<i64>().unwrap(), 8);
    assert_eq!(found[&entry("text")].strings().unwrap(), [&b"a"[..], b"", b"bc"]);
}

#[test]
fn a_writer_cut_off_anywhere_leaves_what_was_complete() {
    let folder = Folder::new("torn");
    let mut ends = Vec::new();
    let segment = folder.0.join("00000001.journal");
    {
        let (journal, _) = open(&folder.0);
        for step in 1..=4i64 {
            journal.append(&entry("step"), &Change::Value(&Tensor::from(step))).unwrap();
            ends.push(std::fs::metadata(&segment).unwrap().len());
        }
    }
    let whole = std::fs::read(&segment).unwrap();
    for cut in 0..whole.len() {
        let _ = std::fs::remove_dir_all(&folder.0);
        std::fs::create_dir_all(&folder.0).unwrap();
        std::fs::write(&segment, &whole[..cut]).unwrap();
        let complete = ends.iter().filter(|&&end| end <= cut as u64).count();
        let found = values(&folder.0);
        let step = found.get(&entry("step")).map_or(0, |step| step.to_scalar::<i64>().unwrap());
        assert_eq!(step, complete as i64, "cut at {cut}");
        let again = values(&folder.0); // the torn end is gone, though its segment is no longer the last
        assert_eq!(again.len(), found.len(), "cut at {cut}");
    }
}

#[test]
fn damage_is_named() {
    let folder = Folder::new("damage");
    let segment = folder.0.join("00000001.journal");
    {
        let (journal, _) = open(&folder.0);
        journal.append(&entry("a"), &Change::Value(&Tensor::from(1i64))).unwrap();
        journal.append(&entry("b"), &Change::Value(&Tensor::from(2i64))).unwrap();
    }
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let error = Journal::open(&folder.0).err().expect("a byte is wrong");
    assert_eq!(error.code, Code::DataLoss);
    assert!(error.message.contains("00000001.journal"), "{error}");
}

#[test]
fn old_segments_go_and_one_process_writes() {
    let folder = Folder::new("rotate");
    let (journal, _) = open(&folder.0);
    let error = Journal::open(&folder.0).err().expect("it is open already");
    assert_eq!(error.code, Code::FailedPrecondition);
    journal.append(&entry("a"), &Change::Value(&Tensor::from(1i64))).unwrap();
    let segment = journal.rotate().unwrap();
    assert_eq!(journal.bytes(), 0);
    journal.append(&entry("a"), &Change::Value(&Tensor::from(1i64))).unwrap();
    journal.drop_before(segment).unwrap();
    let files = || std::fs::read_dir(&folder.0).unwrap().flatten().filter(|f| f.path().extension().is_some()).count();
    assert_eq!(files(), 1);
    drop(journal);
    assert_eq!(values(&folder.0)[&entry("a")].to_scalar::<i64>().unwrap(), 1);
}
