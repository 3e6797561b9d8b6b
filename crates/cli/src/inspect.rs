//! `flowgrid inspect`: shows the contents of a file as tables.

use crate::files;
use crate::graph_file::GraphFile;
use crate::output::print_line;
use crate::table::{print, shortened};
use anyhow::{Context, Result};
use flowgrid::{AttrValue, GraphDef};
use io::event::SummaryData;
use io::fs::path::{basename, join};
use io::saved_model::{SAVED_MODEL_FILE, SAVED_MODEL_TEXT_FILE};
use io::{Bundle, EventReader, EventWhat, FileSystems, MetaGraph, SavedModel};
use std::collections::BTreeMap;

/// Flags of `flowgrid inspect`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    flowgrid inspect graph.pb\n  \
    flowgrid inspect --nodes graph.pbtxt\n  \
    flowgrid inspect model.ckpt-1000.meta\n  \
    flowgrid inspect export/saved_model.pb\n  \
    flowgrid inspect model.ckpt-1000\n  \
    flowgrid inspect events.out.tfevents.1700000000.host\n\n\
    The name of the file determines its format: saved_model.pb, *tfevents*, a checkpoint's prefix or .index,\n\
    .meta for a MetaGraphDef, .pbtxt for text. Every other file is read as a GraphDef.")]
pub struct Args {
    /// A graph, a meta graph, a saved model or its folder, a checkpoint (its prefix or index), or an event file.
    path: String,

    /// Show every node of a graph instead of the number of nodes of each op.
    #[arg(long)]
    nodes: bool,
}

/// Determines the format of the file and shows its contents.
pub fn run(args: Args) -> Result<()> {
    let (path, systems) = (args.path.as_str(), files::systems());
    let name = basename(path);
    let is_model = |name: &str| [SAVED_MODEL_FILE, SAVED_MODEL_TEXT_FILE].contains(&name);
    let in_folder = |file| systems.exists(&join(path, file)).unwrap_or(false);
    if is_model(name) || in_folder(SAVED_MODEL_FILE) || in_folder(SAVED_MODEL_TEXT_FILE) {
        return show_model(&SavedModel::open(&systems, path)?);
    }
    if name.contains("tfevents") {
        return show_events(&systems, path);
    }
    if name.ends_with(".index") || systems.exists(&format!("{path}.index"))? {
        return show_checkpoint(&systems, path);
    }
    match GraphFile::open(&systems, path)? {
        GraphFile::Graph(graph) => show_graph(&graph, args.nodes),
        GraphFile::Meta(meta) if args.nodes => show_graph(&flowgrid::wire::read_graph(meta.graph)?, true),
        GraphFile::Meta(meta) => show_meta_graph(&meta),
    }
}

