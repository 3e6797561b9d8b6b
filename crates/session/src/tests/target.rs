//! Targets of sessions: servers, this process, and mistakes.

use super::graph;
use crate::{ClusterSpec, Server, ServerOptions, Session, Task};
use ops::array::constant;
use status::{Code, Error};
use std::net::TcpListener;
use tensor::Tensor;

fn refused(target: &str) -> Error {
    Session::connect(target, &graph()).err().unwrap_or_else(|| panic!("'{target}' is taken"))
}

#[test]
fn unknown_targets_are_refused() {
    for target in ["nfs://somewhere", "http://127.0.0.1:2222", "worker0", "local"] {
        let error = refused(target);
        assert_eq!(error.code, Code::NotFound);
        let text = format!(
            "No session factory registered for the given session options: {{target: \"{target}\"}}; a target is \
             grpc://host:port, host:port, or empty for a session in this process"
        );
        assert_eq!(error.message, text);
    }
}

#[test]
fn targets_without_a_host_and_a_port_are_refused_at_once() {
    for (target, address) in [
        ("worker0.example.com:port", "worker0.example.com:port"),
        ("grpc:/127.0.0.1:1", "grpc:/127.0.0.1:1"),
        ("grpc://127.0.0.1", "127.0.0.1"),
        ("grpc://host:99999", "host:99999"),
        ("grpc://host:", "host:"),
        ("grpc://:2222", ":2222"),
        ("grpc://", ""),
        ("grpc://::1:2222", "::1:2222"),
        ("grpc://127.0.0.1:1/", "127.0.0.1:1/"),
        ("grpc://a:1,b:1", "a:1,b:1"),
    ] {
        let error = refused(target);
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
        let text = format!("Could not interpret \"{address}\" as a host-port pair. Expected grpc://host:port");
        assert!(error.message.starts_with(&text), "{error}");
        assert!(error.message.contains("such as grpc://127.0.0.1:2222"), "{error}");
    }
}

#[test]
fn a_host_may_be_an_ipv6_address_in_brackets() {
    let graph = graph();
    let seven = constant(&graph.root(), Tensor::from(7i64));
    assert!(Session::connect("grpc://[::1]:2222", &graph).is_ok());
    let Ok(listener) = TcpListener::bind("[::1]:0") else { return }; // this machine has no IPv6
    let address = listener.local_addr().unwrap().to_string();
    let cluster = ClusterSpec::parse(&format!("worker={address}")).unwrap();
    let task = Task { job: "worker".to_string(), index: 0 };
    let server = Server::start_on(ServerOptions::new(cluster, task), listener).unwrap();
    for target in [server.target(), &address] {
        assert_eq!(Session::connect(target, &graph).unwrap().run::<i64>(&seven), Ok(7), "{target}");
    }
}
