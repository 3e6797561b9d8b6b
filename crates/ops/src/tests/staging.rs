//! Staging areas and barriers over several steps.

use super::evaluate::{Evaluation, FLOAT, constant, floats, graph, int, ints, refusal};
use crate::data_structures::queue::type_list;
use graph::{AttrList, AttrValue, Graph, Node, Output};
use status::Code;
use tensor::{Bytes, PartialShape, Tensor};

fn long(g: &Graph, value: i64) -> Output {
    constant(g, Tensor::scalar(value))
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.values::<f32>().unwrap().to_vec()
}

#[test]
fn an_area_is_emptied_as_it_was_filled() {
    let g = graph();
    let area = |op: &str| g.root().op(op).attr("shared_name", "area").attr("capacity", 1);
    let stage = |value: f32| area("Stage").inputs(&[floats(&g, &[value])]).node();
    let unstage = area("Unstage").attr("dtypes", type_list(&[FLOAT])).output();
    let session = Evaluation::new();
    let (early, late) = (session.next(), session.next());
    let first = early.start(unstage.node());
    assert!(first.waits());
    session.next().run(&stage(1.0)).unwrap();
    assert_eq!(numbers(&first.tensors().unwrap()[0]), [1.0]);
    session.next().run(&stage(2.0)).unwrap();
    let full = late.start(&stage(3.0));
    assert!(full.waits());
    assert_eq!(numbers(&session.next().value(&unstage).unwrap()), [2.0]);
    assert!(full.tensors().is_ok());
    let peek = area("StagePeek").input(&int(&g, 0)).attr("dtypes", type_list(&[FLOAT])).output();
    assert_eq!(numbers(&session.next().value(&peek).unwrap()), [3.0]);
    session.next().run(&area("StageClear").attr("dtypes", type_list(&[FLOAT])).node()).unwrap();
    let waiting = session.next();
    let given_up = waiting.start(unstage.node());
    waiting.cancel();
    assert_eq!(given_up.tensors().unwrap_err().code, Code::Cancelled);
}

#[test]
fn keys_wait_for_all_their_tensors() {
    let g = graph();
    let two = || type_list(&[FLOAT, FLOAT]);
    let area = |op: &str| g.root().op(op).attr("shared_name", "map");
    let put = |key: i64, index: i32, value: f32| {
        let op = area("OrderedMapStage").input(&long(&g, key)).input(&ints(&g, &[index]));
        op.inputs(&[floats(&g, &[value])]).attr("dtypes", two()).node()
    };
    let session = Evaluation::new();
    let waiting = session.next();
    let op = area("OrderedMapUnstageNoKey").input(&ints(&g, &[0, 1])).attr("dtypes", two());
    let any = waiting.start(&op.node());
    session.next().run(&put(7, 1, 1.0)).unwrap();
    let again = refusal(session.next().run(&put(7, 1, 1.0)));
    assert_eq!(again, "The tensor for index '1' for key '7' was already initialized '2'.");
    let incomplete = area("OrderedMapIncompleteSize").attr("dtypes", two()).output();
    assert_eq!(session.next().value(&incomplete).unwrap().to_scalar::<i32>().unwrap(), 1);
    assert!(any.waits());
    session.next().run(&put(7, 0, 0.0)).unwrap();
    let tensors = any.tensors().unwrap();
    assert_eq!(tensors[0].to_scalar::<i64>().unwrap(), 7);
    assert_eq!([numbers(&tensors[1]), numbers(&tensors[2])], [[0.0], [1.0]]);
}

fn barrier(g: &Graph) -> Output {
    let shapes = AttrValue::from(AttrList { shapes: vec![PartialShape::scalar(); 2], ..AttrList::default() });
    g.root()
        .op("Barrier")
        .named("b")
        .attr("component_types", type_list(&[FLOAT, FLOAT]))
        .attr("shapes", shapes)
        .output()
}

fn insert(g: &Graph, barrier: &Output, component: i64, keys: &[&'static str], values: &[f32]) -> Node {
    let keys = keys.iter().map(|key| Bytes::from(*key)).collect::<Vec<_>>();
    let keys = constant(g, Tensor::from_strings([keys.len()], keys).unwrap());
    let op = g.root().op("BarrierInsertMany").input(barrier).input(&keys).input(&floats(g, values));
    op.attr("component_index", component).node()
}

fn take(g: &Graph, barrier: &Output, count: i32) -> Node {
    let op = g.root().op("BarrierTakeMany").input(barrier).input(&int(g, count));
    op.attr("component_types", type_list(&[FLOAT, FLOAT])).node()
}

#[test]
fn keys_leave_a_barrier_in_the_order_they_came() {
    let g = graph();
    let barrier = barrier(&g);
    let session = Evaluation::new();
    let waiting = session.next();
    let taken = waiting.start(&take(&g, &barrier, 2));
    session.next().run(&insert(&g, &barrier, 0, &["a"], &[1.0])).unwrap();
    session.next().run(&insert(&g, &barrier, 0, &["b"], &[2.0])).unwrap();
    session.next().run(&insert(&g, &barrier, 1, &["b"], &[20.0])).unwrap();
    assert!(taken.waits());
    let again = refusal(session.next().run(&insert(&g, &barrier, 0, &["a"], &[1.0])));
    assert_eq!(again, "Key a already has a value for component 0 in barrier _0_b");
    session.next().run(&insert(&g, &barrier, 1, &["a"], &[10.0])).unwrap();
    let tensors = taken.tensors().unwrap();
    assert_eq!(tensors[0].values::<i64>().unwrap(), [i64::MIN, i64::MIN + 1]);
    assert_eq!(tensors[1].strings().unwrap(), ["a", "b"]);
    assert_eq!([numbers(&tensors[2]), numbers(&tensors[3])], [[1.0, 2.0], [10.0, 20.0]]);
}

#[test]
fn a_closed_barrier_completes_what_it_has() {
    let g = graph();
    let barrier = barrier(&g);
    let session = Evaluation::new();
    session.next().run(&insert(&g, &barrier, 0, &["a"], &[1.0])).unwrap();
    let close = |cancel: bool| {
        let op = g.root().op("BarrierClose").input(&barrier).attr("cancel_pending_enqueues", cancel);
        session.next().run(&op.node())
    };
    close(false).unwrap();
    let fresh = refusal(session.next().run(&insert(&g, &barrier, 0, &["b"], &[1.0])));
    assert!(
        fresh.starts_with("Barrier _0_b is closed, but attempted to insert a brand new key: b.  Pending"),
        "{fresh}"
    );
    session.next().run(&insert(&g, &barrier, 1, &["a"], &[10.0])).unwrap();
    let few = refusal(session.next().run(&take(&g, &barrier, 2)));
    assert_eq!(few, "Barrier '_0_b' is closed and has insufficient elements (requested 2, total size 1)");
    session.next().run(&take(&g, &barrier, 1)).unwrap();
    assert_eq!(refusal(close(false)), "Barrier '_0_b' is already closed.");
    close(true).unwrap();
}
