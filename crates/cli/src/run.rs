//! `flowgrid run`: runs a graph from a file once.

use crate::numbers::seconds;
use crate::output::print_line;
use crate::waiting::Notice;
use crate::{files, graph_file, npy};
use anyhow::{Context, Result, bail};
use flowgrid::prelude::*;
use flowgrid::{AttrValue, Extensions, Feeds, ImportOptions, RunMetadata, chrome_trace};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `flowgrid run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid run graph.pb --feed x=3.5 --fetch y\n  \
    flowgrid run graph.pb --feed 'x=[[1,2],[3,4]]' --feed image=@image.npy --fetch y:0 --fetch z:1\n  \
    flowgrid run graph.pbtxt --op init --fetch loss --target grpc://127.0.0.1:2222\n  \
    flowgrid run graph.pb --fetch loss --trace trace.json   (open it in https://ui.perfetto.dev)\n\n\
    A value is written as JSON: a number, true, a \"text\", or lists of them. The graph determines its element\n\
    type. @file.npy reads an array that NumPy saved.")]
pub struct Args {
    /// A file with a GraphDef or a MetaGraphDef: binary, or as text if its name ends in .pbtxt.
    graph: String,

    /// A value for a tensor: name=value or name=@file.npy. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    feed: Vec<String>,

    /// A tensor to print: name or name:index. May be repeated.
    #[arg(long, value_name = "NAME")]
    fetch: Vec<String>,

    /// A node to run before the fetches, in a step of its own. May be repeated; the steps run in the order given.
    #[arg(long, value_name = "NAME")]
    op: Vec<String>,

    /// The server to run on, grpc://host:port. Without it, the graph runs in this process.
    #[arg(long, default_value = "", value_name = "TARGET", hide_default_value = true)]
    target: String,

    /// Seconds to wait until the server of --target answers.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    connect_timeout: f64,

    /// Write the timeline of the last step to this file, for Perfetto or chrome://tracing: when each node ran, on which
    /// task and device, and which tensors were sent between tasks.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// The time after which a message says that the server has not answered yet.
const NOTICE_DELAY: Duration = Duration::from_secs(2);

/// Runs the graph and prints what is fetched.
pub fn run(args: Args) -> Result<()> {
    let def = graph_file::read(&args.graph)?;
    let graph = Graph::new();
    graph.import(&def, &ImportOptions::default()).with_context(|| format!("cannot import {}", args.graph))?;
    let mut feeds = Feeds::new();
    for feed in &args.feed {
        let (name, value) = feed.split_once('=').with_context(|| format!("--feed {feed}: expected NAME=VALUE"))?;
        let value = read_value(&graph, name, value).with_context(|| format!("--feed {feed}"))?;
        feeds = feeds.with_name(name, value);
    }
    let session = connect(&args, &graph)?;
    let options = RunOptions { trace: args.trace.is_some(), ..RunOptions::default() };
    let mut trace = None;
    for node in &args.op {
        let node = node.split(':').next().unwrap_or(node);
        let ((), metadata) = session.run_with_options(node, feeds.clone(), options.clone())?;
        trace = Some(metadata);
    }
    if !args.fetch.is_empty() {
        trace = Some(fetch(&session, &args.fetch, feeds, options)?);
    }
    match (&args.trace, trace) {
        (Some(path), Some(trace)) => {
            std::fs::write(path, chrome_trace(&trace)).with_context(|| format!("cannot write {}", path.display()))
        }
        (Some(_), None) => bail!("--trace needs a step: use it with --op or --fetch"),
        (None, _) => Ok(()),
    }
}

/// Opens the session. A server that does not answer soon is reported, because the wait may be long.
fn connect(args: &Args, graph: &Graph) -> Result<Session> {
    let config = SessionConfig {
        extensions: Extensions::new().with(files::systems()),
        connect_timeout: Some(Duration::from_secs_f64(args.connect_timeout)),
        ..SessionConfig::default()
    };
    let session = Session::with_config(&args.target, graph, config)?;
    if !args.target.is_empty() {
        let message = format!(
            "waiting for the server at {} (for {} s; --connect-timeout sets the limit)",
            args.target, args.connect_timeout
        );
        // A closed standard error is ignored: the message is only for information.
        let _notice = Notice::after(NOTICE_DELAY, move || drop(writeln!(std::io::stderr(), "{message}")))?;
        // A session connects with its first request.
        session.list_devices()?;
    }
    Ok(session)
}

/// Runs a step and prints the fetched tensors. Returns the metadata of the step.
fn fetch(session: &Session, names: &[String], feeds: Feeds, options: RunOptions) -> Result<RunMetadata> {
    let names: Vec<String> =
        names.iter().map(|name| if name.contains(':') { name.clone() } else { format!("{name}:0") }).collect();
    let fetches: Vec<&str> = names.iter().map(String::as_str).collect();
    let (values, metadata): (Vec<Tensor>, _) = session.run_with_options(fetches, feeds, options)?;
    for (name, value) in names.iter().zip(values) {
        print_line!("{name} {} {}", value.dtype(), value.shape())?;
        print_line!("{}", npy::text(&value))?;
    }
    Ok(metadata)
}

/// The value of a feed, with the element type of the tensor in the graph.
fn read_value(graph: &Graph, name: &str, text: &str) -> Result<Tensor> {
    let (node, index) = match name.rsplit_once(':') {
        Some((node, index)) => {
            (node, index.parse::<usize>().with_context(|| format!("the index of '{name}' is not a whole number"))?)
        }
        None => (name, 0),
    };
    let found = Node::find(&graph.root(), node).with_context(|| format!("the graph has no node '{node}'"))?;
    let dtype = match found.attr("dtype") {
        Ok(AttrValue::Type(dtype)) => dtype,
        _ => found.output(index).dtype(),
    };
    match text.strip_prefix('@') {
        Some(path) => npy::read(path),
        None => {
            let json: serde_json::Value = serde_json::from_str(text)
                .or_else(|error| if dtype == DType::STRING { Ok(text.into()) } else { Err(error) })?;
            let tensor = npy::from_json(&json, dtype)?;
            if tensor.dtype() != dtype {
                bail!("'{name}' has the type {dtype}, but the value has the type {}", tensor.dtype());
            }
            Ok(tensor)
        }
    }
}
