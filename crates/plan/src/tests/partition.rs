//! Parts of steps; loops as a TensorFlow 2.21 master cuts them (`output_partition_graphs`), under our names.

use super::text::{devices, graph, lines, sorted};
use crate::{Signature, partition, place, prune};
use graph::{AttrValue, DeviceSpec, FlatGraph};

fn parts(graph: &FlatGraph, fetch: &str) -> status::Result<Vec<crate::Part>> {
    let devices = devices(&["worker:0", "worker:1", "worker:2"]);
    let placement = place(graph, &devices, &[], false)?;
    let signature = Signature { fetches: vec![fetch.to_string()], ..Signature::default() };
    let step = prune(graph, &signature, &placement, &devices)?;
    partition(step, &devices, graph, "0_")
}

/// Partitions the graph and compares the parts.
fn check(text: &str, fetch: &str, expected: &[&str]) {
    let parts = parts(&graph(text), fetch).unwrap();
    assert_eq!(parts.len(), expected.len());
    for (part, expected) in parts.iter().zip(expected) {
        assert_eq!(lines(part), sorted(expected), "on {}", part.task);
    }
}

#[test]
fn a_value_crosses_once_for_all_its_readers() {
    check(
        "a Const @/job:worker/task:1
         b Mul a a @/job:worker/task:0
         c Add a b @/job:worker/task:0",
        "c:0",
        &[
            "a/_0_S0 _Recv
             b Mul a/_0_S0 a/_0_S0
             c Add a/_0_S0 b
             _send_c_0 _Send c",
            "a Const
             a/_0_S0 _Send a",
        ],
    );
}

#[test]
fn a_fetch_leaves_from_the_task_that_makes_it() {
    let graph = graph(
        "a Const @/job:worker/task:0
         b Mul a a @/job:worker/task:1",
    );
    let parts = parts(&graph, "b:0").unwrap();
    assert_eq!(lines(&parts[0]), sorted("a Const\n a/_0_S0 _Send a"));
    assert_eq!(lines(&parts[1]), sorted("a/_0_S0 _Recv\n b Mul a/_0_S0 a/_0_S0\n _send_b_0 _Send b"));
    let device = "/job:worker/replica:0/task:1/device:CPU:0";
    let incarnation = devices(&["worker:0", "worker:1", "worker:2"])[1].incarnation;
    let key = format!("{device};{incarnation:016x};{device};b:0;0:0");
    assert_eq!((&parts[0].fetches[..], &parts[1].fetches[..]), (&[][..], &[("b:0".to_string(), key)][..]));
}

#[test]
fn a_fetch_from_a_gpu_leaves_from_the_memory_of_its_task() {
    let graph = graph("a Const @/job:worker/task:1/device:GPU:0");
    let mut devices = devices(&["worker:0", "worker:1"]);
    let gpu = DeviceSpec::parse("/job:worker/replica:0/task:1/device:GPU:0").unwrap();
    devices.push(crate::Device::new(gpu, 9, &Default::default()));
    let signature = Signature { fetches: vec!["a".to_string()], ..Signature::default() };
    let parts = partition(prune(&graph, &signature, &[2], &devices).unwrap(), &devices, &graph, "0_").unwrap();
    let sends: Vec<&str> = parts[0].graph.nodes.iter().map(|node| &*node.device).collect();
    let cpu = "/job:worker/replica:0/task:1/device:CPU:0";
    assert_eq!(sends, ["/job:worker/replica:0/task:1/device:GPU:0", cpu]);
    // The client may call it `a`, in the key it is `a:0`.
    let key = format!("{cpu};{:016x};{cpu};a:0;0:0", devices[1].incarnation);
    assert_eq!(parts[0].fetches, [("a".to_string(), key)]);
}

#[test]
fn a_control_edge_crosses_as_an_empty_tensor_behind_an_identity() {
    check(
        "a Act @/job:worker/task:1
         b Const ^a @/job:worker/task:0",
        "b:0",
        &[
            "a/_0_S0 _Recv
             a/ctrl_0_R0 Identity a/_0_S0
             b Const ^a/ctrl_0_R0
             _send_b_0 _Send b",
            "a Act
             a/ctrl_0_S0 Const ^a
             a/_0_S0 _Send a/ctrl_0_S0",
        ],
    );
}

