//! The Rust half of `checkpoint_test.py`: writes and reads checkpoints, graphs and saved models as it is told.

use flowgrid::ops::data_structures::lookup::{hash_table, lookup_table_find};
use flowgrid::prelude::*;
use flowgrid::train::saved_model::{MetaGraphOptions, SERVING, SavedModelBuilder, load, predict_signature};
use flowgrid::train::saver::Saver;
use flowgrid::train::{create_global_step_in, import_meta_graph, replica_device_setter};
use std::collections::BTreeMap;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["save", folder, target] => save(folder, target),
        ["restore", prefix, target] => restore(prefix, target),
        ["import", prefix, fetches @ ..] => import(prefix, fetches),
        ["train", target, folder] => train(target, folder),
        ["export-model", folder] => export_model(folder),
        ["call-model", folder] => call_model(folder),
        ["export-words", folder, vocabulary] => export_words(folder, vocabulary),
        ["call-words", folder, words @ ..] => call_words(folder, words),
        _ => Err(flowgrid::Error::new(flowgrid::Code::InvalidArgument, format!("cannot do {args:?}"))),
    }
}

/// Variables of both kinds, one of them in parts, and the values they begin with if they are not zero.
fn variables(graph: &Graph, zero: bool, parts: usize) -> Vec<Output> {
    let root = graph.root();
    let count = |shape: &[usize], first: f32| {
        let size: usize = shape.iter().product();
        let values: Vec<f32> = (0..size).map(|i| if zero { 0.0 } else { first + i as f32 }).collect();
        Initializer::Value(Tensor::from_slice(shape, &values).expect("as many as the shape says"))
    };
    let a = Variable::builder(&root, "a").initializer(count(&[2, 3], 1.0)).build();
    let b = Variable::builder(&root, "scope/b").initializer(count(&[4], 10.0)).kind(Kind::Reference).build();
    let p = Variable::builder(&root, "p").initializer(count(&[5, 2], 100.0)).partitioned(0, parts);
    let step = create_global_step(graph).expect("the only one");
    let start = step.assign(&root.constant(if zero { 0i64 } else { 42 }));
    graph.add_to_collection("start", start.name());
    let loss = (a.value().sum() + b.value().sum()).seen_from(&root);
    root.op("Identity").named("loss").input(&loss).output();
    vec![a.value().clone(), b.value().clone(), p.value(), step.value().cast(DType::F32)]
}

fn save(folder: &str, target: &str) -> Result<()> {
    let graph = Graph::new();
    variables(&graph, false, 2);
    let (plain, sharded) = (Saver::new(&graph)?, Saver::builder(&graph).sharded(true).build()?);
    let init = global_variables_initializer(&graph);
    let start = flowgrid::layers::collection::nodes(&graph, "start");
    let session = Session::with_config(target, &graph, SessionConfig::default())?;
    session.execute(&init)?;
    session.execute(&start[0])?;
    println!("{}", plain.save(&session, format!("{folder}/plain"), 42)?);
    println!("{}", sharded.save(&session, format!("{folder}/sharded"), 42)?);
    Ok(())
}

fn restore(prefix: &str, target: &str) -> Result<()> {
    let graph = Graph::new();
    let values = variables(&graph, true, 3);
    let saver = Saver::new(&graph)?;
    let session = Session::with_config(target, &graph, SessionConfig::default())?;
    saver.restore(&session, prefix)?;
    for value in &values {
        println!("{:?}", session.run::<Vec<f32>>(value)?);
    }
    Ok(())
}

/// Reads the graph beside a checkpoint, restores its variables, and tells its loss, what else it knows, and some
/// numbers.
fn import(prefix: &str, fetches: &[&str]) -> Result<()> {
    let graph = Graph::new();
    let saver = import_meta_graph(&graph, format!("{prefix}.meta"))?.expect("it has variables");
    let session = Session::local(&graph);
    saver.restore(&session, prefix)?;
    println!("{}", session.run::<f32>("loss:0")?);
    let names = |variables: Vec<Variable>| variables.iter().map(Variable::name).collect::<Vec<_>>().join(",");
    println!("{}", names(global_variables(&graph)));
    println!("{}", names(trainable_variables(&graph)));
    // The graph can be trained on as it is.
    println!("{}", saver.save(&session, format!("{prefix}-again"), None)?);
    for fetch in fetches {
        println!("{}", session.run::<f32>(*fetch)?);
    }
    Ok(())
}

