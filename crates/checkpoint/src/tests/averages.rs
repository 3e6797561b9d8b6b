//! Averages of variables in checkpoints.

use super::{Folder, graph};
use crate::Saver;
use graph::Graph;
use layers::collection::global_variables_initializer;
use layers::{Initializer, ScopeOps, Variable};
use optimize::ExponentialMovingAverage;
use session::Session;

/// Variables w and b, which are trained, and c and d, which are not; averages of w and d.
fn averaged(graph: &Graph) -> (ExponentialMovingAverage, [Variable; 4]) {
    let build = |name: &str, trainable: bool| {
        let builder = Variable::builder(&graph.root(), name).initializer(Initializer::Constant(3.0));
        builder.trainable(trainable).build()
    };
    let [w, b, c, d] = [build("w", true), build("b", true), build("c", false), build("d", false)];
    (ExponentialMovingAverage::new(0.5), [w, b, c, d])
}

#[test]
fn a_checkpoint_gives_averages_to_the_variables_of_another_graph() {
    let (folder, training) = (Folder::new(), graph());
    let (averages, [w, _, c, d]) = averaged(&training);
    let follow = averages.apply(&[w.clone(), d]).unwrap();
    let saver = Saver::new(&training).unwrap();
    let session = Session::local(&training);
    session.execute(&global_variables_initializer(&training)).unwrap();
    for variable in [&w, &c] {
        session.execute(&variable.assign(&training.root().constant(9f32))).unwrap();
    }
    session.execute(&follow).unwrap();
    let path = saver.save(&session, folder.join("model"), 1).unwrap();

    let serving = graph();
    let (averages, [w, _, c, d]) = averaged(&serving);
    let from = averages.variables_to_restore(&serving, std::slice::from_ref(&w));
    let saver = Saver::builder(&serving).named_variables(from.iter().map(|(name, variable)| (&**name, variable)));
    let session = Session::local(&serving);
    saver.build().unwrap().restore(&session, &path).unwrap();
    // Halfway from 3 to 9; the value itself where there is no average.
    assert_eq!(session.run::<(f32, f32, f32)>((&w, &c, &d)).unwrap(), (6.0, 9.0, 3.0));
}