/// `while i < 3: x = 2 x` with the doubling on the second task.
const LOOP: &str = "
    zero Const @/job:worker/task:0
    one Const @/job:worker/task:0
    i Enter zero frame_name=L parallel_iterations=7 @/job:worker/task:0
    x Enter one frame_name=L parallel_iterations=7 @/job:worker/task:0
    mi Merge i ni N=2 @/job:worker/task:0
    mx Merge x nx N=2 @/job:worker/task:0
    three Const ^mi @/job:worker/task:0
    less Less mi three @/job:worker/task:0
    cond LoopCond less @/job:worker/task:0
    si Switch mi cond @/job:worker/task:0
    sx Switch mx cond @/job:worker/task:0
    bi Identity si:1 @/job:worker/task:0
    bx Identity sx:1 @/job:worker/task:0
    step Const ^bi @/job:worker/task:0
    add Add bi step @/job:worker/task:0
    two Const ^bi @/job:worker/task:1
    dbl Mul bx two @/job:worker/task:1
    ni NextIteration add @/job:worker/task:0
    nx NextIteration dbl @/job:worker/task:1
    out Exit sx @/job:worker/task:1";

#[test]
fn a_loop_over_two_tasks_turns_on_both() {
    check(
        LOOP,
        "out:0",
        &[
            "zero Const
             one Const
             i Enter zero
             x Enter one
             mi Merge i ni
             mx Merge x nx
             three Const ^mi
             less Less mi three
             cond LoopCond less
             cond/_0_S3 _Send cond
             si Switch mi cond
             sx Switch mx cond
             bi Identity si:1
             bi/ctrl_0_S0 Const ^bi
             bi/_0_S0 _Send bi/ctrl_0_S0
             bx Identity sx:1
             bx/_0_S1 _Send bx
             step Const ^bi
             add Add bi step
             ni NextIteration add
             dbl/_0_S2 _Recv ^_cloopnx_0_S7
             nx NextIteration dbl/_0_S2
             out Exit sx
             _send_out_0 _Send out
             _cloopnx_0_S5 Const
             _cloopnx_0_S6 Enter _cloopnx_0_S5
             _cloopnx_0_S7 Merge _cloopnx_0_S6 _cloopnx_0_S9
             _cloopnx_0_S8 Switch _cloopnx_0_S7 cond
             _cloopnx_0_S9 NextIteration _cloopnx_0_S8:1",
            "bi/_0_S0 _Recv ^_clooptwo_0_S2
             bi/ctrl_0_R0 Identity bi/_0_S0
             two Const ^bi/ctrl_0_R0
             bx/_0_S1 _Recv ^_clooptwo_0_S2
             dbl Mul bx/_0_S1 two
             dbl/_0_S2 _Send dbl
             cond/_0_S3 _Recv ^_clooptwo_0_S2
             _clooptwo_0_S0 Const
             _clooptwo_0_S1 Enter _clooptwo_0_S0
             _clooptwo_0_S2 Merge _clooptwo_0_S1 _clooptwo_0_S4
             _clooptwo_0_S3 Switch _clooptwo_0_S2 cond/_0_S3
             _clooptwo_0_S4 NextIteration _clooptwo_0_S3:1",
        ],
    );
}

#[test]
fn a_control_loop_has_the_frame_of_the_loop() {
    let parts = parts(&graph(LOOP), "out:0").unwrap();
    let enter = parts[1].graph.nodes.iter().find(|node| node.op == "Enter").unwrap();
    assert_eq!(enter.attrs["frame_name"], AttrValue::from("L"));
    assert_eq!(enter.attrs["parallel_iterations"], AttrValue::from(7i64));
    assert_eq!(enter.attrs["is_constant"], AttrValue::from(false));
}