fn show_graph(graph: &GraphDef, every_node: bool) -> Result<()> {
    print_line!(
        "{} nodes, {} functions, producer {}\n",
        graph.nodes.len(),
        graph.library.functions.len(),
        graph.versions.producer
    )?;
    if every_node {
        let row = |node: &std::sync::Arc<flowgrid::NodeDef>| {
            let dtype = ["dtype", "T"].iter().find_map(|name| node.attrs.get(*name));
            let dtype = match dtype {
                Some(AttrValue::Type(dtype)) => dtype.to_string(),
                _ => String::new(),
            };
            let inputs = shortened(&node.inputs.join(" "), 60);
            vec![node.name.clone(), node.op.clone(), dtype, node.device.clone(), inputs]
        };
        return print(&["node", "op", "type", "device", "inputs"], &graph.nodes.iter().map(row).collect::<Vec<_>>());
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    graph.nodes.iter().for_each(|node| *counts.entry(&node.op).or_default() += 1);
    let mut rows: Vec<(&str, usize)> = counts.into_iter().collect();
    rows.sort_by_key(|&(op, count)| (std::cmp::Reverse(count), op));
    let rows: Vec<Vec<String>> = rows.iter().map(|(op, count)| vec![op.to_string(), count.to_string()]).collect();
    print(&["op", "nodes"], &rows)
}

fn show_model(model: &SavedModel) -> Result<()> {
    print_line!("saved model, version {}, {} graphs\n", model.version, model.meta_graphs.len())?;
    model.meta_graphs.iter().try_for_each(show_meta_graph)
}

fn show_meta_graph(graph: &MetaGraph) -> Result<()> {
    let (nodes, functions) = graph.sizes()?;
    let tags = graph.tags.join(", ");
    print_line!("tags: {tags}; {nodes} nodes, {functions} functions; written by {}", graph.producer)?;
    let mut rows = Vec::new();
    for (call, signature) in &graph.signatures {
        let sides = [("in", &signature.inputs), ("out", &signature.outputs)];
        for (side, tensors) in sides {
            for (name, tensor) in tensors {
                rows.push(vec![
                    call.clone(),
                    side.to_string(),
                    name.clone(),
                    tensor.dtype.to_string(),
                    tensor.shape.to_string(),
                    tensor.tensor.to_string(),
                ]);
            }
        }
    }
    print(&["signature", "", "name", "type", "shape", "tensor"], &rows)?;
    print_line!()?;
    let row = |(name, values): (&String, &io::saved_model::Collection)| vec![name.clone(), values.len().to_string()];
    print(&["collection", "values"], &graph.collections.iter().map(row).collect::<Vec<_>>())?;
    print_line!()
}

fn show_checkpoint(systems: &FileSystems, path: &str) -> Result<()> {
    let bundle = Bundle::open(systems, path)?;
    let total: u64 = bundle.entries().values().map(|entry| entry.size).sum();
    print_line!("{} tensors, {total} bytes, {} files\n", bundle.entries().len(), bundle.shards())?;
    let row = |(name, entry): (&String, &io::bundle::Entry)| {
        vec![
            name.clone(),
            entry.dtype.to_string(),
            entry.shape.to_string(),
            entry.size.to_string(),
            entry.shard.to_string(),
        ]
    };
    print(&["tensor", "type", "shape", "bytes", "file"], &bundle.entries().iter().map(row).collect::<Vec<_>>())
}

fn show_events(systems: &FileSystems, path: &str) -> Result<()> {
    let mut rows = Vec::new();
    for event in EventReader::open(systems, path)? {
        let event = event.with_context(|| format!("cannot read {path}"))?;
        let time = format!("{:.3}", event.wall_time);
        let mut add = |tag: &str, what: &str, value: String| {
            rows.push(vec![time.clone(), event.step.to_string(), tag.to_string(), what.to_string(), value]);
        };
        match &event.what {
            EventWhat::Version(version) => add("", "version", version.clone()),
            EventWhat::Graph(bytes) => add("", "graph", format!("{} bytes", bytes.len())),
            EventWhat::MetaGraph(bytes) => add("", "meta graph", format!("{} bytes", bytes.len())),
            EventWhat::Log(_, text) => add("", "log", shortened(text, 60)),
            EventWhat::Session(log) => add("", "session", format!("{:?} {}", log.status, log.checkpoint_path)),
            EventWhat::RunMetadata(tag, _) => add(tag, "run metadata", String::new()),
            EventWhat::Summary(values) => {
                values.iter().for_each(|value| add(&value.tag, kind(&value.data), show(&value.data)));
            }
            EventWhat::Other => add("", "other", String::new()),
        }
    }
    print(&["time", "step", "tag", "what", "value"], &rows)
}

fn kind(value: &SummaryData) -> &'static str {
    match value {
        SummaryData::Scalar(_) => "scalar",
        SummaryData::Tensor(_) => "tensor",
        SummaryData::Histogram(_) => "histogram",
        SummaryData::Image(_) => "image",
        SummaryData::Audio(_) => "audio",
        SummaryData::Other => "other",
    }
}

fn show(value: &SummaryData) -> String {
    match value {
        SummaryData::Scalar(number) => number.to_string(),
        SummaryData::Tensor(tensor) if tensor.elements() <= 8 => crate::npy::text(tensor),
        SummaryData::Tensor(tensor) => format!("{} {}", tensor.dtype(), tensor.shape()),
        SummaryData::Histogram(h) => format!("{} numbers from {} to {}", h.num, h.min, h.max),
        SummaryData::Image(image) => format!("{}x{}", image.height, image.width),
        SummaryData::Audio(audio) => format!("{} frames", audio.length_frames),
        SummaryData::Other => String::new(),
    }
}
