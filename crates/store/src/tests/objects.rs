//! What a file system of objects does, over objects in memory, with parts of a few bytes.

use crate::StoreOptions;
use crate::objects::{Connect, ObjectFileSystem, Sizes};
use crate::threads::Threads;
use io::FileSystems;
use io::fs::FileSystem;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use status::Code;
use std::sync::Arc;

const SIZES: Sizes = Sizes { part: 10, long_part: 30, short_parts: 3, parallel: 2, ahead: 4 };

/// A file system whose buckets are all there and empty.
fn system(sizes: Sizes) -> ObjectFileSystem {
    let connect: Connect = Box::new(|_| Ok(Arc::new(InMemory::new()) as Arc<dyn ObjectStore>));
    ObjectFileSystem::sized("s3", connect, Arc::new(Threads::default()), &StoreOptions::new(), sizes)
}

fn systems() -> FileSystems {
    FileSystems::local().with("s3", Arc::new(system(SIZES)))
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 7 + i / 251) as u8).collect()
}

#[test]
fn files_of_all_sizes_come_back() {
    let systems = systems();
    for size in [0, 1, 9, 10, 11, 20, 25, 39, 40, 41, 100, 1000] {
        let name = format!("s3://bucket/sizes/{size}");
        systems.write(&name, &bytes(size)).unwrap();
        assert_eq!(systems.read(&name).unwrap(), bytes(size), "{size}");
        assert_eq!(systems.stat(&name).unwrap().size, size as u64);
    }
}

#[test]
fn pieces_of_any_length_make_the_same_file() {
    let systems = systems();
    for piece in [1, 3, 10, 17, 64] {
        let mut file = systems.create("s3://bucket/file").unwrap();
        bytes(200).chunks(piece).for_each(|chunk| file.append(chunk).unwrap());
        file.close().unwrap();
        assert_eq!(systems.read("s3://bucket/file").unwrap(), bytes(200), "{piece}");
    }
}

#[test]
fn reads_at_any_offset() {
    let systems = systems();
    let all = bytes(103);
    systems.write("s3://bucket/file", &all).unwrap();
    let file = systems.open("s3://bucket/file").unwrap();
    assert_eq!(file.size().unwrap(), 103);
    for offset in 0..110 {
        for length in [0, 1, 4, 5, 10, 11, 20, 45, 200] {
            let mut buffer = vec![0; length];
            let count = file.read_at(offset as u64, &mut buffer).unwrap();
            let wanted = &all[offset.min(103)..(offset + length).min(103)];
            assert_eq!(&buffer[..count], wanted, "{offset} {length}");
        }
    }
}

#[test]
fn a_file_appears_when_it_is_closed() {
    let systems = systems();
    let mut file = systems.create("s3://bucket/file").unwrap();
    file.append(&bytes(35)).unwrap();
    assert!(!systems.exists("s3://bucket/file").unwrap());
    file.close().unwrap();
    assert_eq!(systems.stat("s3://bucket/file").unwrap().size, 35);
}

#[test]
fn a_file_that_was_given_up_does_not_appear() {
    let systems = systems();
    systems.write("s3://bucket/file", b"old").unwrap();
    let mut file = systems.create("s3://bucket/file").unwrap();
    file.append(&bytes(35)).unwrap();
    drop(file);
    assert_eq!(systems.read("s3://bucket/file").unwrap(), "old");
}

#[test]
fn what_was_flushed_can_be_seen_and_continued() {
    let systems = systems();
    let name = "s3://bucket/events";
    for step in [3, 10, 17] {
        let mut file = systems.create(name).unwrap();
        let all = bytes(step * 9);
        for (i, chunk) in all.chunks(step).enumerate() {
            file.append(chunk).unwrap();
            file.flush().unwrap();
            assert_eq!(systems.read(name).unwrap(), all[..(i + 1) * step], "{step}");
        }
        file.append(b"the end").unwrap();
        file.close().unwrap();
        assert_eq!(systems.read(name).unwrap(), [&all[..], b"the end"].concat());
    }
}

#[test]
fn a_reader_sees_a_file_grow() {
    let systems = systems();
    let mut file = systems.create("s3://bucket/events").unwrap();
    file.append(b"one").unwrap();
    file.flush().unwrap();
    let reader = systems.open("s3://bucket/events").unwrap();
    let mut buffer = [0; 8];
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 3);
    assert_eq!(reader.read_at(3, &mut buffer).unwrap(), 0);
    file.append(b"two").unwrap();
    file.flush().unwrap();
    assert_eq!(reader.read_at(3, &mut buffer).unwrap(), 3);
    assert_eq!(&buffer[..3], b"two");
}

#[test]
fn appends_go_after_what_is_there() {
    let systems = systems();
    let mut all = Vec::new();
    for size in [0, 4, 5, 1, 13, 30] {
        let mut file = systems.append("s3://bucket/log").unwrap();
        file.append(&bytes(size)).unwrap();
        file.close().unwrap();
        all.extend(bytes(size));
        assert_eq!(systems.read("s3://bucket/log").unwrap(), all, "{size}");
    }
}