/// A loop in a loop; the inner body runs on the second task.
const NESTED: &str = "
    start Const
    x Enter start frame_name=outer
    mx Merge x nx N=2
    p Less mx mx
    c LoopCond p
    sx Switch mx c
    bx Identity sx:1
    y Enter bx frame_name=inner
    my Merge y ny N=2
    q Less my my
    d LoopCond q
    sy Switch my d
    by Identity sy:1
    far Mul by by @/job:worker/task:1
    ny NextIteration far
    z Exit sy
    nx NextIteration z
    out Exit sx";

#[test]
fn a_loop_in_a_loop_ticks_in_the_iterations_of_both() {
    let parts = parts(&graph(NESTED), "out:0").unwrap();
    let expected = "
        by/_0_S0 _Recv ^_cloopfar_0_S6
        far Mul by/_0_S0 by/_0_S0
        far/_0_S1 _Send far
        _cloopfar_0_S0 Const
        _cloopfar_0_S1 Enter _cloopfar_0_S0
        _cloopfar_0_S2 Merge _cloopfar_0_S1 _cloopfar_0_S4
        _cloopfar_0_S3 Switch _cloopfar_0_S2 c/_0_S2
        c/_0_S2 _Recv ^_cloopfar_0_S2
        _cloopfar_0_S4 NextIteration _cloopfar_0_S3:1
        _cloopfar_0_S5 Enter _cloopfar_0_S2
        _cloopfar_0_S6 Merge _cloopfar_0_S5 _cloopfar_0_S8
        _cloopfar_0_S7 Switch _cloopfar_0_S6 d/_0_S3
        d/_0_S3 _Recv ^_cloopfar_0_S6
        _cloopfar_0_S8 NextIteration _cloopfar_0_S7:1";
    assert_eq!(lines(&parts[1]), sorted(expected));
}

#[test]
fn a_task_that_only_sends_into_a_loop_counts_along() {
    let text = "
        start Const @/job:worker/task:0
        k Const @/job:worker/task:1
        x Enter start frame_name=L @/job:worker/task:0
        e Enter k frame_name=L is_constant=true @/job:worker/task:1
        sq Mul e e @/job:worker/task:1
        mx Merge x nx N=2 @/job:worker/task:0
        p Less mx mx @/job:worker/task:0
        c LoopCond p @/job:worker/task:0
        sx Switch mx c @/job:worker/task:0
        b Mul sx:1 sq @/job:worker/task:0
        nx NextIteration b @/job:worker/task:0
        out Exit sx @/job:worker/task:0";
    let parts = parts(&graph(text), "out:0").unwrap();
    let merges = |part: &crate::Part| part.graph.nodes.iter().filter(|node| node.name.starts_with("_cloop")).count();
    assert_eq!((merges(&parts[0]), merges(&parts[1])), (5, 5));
}

#[test]
fn a_loop_on_one_task_stays_as_it_is() {
    let text = LOOP.replace("task:1", "task:2").replace("task:0", "task:2");
    let parts = parts(&graph(&text), "out:0").unwrap();
    assert!(parts.iter().all(|part| part.graph.nodes.iter().all(|node| !node.name.starts_with("_cloop"))));
}

#[test]
fn a_conditional_read_happens_where_the_variable_is() {
    check(
        "p Placeholder dtype=bool @/job:worker/task:0
         v Const @/job:worker/task:1
         s Switch v p @/job:worker/task:0
         a Identity s:1 @/job:worker/task:0",
        "a:0",
        &[
            "p Placeholder
             p/_0_S0 _Send p
             s/_0_S1 _Recv
             a Identity s/_0_S1
             _send_a_0 _Send a",
            "v Const
             p/_0_S0 _Recv
             s Switch v p/_0_S0
             s/_0_S1 _Send s:1",
        ],
    );
}

#[test]
fn a_loop_without_a_condition_cannot_cross() {
    let text = "
        a Const @/job:worker/task:0
        e Enter a frame_name=L @/job:worker/task:0
        b Identity e @/job:worker/task:0
        c Identity b @/job:worker/task:1
        d Identity c @/job:worker/task:1
        out Exit d @/job:worker/task:1";
    let error = parts(&graph(text), "out:0").unwrap_err();
    assert_eq!(error.message, "A cross-device loop must have a pivot predicate: L");
}
