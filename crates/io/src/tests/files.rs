//! File systems, on disk and in memory: what they do, what they say, and which patterns match.

use super::Folder;
use crate::FileSystems;
use crate::fs::local::LocalWriter;
use crate::fs::{WritableFile, matches, path};
use status::Code;
use std::fs::File;
use std::io::BufWriter;

/// Runs a check on a folder of each file system.
fn on_each(check: impl Fn(&FileSystems, &str)) {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    check(&systems, &folder.0);
    check(&systems, &format!("file://{}/sub", folder.0).replace("/sub", ""));
    check(&systems, "ram://base");
}

fn said<T>(result: status::Result<T>) -> (Code, String) {
    let error = result.err().expect("an error");
    (error.code, error.message)
}

#[test]
fn files_are_written_read_renamed_and_deleted() {
    on_each(|systems, folder| {
        let name = |name: &str| format!("{folder}/{name}");
        systems.create_dirs(&name("a/b")).unwrap();
        systems.create_dirs(&name("a/b")).unwrap();
        systems.write(&name("a/b/one"), b"hello").unwrap();
        let mut more = systems.append(&name("a/b/one")).unwrap();
        more.append(b" world").unwrap();
        more.close().unwrap();
        assert_eq!(&systems.read(&name("a/b/one")).unwrap()[..], b"hello world");
        let mut middle = [0; 3];
        systems.open(&name("a/b/one")).unwrap().read_exact_at(4, &mut middle).unwrap();
        assert_eq!(&middle, b"o w");
        assert_eq!(systems.stat(&name("a/b/one")).unwrap().size, 11);
        assert!(systems.stat(&name("a/b")).unwrap().is_dir && systems.is_dir(&name("a")).unwrap());
        systems.copy(&name("a/b/one"), &name("a/two"), false).unwrap();
        assert_eq!(systems.list(&name("a")).unwrap(), ["b", "two"]);
        let exists = (Code::AlreadyExists, "file already exists".to_string());
        assert_eq!(said(systems.rename(&name("a/two"), &name("a/b/one"), false)), exists);
        systems.write(&name("a/two"), b"2").unwrap();
        systems.rename(&name("a/two"), &name("a/b/one"), true).unwrap();
        assert_eq!(&systems.read(&name("a/b/one")).unwrap()[..], b"2");
        assert!(!systems.exists(&name("a/two")).unwrap());
        systems.rename(&name("a"), &name("c"), false).unwrap();
        assert!(systems.exists(&name("c/b/one")).unwrap());
        systems.delete_recursively(&name("c")).unwrap();
        assert!(!systems.exists(&name("c")).unwrap());
    });
}

#[test]
fn errors_are_those_of_tensorflow() {
    on_each(|systems, folder| {
        let name = |name: &str| format!("{folder}/{name}");
        systems.create_dirs(&name("d")).unwrap();
        systems.write(&name("d/x"), b"").unwrap();
        let missing = |path: &str| (Code::NotFound, format!("{path}; No such file or directory"));
        let folder = |path: &str| (Code::FailedPrecondition, format!("{path}; Is a directory"));
        assert_eq!(said(systems.read(&name("no"))), missing(&name("no")));
        assert_eq!(said(systems.stat(&name("no"))), missing(&name("no")));
        assert_eq!(said(systems.delete(&name("no"))), missing(&name("no")));
        assert_eq!(said(systems.rename(&name("no"), &name("x"), false)), missing(&name("no")));
        assert_eq!(said(systems.read(&name("d"))), folder(&name("d")));
        assert_eq!(said(systems.create(&name("d"))), folder(&name("d")));
        assert_eq!(said(systems.delete(&name("d"))), folder(&name("d")));
        let no_folder = (Code::FailedPrecondition, format!("{} is not a directory", name("d/x")));
        assert_eq!(said(systems.create_dirs(&name("d/x"))), no_folder);
        assert_eq!(said(systems.create_dirs(&name("d/x/y"))), no_folder);
        assert_eq!(said(systems.of(&name("d")).unwrap().create_dir(&name("d"))).0, Code::AlreadyExists);
        assert_eq!(said(systems.delete_dir(&name("d"))).0, Code::FailedPrecondition);
        let gone = (Code::NotFound, format!("{} not found", name("gone")));
        assert_eq!(said(systems.delete_recursively(&name("gone"))), gone);
        systems.delete_recursively(&name("d")).unwrap();
    });
    let systems = FileSystems::local();
    let unknown = "File system scheme 'foo' not implemented (file: 'foo://bar/x')".to_string();
    assert_eq!(said(systems.read("foo://bar/x")), (Code::Unimplemented, unknown));
    let across = "Renaming ram://a to /tmp/flowgrid-no-such-file not implemented".to_string();
    assert_eq!(said(systems.rename("ram://a", "/tmp/flowgrid-no-such-file", true)), (Code::Unimplemented, across));
}