/// Makes a step for every line it reads, and tells where the step counter is then, or what went wrong.
fn train(target: &str, folder: &str) -> Result<()> {
    let graph = Graph::new();
    let scope = replica_device_setter(1).worker_device("/job:worker/task:0").on(&graph.root());
    let step = create_global_step_in(&scope)?;
    let next = step.assign_add(&scope.constant(1i64));
    let wait = std::time::Duration::from_millis(100);
    let mut session = MonitoredTrainingSession::new(&graph).master(target).recovery_wait(wait);
    if !folder.is_empty() {
        session = session.checkpoint_dir(folder).save_checkpoint(Every::Steps(5)).save_in_background(false);
    }
    let mut session = session.start()?;
    for _ in std::io::stdin().lines() {
        let made = session.run::<()>(&next).and_then(|()| session.run::<i64>(&step));
        match made {
            Ok(step) => println!("{step}"),
            Err(error) => println!("{}", error.to_string().replace('\n', " ")),
        }
    }
    session.close()
}

fn export_model(folder: &str) -> Result<()> {
    let graph = Graph::new();
    let x = graph.root().placeholder(DType::F32, &[-1, 2]);
    let w = Variable::builder(&graph.root(), "w").initializer(Initializer::Value([[2f32], [3.0]].into())).build();
    let y = x.matmul(&w);
    let init = global_variables_initializer(&graph);
    let session = Session::local(&graph);
    session.execute(&init)?;
    let signatures = BTreeMap::from([("serving_default".to_string(), predict_signature([("x", &x)], [("y", &y)]))]);
    let mut builder = SavedModelBuilder::new(folder)?;
    let options = MetaGraphOptions { signatures, ..MetaGraphOptions::default() };
    builder.add_meta_graph_and_variables(&session, &[SERVING], options)?;
    builder.save()?;
    Ok(())
}

fn call_model(folder: &str) -> Result<()> {
    let graph = Graph::new();
    let model = load(&graph, folder, &[SERVING])?;
    let session = Session::local(&graph);
    model.restore(&session)?;
    let answers = model.call(&session, "", &[("x", [[1f32, 10.0], [2.0, 20.0]].into())])?;
    for (name, value) in answers {
        println!("{name} {:?}", value.values::<f32>()?);
    }
    Ok(())
}

/// A model that needs a file, and has a variable in parts: words become numbers by a vocabulary, numbers become rows.
fn export_words(folder: &str, vocabulary: &str) -> Result<()> {
    let graph = Graph::new();
    let root = graph.root();
    let words = root.placeholder(DType::STRING, &[-1]);
    let (file, table) = (root.constant(vocabulary), hash_table(&root, "words", DType::STRING, DType::I64));
    // Words are lines, and mean the numbers of their lines.
    let fill = root.op("InitializeTableFromTextFileV2").input(&table).input(&file);
    let fill = fill.attr("key_index", -2).attr("value_index", -1).node();
    let numbers = lookup_table_find(&table, &words, &root.constant(0i64));
    let values: Vec<f32> = (0..10).map(|i| 100.0 + i as f32).collect();
    let rows = Initializer::Value(Tensor::from_slice([5, 2], &values)?);
    let rows = Variable::builder(&root, "rows").initializer(rows).partitioned(0, 3);
    let found = rows.value().gather(&numbers);
    let init = global_variables_initializer(&graph);
    let session = Session::local(&graph);
    session.execute(&init)?;
    let signature = predict_signature([("words", &words)], [("rows", &found)]);
    let options = MetaGraphOptions {
        signatures: BTreeMap::from([("serving_default".to_string(), signature)]),
        assets: vec![(&file, vocabulary)],
        main_op: Some(&fill),
        ..MetaGraphOptions::default()
    };
    let mut builder = SavedModelBuilder::new(folder)?;
    builder.add_meta_graph_and_variables(&session, &[SERVING], options)?;
    builder.save()?;
    Ok(())
}

fn call_words(folder: &str, words: &[&str]) -> Result<()> {
    let graph = Graph::new();
    let model = load(&graph, folder, &[SERVING])?;
    let session = Session::local(&graph);
    model.restore(&session)?;
    let given = words.iter().map(|word| word.as_bytes().to_vec().into()).collect();
    let words = Tensor::from_strings(Shape::new(&[words.len()]), given)?;
    let answers = model.call(&session, "", &[("words", words)])?;
    println!("{:?}", answers["rows"].values::<f32>()?);
    Ok(())
}
