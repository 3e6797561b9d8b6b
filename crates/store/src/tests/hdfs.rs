//! URLs of HDFS, and an unreachable name node.

use crate::hdfs::address;
use crate::{StoreOptions, file_systems};
use status::Code;
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn a_name_is_a_service_and_a_path() {
    let parsed = |name: &str| address(name).unwrap();
    assert_eq!(parsed("hdfs://node:9000/a/b"), ("hdfs://node:9000".into(), "/a/b".into()));
    assert_eq!(parsed("hdfs://service//a/./b/"), ("hdfs://service".into(), "/a/b".into()));
    assert_eq!(parsed("hdfs:///a"), ("hdfs://".into(), "/a".into()));
    assert_eq!(parsed("viewfs://mounts"), ("viewfs://mounts".into(), "/".into()));
    assert!(address("/a/b").is_err());
}

#[test]
fn a_name_node_that_is_not_there_is_an_error() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let name = format!("hdfs://{address}/file");
    for retries in [0, 3] {
        let options = StoreOptions::new().with_retries(retries, Duration::from_millis(30));
        let error = file_systems(&options).stat(&name).unwrap_err();
        assert_eq!(error.code, Code::Unavailable, "{error}");
        assert!(error.message.starts_with(&name) && error.message.contains("refused"), "{error}");
    }
}