/// What `tf.io.gfile.glob` of TensorFlow 2.21 finds, sorted.
#[test]
fn patterns_match_as_in_tensorflow() {
    let all = ["a1.txt", "a2.txt", "b.txt", ".hidden", "sub/a1.txt", "sub/deep/c.txt", "sub2/a1.txt", "we[ird].txt"];
    let found: &[(&str, &[&str])] = &[
        ("*", &[".hidden", "a1.txt", "a2.txt", "b.txt", "sub", "sub2", "we[ird].txt"]),
        ("a*.txt", &["a1.txt", "a2.txt"]),
        ("a?.txt", &["a1.txt", "a2.txt"]),
        ("*/a1.txt", &["sub/a1.txt", "sub2/a1.txt"]),
        ("*/*/*", &["sub/deep/c.txt"]),
        ("sub*/", &["sub", "sub2"]),
        ("[ab]*.txt", &["a1.txt", "a2.txt", "b.txt"]),
        ("a[!1].txt", &["a2.txt"]),
        ("a[^1].txt", &["a2.txt"]),
        ("a[0-9].txt", &["a1.txt", "a2.txt"]),
        ("{a1,b}.txt", &[]),
        ("we\\[ird\\].txt", &["we[ird].txt"]),
        ("we[[]ird].txt", &["we[ird].txt"]),
        (".*", &[".hidden"]),
        ("?hidden", &[".hidden"]),
        ("no/*", &[]),
        ("a1.txt", &["a1.txt"]),
        ("sub", &["sub"]),
        ("[", &[]),
        ("a[", &[]),
        ("sub/*/c.txt", &["sub/deep/c.txt"]),
        ("*1*", &["a1.txt"]),
    ];
    on_each(|systems, folder| {
        for file in all {
            let name = format!("{folder}/g/{file}");
            systems.create_dirs(path::dirname(&name)).unwrap();
            systems.write(&name, b"").unwrap();
        }
        for (pattern, names) in found {
            let wanted: Vec<String> = names.iter().map(|name| format!("{folder}/g/{name}")).collect();
            assert_eq!(systems.glob(&format!("{folder}/g/{pattern}")).unwrap(), wanted, "{pattern}");
        }
        systems.delete_recursively(&format!("{folder}/g")).unwrap();
    });
}

#[test]
fn stars_try_every_length() {
    assert!(matches("*a*b", "xaaxbab") && !matches("*a*b", "xaaxbaba"));
    assert!(matches("**", "") && matches("*", "") && !matches("?", "") && !matches("", "x"));
    assert!(matches("[a-]", "-") && matches("[]]", "]") && matches("[!]]", "x") && matches("\\*", "*"));
    assert!(!matches(&"*a".repeat(20), &"a".repeat(19)));
}

#[test]
fn names_come_apart() {
    assert_eq!(path::split("/a/b"), ("/a", "b"));
    assert_eq!((path::split("b"), path::split("/b")), (("", "b"), ("/", "b")));
    assert_eq!((path::split("ram://a/b/c"), path::split("ram://a")), (("ram://a/b", "c"), ("ram://a", "")));
    assert_eq!(path::relative("logs/model-1", "logs"), "model-1");
    assert_eq!(path::relative("./logs/x/../model-1", "logs/run"), "../model-1");
    assert_eq!(path::join("logs", "/model"), "/model");
}

#[test]
fn a_file_that_is_not_finished_leaves_the_old_one() {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    for place in [folder.join("x"), "ram://x/x".to_string()] {
        systems.write(&place, b"old").unwrap();
        let mut half = crate::fs::Pending::begin(&systems, &place).unwrap();
        half.append(b"ne").unwrap();
        drop(half);
        assert_eq!(&systems.read(&place).unwrap()[..], b"old");
        assert_eq!(systems.list(path::dirname(&place)).unwrap(), ["x"]);
    }
}

#[test]
fn large_files_are_whole_though_they_go_to_the_disk_while_they_are_written() {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    let place = folder.join("large");
    let piece: Vec<u8> = (0..3 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut file = crate::fs::Pending::begin(&systems, &place).unwrap();
    (0..14).for_each(|_| file.append(&piece).unwrap());
    file.finish().unwrap();
    assert!(systems.read(&place).unwrap() == piece.repeat(14));
}

#[test]
fn a_sync_may_begin_before_the_end_and_fail_at_it() {
    let (systems, folder) = (FileSystems::local(), Folder::new());
    let mut file = systems.create("/dev/null").unwrap(); // takes bytes and cannot be synced
    file.begin_sync();
    let (code, message) = said(file.sync());
    assert!(code == Code::InvalidArgument && message.starts_with("/dev/null"), "{code:?} {message}");
    let mut file = systems.create(&folder.join("x")).unwrap();
    file.begin_sync();
    file.append(b"x").unwrap();
    file.begin_sync();
    file.sync().unwrap();
}

/// The system tells of a failed write once: to the sync that was begun, not to the one at the end.
#[test]
fn what_failed_beside_the_writing_fails_every_later_sync() {
    let folder = Folder::new();
    let mut file = LocalWriter::new(File::create("/dev/null").unwrap(), "x"); // cannot be synced
    file.begin_sync();
    file.file = BufWriter::new(File::create(folder.join("good")).unwrap());
    for _ in 0..2 {
        let (code, message) = said(file.sync());
        assert!(code == Code::InvalidArgument && message.starts_with("x; "), "{code:?} {message}");
    }
}
