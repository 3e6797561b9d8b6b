//! Saved models, meta graphs and messages as text.

use super::{bytes, fixture, holding};
use crate::saved_model::{Collection, TensorName, add_asset, assets_folder, read_graph, variables_prefix};
use crate::text::{binary_to_text, text_to_binary};
use crate::{FileSystems, MetaGraph, SavedModel};
use status::Code;
use tensor::DType;

#[test]
fn saved_models_tell_their_signatures() {
    let model = SavedModel::open(&FileSystems::local(), &fixture("saved_model")).unwrap();
    assert_eq!(model.meta_graphs.len(), 1);
    let graph = model.find(&["serve"]).unwrap();
    assert!(graph.sizes().unwrap().0 > 4 && !graph.graph.is_empty());
    assert_eq!(graph.collections["variables"].len(), 4);
    assert!(matches!(&graph.collections["variables"], Collection::Bytes(_)));
    let signature = &graph.signatures["serving_default"];
    assert_eq!(signature.method, "tensorflow/serving/predict");
    let x = &signature.inputs["x"];
    assert_eq!((&x.tensor, x.dtype), (&TensorName::Dense("x:0".to_string()), DType::F32));
    assert_eq!(x.shape.to_string(), "[?,2]");
    assert_eq!(signature.outputs["y"].tensor.to_string(), "y:0");
    let error = model.find(&["train"]).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
    assert!(error.message.starts_with("Could not find meta graph def matching supplied tags: { train }"));
}

/// Python does not sort maps when it writes a message, so both sides are compared after reading, and by their size.
#[test]
fn nothing_is_lost() {
    let systems = FileSystems::local();
    let model = SavedModel::open(&systems, &fixture("saved_model")).unwrap();
    model.write(&systems, "ram://export").unwrap();
    let again = SavedModel::open(&systems, "ram://export").unwrap();
    assert_eq!(again, model);
    assert_eq!(systems.read("ram://export/saved_model.pb").unwrap().len(), bytes("saved_model/saved_model.pb").len());
    let meta = MetaGraph::open(&systems, &fixture("sharded/model-3.meta")).unwrap();
    meta.write(&systems, "ram://model.meta").unwrap();
    assert_eq!(MetaGraph::open(&systems, "ram://model.meta").unwrap(), meta);
    assert_eq!(systems.read("ram://model.meta").unwrap().len(), bytes("sharded/model-3.meta").len());
    let saver = meta.saver.unwrap();
    assert_eq!((saver.version, saver.sharded, saver.max_to_keep), (2, true, 5));
}

#[test]
fn meta_graphs_are_read_as_text() {
    let systems = FileSystems::local();
    let meta = MetaGraph::open(&systems, &fixture("sharded/model-3.meta")).unwrap();
    let text = binary_to_text("tensorflow.MetaGraphDef", &bytes("sharded/model-3.meta")).unwrap();
    systems.write("ram://model.meta.pbtxt", text.as_bytes()).unwrap();
    let again = MetaGraph::open(&systems, "ram://model.meta.pbtxt").unwrap();
    assert_eq!((&again.collections, again.sizes().unwrap()), (&meta.collections, meta.sizes().unwrap()));
}

#[test]
fn graphs_are_read_as_text() {
    let text = r#"
        node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } }
                                                    tensor_content: "\000\000\200?\000\000\000@" } } } }
        node { name: "b" op: "Neg" input: "a" }  # a comment
        versions { producer: 21 }"#;
    let systems = FileSystems::local();
    systems.write("ram://graph.pbtxt", text.as_bytes()).unwrap();
    let graph = read_graph(&systems, "ram://graph.pbtxt").unwrap();
    let meta = MetaGraph { graph: graph.clone(), ..MetaGraph::default() };
    assert_eq!(meta.sizes().unwrap(), (2, 0));
    let printed = binary_to_text("tensorflow.GraphDef", &graph).unwrap();
    // Attributes are a map, whose order in a message means nothing.
    let sorted = |message: &[u8]| {
        let mut bytes = message.to_vec();
        bytes.sort_unstable();
        bytes
    };
    assert_eq!(sorted(&text_to_binary("tensorflow.GraphDef", &printed).unwrap()), sorted(&graph));
    let error = text_to_binary("tensorflow.GraphDef", "node { nme: \"a\" }").unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(text_to_binary("tensorflow.NoSuchMessage", "").is_err());
}

#[test]
fn a_model_has_its_places() {
    let systems = FileSystems::local();
    assert_eq!(variables_prefix("ram://export"), "ram://export/variables/variables");
    systems.write("ram://words/vocab.txt", b"a\nb\n").unwrap();
    assert_eq!(add_asset(&systems, "ram://export", "ram://words/vocab.txt").unwrap(), "vocab.txt");
    assert_eq!(systems.list(&assets_folder("ram://export")).unwrap(), ["vocab.txt"]);
    let error = SavedModel::open(&systems, "ram://export").unwrap_err();
    assert!(error.message.starts_with("Could not find SavedModel .pb or .pbtxt at supplied export directory path"));
}

#[test]
fn damaged_models_never_panic() {
    let whole = bytes("saved_model/saved_model.pb");
    for place in 0..whole.len() {
        let _ = SavedModel::read(whole[..place].to_vec().into());
        if place % 3 == 0 {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x88;
            let systems = holding(&damaged);
            let model = SavedModel::open(&systems, "ram://file");
            let _ = model.and_then(|model| model.meta_graphs.iter().try_for_each(|graph| graph.sizes().map(drop)));
        }
    }
}
