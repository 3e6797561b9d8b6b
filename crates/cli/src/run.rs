//! `flowgrid run`: a graph from a file, run once.

use crate::{files, npy};
use anyhow::{Context, Result, bail};
use flowgrid::prelude::*;
use flowgrid::{AttrValue, Extensions, Feeds, GraphDef, ImportOptions, RunMetadata, chrome_trace};
use std::path::PathBuf;

/// Flags of `flowgrid run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid run graph.pb --feed x=3.5 --fetch y\n  \
    flowgrid run graph.pb --feed 'x=[[1,2],[3,4]]' --feed image=@image.npy --fetch y:0 --fetch z:1\n  \
    flowgrid run graph.pb --op init --fetch loss --target grpc://127.0.0.1:2222\n  \
    flowgrid run graph.pb --fetch loss --trace trace.json   (open it in https://ui.perfetto.dev)\n\n\
    A value is written as JSON: a number, true, a \"text\", or lists of them. Its element type is what the graph\n\
    says. @file.npy reads an array that NumPy saved.")]
pub struct Args {
    /// A GraphDef, binary.
    graph: String,

    /// A value for a tensor: name=value or name=@file.npy.
    #[arg(long, value_name = "NAME=VALUE")]
    feed: Vec<String>,

    /// A tensor to print: name or name:index.
    #[arg(long, value_name = "NAME")]
    fetch: Vec<String>,

    /// A node to run before, in a step of its own and in the order given; nothing is printed.
    #[arg(long, value_name = "NAME")]
    op: Vec<String>,

    /// A server to run on, grpc://host:port; this process if none is given.
    #[arg(long, default_value = "", value_name = "TARGET", hide_default_value = true)]
    target: String,

    /// Write the timeline of the last step to this file, for Perfetto or chrome://tracing: when every node ran, on
    /// which task and device, and which tensors travelled.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Runs and prints.
pub fn run(args: Args) -> Result<()> {
    let def = read_graph(&args.graph)?;
    let graph = Graph::new();
    graph.import(&def, &ImportOptions::default()).with_context(|| format!("reading {}", args.graph))?;
    let mut feeds = Feeds::new();
    for feed in &args.feed {
        let (name, value) = feed.split_once('=').with_context(|| format!("--feed {feed}: expected NAME=VALUE"))?;
        let value = read_value(&graph, name, value).with_context(|| format!("--feed {feed}"))?;
        feeds = feeds.with_name(name, value);
    }
    let config = SessionConfig { extensions: Extensions::new().with(files::systems()), ..SessionConfig::default() };
    let session = Session::with_config(&args.target, &graph, config)?;
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
            std::fs::write(path, chrome_trace(&trace)).with_context(|| format!("writing {}", path.display()))
        }
        (Some(_), None) => bail!("--trace without a step: use --op or --fetch"),
        (None, _) => Ok(()),
    }
}

/// Prints tensors; gives what is told of the step.
fn fetch(session: &Session, names: &[String], feeds: Feeds, options: RunOptions) -> Result<RunMetadata> {
    let names: Vec<String> =
        names.iter().map(|name| if name.contains(':') { name.clone() } else { format!("{name}:0") }).collect();
    let fetches: Vec<&str> = names.iter().map(String::as_str).collect();
    let (values, metadata): (Vec<Tensor>, _) = session.run_with_options(fetches, feeds, options)?;
    for (name, value) in names.iter().zip(values) {
        println!("{name} {} {}", value.dtype(), value.shape());
        println!("{}", npy::text(&value));
    }
    Ok(metadata)
}

/// A graph from a file.
pub fn read_graph(path: &str) -> Result<GraphDef> {
    flowgrid::wire::read_graph(files::read(path)?).with_context(|| format!("{path} is no GraphDef"))
}

/// A value of the type that the graph says the tensor has.
fn read_value(graph: &Graph, name: &str, text: &str) -> Result<Tensor> {
    let (node, index) = match name.rsplit_once(':') {
        Some((node, index)) => (node, index.parse::<usize>().context("the index is no number")?),
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
                bail!("'{name}' holds {dtype}");
            }
            Ok(tensor)
        }
    }
}
