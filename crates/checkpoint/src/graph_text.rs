//! Graphs with the shapes of their outputs, and as text for people.

use graph::{AttrList, AttrValue, Graph, GraphDef, Node};
use io::FileSystems;
use io::fs::path;
use status::Result;
use std::sync::Arc;

/// What the graph is called that is written as text.
const FILE: &str = "graph.pbtxt";

/// A graph whose nodes say what is known of the shapes of their outputs.
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

/// Writes `graph.pbtxt` to a folder, which is made if it is not there.
pub fn write_graph_text(systems: &FileSystems, folder: &str, graph: &Graph) -> Result<()> {
    systems.create_dirs(folder)?;
    let bytes = graph::wire::write_graph(&with_shapes(graph)?);
    let text = io::text::binary_to_text("tensorflow.GraphDef", &bytes)?;
    systems.write(&path::join(folder, FILE), text.as_bytes())
}
