//! The same session on a server: ours here, but a TensorFlow server will do as well.
//!
//! Give a target (`grpc://host:port`) to use a server that runs already.

use flowgrid::prelude::*;
use flowgrid::{ClusterSpec, Task};

fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let server = match &given {
        Some(_) => None,
        None => {
            let cluster = ClusterSpec::parse("worker=127.0.0.1:0")?;
            Some(Server::start(ServerOptions::new(cluster, Task { job: "worker".to_string(), index: 0 }))?)
        }
    };
    let target = given.unwrap_or_else(|| server.as_ref().map_or(String::new(), |server| server.target().to_string()));

    let graph = Graph::new();
    let scope = graph.root();
    let counter = Variable::zeros(&scope, "counter", []);
    let next = counter.assign_add(&scope.constant(1.0f32));

    let session = Session::connect(&target, &graph)?;
    session.execute(&global_variables_initializer(&graph))?;
    session.execute(&next)?;

    // Variables are the server's: a second session finds them as the first one left them.
    let other = Session::connect(&target, &graph)?;
    other.execute(&next)?;
    let count: f32 = session.run(&counter)?;
    println!("{target} counted to {count}");
    assert_eq!(count, 2.0);

    for device in session.list_devices()? {
        println!("{}", device.name);
    }
    Ok(())
}
