//! Graphs with the shapes of their outputs, and as text.

use graph::{AttrList, AttrValue, Graph, GraphDef, Node};
use io::FileSystems;
use io::fs::path::{join, to_str};
use status::Result;
use std::path::Path;
use std::sync::Arc;

/// The name of the text file.
const FILE: &str = "graph.pbtxt";

/// The definition of a graph, whose nodes have the shapes of their outputs in an attribute, as viewers expect.
pub fn with_shapes(graph: &Graph) -> Result<GraphDef> {
    let (mut def, root) = (graph.to_def()?, graph.root());
    for described in &mut def.nodes {
        let outputs = Node::find(&root, &described.name).map(|node| node.outputs()).unwrap_or_default();
        let shapes: Vec<_> = outputs.iter().map(|output| output.shape()).collect();
        if !shapes.is_empty() {
            let list = AttrValue::from(AttrList { shapes, ..AttrList::default() });
            Arc::make_mut(described).attrs.insert("_output_shapes".to_string(), list);
        }
    }
    Ok(def)
}

/// Writes `graph.pbtxt` to a folder, which is created if it does not exist.
pub fn write_graph_text(systems: &FileSystems, folder: impl AsRef<Path>, graph: &Graph) -> Result<()> {
    let folder = to_str(folder.as_ref())?;
    systems.create_dirs(folder)?;
    let bytes = graph::wire::write_graph(&with_shapes(graph)?);
    let text = io::text::binary_to_text("tensorflow.GraphDef", &bytes)?;
    systems.write(&join(folder, FILE), text.as_bytes())
}
