//! Graphs in files, and what comes back.

use super::{Folder, graph};
use crate::meta_graph::{MetaImportOptions, import};
use crate::saved_model::{MetaGraphOptions, SERVING, SavedModelBuilder, load, predict_signature};
use crate::{Saver, import_meta_graph};
use io::{FileSystems, MetaGraph};
use layers::collection::{LOSSES, global_variables, global_variables_initializer, nodes, trainable_variables};
use layers::{Initializer, Kind, ScopeOps, Variable};
use optimize::{create_global_step, get_global_step};
use session::Session;
use std::collections::BTreeMap;

#[test]
fn a_program_goes_on_with_what_another_wrote() {
    let folder = Folder::new();
    let (path, names) = {
        let graph = graph();
        let root = graph.root();
        let w = Variable::builder(&root, "w").initializer(Initializer::Constant(3.0)).kind(Kind::Reference).build();
        Variable::builder(&root, "p").shape([4]).partitioned(0, 2);
        create_global_step(&graph).unwrap();
        let loss = root.op("Square").named("loss").input(&w).output();
        graph.add_to_collection(LOSSES, loss.name());
        graph.add_to_collection("sizes", 5i64);
        let saver = Saver::new(&graph).unwrap();
        let session = Session::local(&graph);
        session.execute(&global_variables_initializer(&graph)).unwrap();
        let names: Vec<String> = global_variables(&graph).iter().map(Variable::name).collect();
        (saver.save(&session, folder.join("model"), 1).unwrap(), names)
    };
    let graph = graph();
    let saver = import_meta_graph(&graph, format!("{path}.meta")).unwrap().unwrap();
    let found: Vec<String> = global_variables(&graph).iter().map(Variable::name).collect();
    assert_eq!(found, names);
    assert_eq!(trainable_variables(&graph).len(), 3);
    assert_eq!(get_global_step(&graph).unwrap().name(), "global_step");
    assert_eq!(global_variables(&graph)[1].slice().unwrap().spec(), "4 0,2");
    assert_eq!(nodes(&graph, LOSSES)[0].name(), "loss");
    assert_eq!(graph.collection("sizes"), [5i64.into()]);
    let session = Session::local(&graph);
    saver.restore(&session, &path).unwrap();
    assert_eq!(session.run::<f32>("loss:0").unwrap(), 9.0);
}

#[test]
fn names_get_a_prefix() {
    let folder = Folder::new();
    let (first, file) = (graph(), folder.join("graph.meta"));
    Variable::builder(&first.root(), "w").initializer(Initializer::Constant(3.0)).kind(Kind::Reference).build();
    Saver::new(&first).unwrap().export_meta_graph(&file).unwrap();
    let meta = MetaGraph::open(&FileSystems::local(), &file).unwrap();
    let second = graph();
    let options = MetaImportOptions { prefix: "copy".to_string(), ..MetaImportOptions::default() };
    let saver = import(&second, &meta, &options).unwrap().unwrap();
    assert_eq!(saver.def().restore_op, "copy/save/restore_all");
    assert_eq!(global_variables(&second)[0].name(), "copy/w");
    let session = Session::local(&second);
    session.execute(&global_variables_initializer(&second)).unwrap();
    let path = saver.save(&session, folder.join("copy"), None).unwrap();
    saver.restore(&session, &path).unwrap();
}

#[test]
fn a_saved_model_answers_as_before() {
    let folder = Folder::new();
    let export = folder.join("export");
    let graph = graph();
    let root = graph.root();
    let x = root.placeholder(tensor::DType::F32, &[-1]);
    let w = Variable::builder(&root, "w").initializer(Initializer::Constant(3.0)).build();
    let offset = Variable::builder(&root, "offset").collections(&["local_variables"]).trainable(false).build();
    let main = offset.assign(&root.constant(0.5f32));
    let y = &x * w.value() + offset.value();
    let session = Session::local(&graph);
    session.execute(&global_variables_initializer(&graph)).unwrap();
    session.execute(&w.assign(&root.constant(4f32))).unwrap();
    let mut builder = SavedModelBuilder::new(&export).unwrap();
    let signatures = BTreeMap::from([("serving_default".to_string(), predict_signature([("x", &x)], [("y", &y)]))]);
    let options = MetaGraphOptions { signatures, main_op: Some(&main), ..MetaGraphOptions::default() };
    builder.add_meta_graph_and_variables(&session, &[SERVING], options).unwrap();
    builder.save().unwrap();
    let error = SavedModelBuilder::new(&export).err().unwrap();
    assert!(error.message.contains("already exists, and isn't empty"), "{error}");

    let other = super::graph();
    let model = load(&other, &export, &[SERVING]).unwrap();
    let session = Session::local(&other);
    model.restore(&session).unwrap();
    let answer = model.call(&session, "", &[("x", [1f32, 2.0].into())]).unwrap();
    assert_eq!(answer["y"].values::<f32>().unwrap(), [4.5, 8.5]);
    let error = model.call(&session, "", &[]).unwrap_err();
    assert!(error.message.contains("input 'x' of signature 'serving_default' is missing"), "{error}");
}