#[test]
fn folders_are_what_names_have_in_common() {
    let systems = systems();
    for name in ["a/x", "a/b/y", "a/b/z", "c"] {
        systems.write(&format!("s3://bucket/{name}"), b"1").unwrap();
    }
    assert_eq!(systems.list("s3://bucket").unwrap(), ["a", "c"]);
    assert_eq!(systems.list("s3://bucket/a").unwrap(), ["b", "x"]);
    assert_eq!(systems.list("s3://bucket//a/b/").unwrap(), ["y", "z"]);
    assert_eq!(systems.list("s3://bucket/nothing").unwrap_err().code, Code::NotFound);
    assert_eq!(systems.list("s3://bucket/c").unwrap_err().code, Code::FailedPrecondition);
    assert!(systems.is_dir("s3://bucket/a/b").unwrap() && systems.is_dir("s3://bucket").unwrap());
    assert!(!systems.is_dir("s3://bucket/c").unwrap() && !systems.exists("s3://bucket/a/bb").unwrap());
    assert_eq!(systems.glob("s3://bucket/a/*/[yz]").unwrap(), ["s3://bucket/a/b/y", "s3://bucket/a/b/z"]);
    assert_eq!(systems.glob("s3://bucket/?").unwrap(), ["s3://bucket/a", "s3://bucket/c"]);
}

#[test]
fn folders_need_not_be_made() {
    let systems = systems();
    systems.create_dirs("s3://bucket/a/b").unwrap();
    systems.write("s3://bucket/a/b/file", b"1").unwrap();
    assert_eq!(systems.delete_dir("s3://bucket/a").unwrap_err().code, Code::FailedPrecondition);
    systems.delete("s3://bucket/a/b/file").unwrap();
    systems.delete_dir("s3://bucket/a").unwrap();
    assert_eq!(systems.delete("s3://bucket/a/b/file").unwrap_err().code, Code::NotFound);
}

#[test]
fn deletes_all_that_is_in_a_folder_and_no_more() {
    let systems = systems();
    for name in ["a/x", "a/b/y", "ab", "c/z"] {
        systems.write(&format!("s3://bucket/{name}"), b"1").unwrap();
    }
    systems.delete_recursively("s3://bucket/a").unwrap();
    assert_eq!(systems.list("s3://bucket").unwrap(), ["ab", "c"]);
    systems.delete_recursively("s3://bucket/ab").unwrap();
    assert_eq!(systems.delete_recursively("s3://bucket/a").unwrap_err().code, Code::NotFound);
}

#[test]
fn renames_files_and_folders() {
    let systems = systems();
    for name in ["a/x", "a/b/y", "other"] {
        systems.write(&format!("s3://bucket/{name}"), name.as_bytes()).unwrap();
    }
    systems.rename("s3://bucket/a/x", "s3://bucket/x", false).unwrap();
    assert_eq!(systems.rename("s3://bucket/x", "s3://bucket/other", false).unwrap_err().code, Code::AlreadyExists);
    systems.rename("s3://bucket/x", "s3://bucket/other", true).unwrap();
    assert_eq!(systems.read("s3://bucket/other").unwrap(), "a/x");
    systems.rename("s3://bucket/a", "s3://bucket/moved/here", false).unwrap();
    assert_eq!(systems.read("s3://bucket/moved/here/b/y").unwrap(), "a/b/y");
    assert_eq!(systems.list("s3://bucket").unwrap(), ["moved", "other"]);
    systems.rename("s3://bucket/other", "s3://second/other", false).unwrap();
    assert_eq!(systems.read("s3://second/other").unwrap(), "a/x");
    assert_eq!(systems.rename("s3://bucket/gone", "s3://bucket/to", true).unwrap_err().code, Code::NotFound);
}

#[test]
fn names_without_bucket_or_object_are_refused() {
    let system = system(SIZES);
    let error = system.open("s3:///file").err().unwrap();
    assert_eq!((error.code, error.message.as_str()), no("S3 path doesn't contain a bucket name: s3:///file"));
    let error = system.create("s3://bucket/").err().unwrap();
    assert_eq!((error.code, error.message.as_str()), no("S3 path doesn't contain an object name: s3://bucket/"));
    assert_eq!(system.open("s3://bucket/a/../b").err().unwrap().code, Code::InvalidArgument);
}

fn no(message: &str) -> (Code, &str) {
    (Code::InvalidArgument, message)
}

#[test]
fn a_missing_file_is_named() {
    let error = systems().read("s3://bucket/no/such").unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::NotFound, "s3://bucket/no/such; No such file or directory")
    );
}

#[test]
fn waits_on_a_thread_of_another_runtime() {
    let systems = systems();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        systems.write("s3://bucket/file", &bytes(35)).unwrap();
        assert_eq!(systems.read("s3://bucket/file").unwrap(), bytes(35));
        // Dropping joins the threads, which a tokio runtime does not allow on a thread of another runtime.
        drop(systems);
    });
}
