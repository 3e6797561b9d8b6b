//! Threads that stop together, work at fixed times, queues that are kept filled.

use super::graph;
use crate::coordination::Schedule;
use crate::{
    Coordinator, JoinOptions, Looper, QueueRunner, QueueRunnerDef, SharedStop, queue_runners, start_queue_runners,
};
use layers::collection::global_variables_initializer;
use layers::{Kind, Queue, ScopeOps, Variable};
use session::{ClusterSpec, Server, ServerOptions, Session, Task};
use status::{Code, aborted, internal, out_of_range};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tensor::{DType, PartialShape, Tensor};

#[test]
fn the_first_error_is_the_reason() {
    let coordinator = Coordinator::new();
    assert!(!coordinator.should_stop());
    coordinator.spawn("first", |_| Err(aborted!("first"))).unwrap();
    assert!(coordinator.wait_for_stop(None));
    assert_eq!(coordinator.stop_on_error(|| Err::<(), _>(internal!("second"))), None);
    assert_eq!(coordinator.join().unwrap_err(), aborted!("first"));
    coordinator.clear_stop();
    assert!(!coordinator.wait_for_stop(Some(Duration::ZERO)));
    coordinator.join().unwrap();
}

#[test]
fn the_end_of_the_input_is_a_clean_stop() {
    let coordinator = Coordinator::new();
    coordinator.request_stop_with(out_of_range!("no more")).unwrap();
    coordinator.request_stop_with(aborted!("too late to be the reason")).unwrap();
    assert!(coordinator.should_stop());
    coordinator.join().unwrap();
    let coordinator = Coordinator::with_clean(&[Code::Cancelled]);
    coordinator.request_stop_with(out_of_range!("no more")).unwrap();
    assert_eq!(coordinator.join().unwrap_err().code, Code::OutOfRange);
}

#[test]
fn a_panic_stops_everybody() {
    let coordinator = Coordinator::new();
    coordinator.spawn("careless", |_| panic!("as this test wants")).unwrap();
    assert!(coordinator.wait_for_stop(None));
    assert_eq!(coordinator.join().unwrap_err(), internal!("Thread careless panicked"));
}

#[test]
fn laggards_are_named() {
    let coordinator = Coordinator::new();
    let (release, released) = channel::<()>();
    coordinator.spawn("quick", |_| Ok(())).unwrap();
    coordinator.join().unwrap();
    let slow = std::thread::spawn(move || {
        let _ = released.recv();
    });
    coordinator.register_thread("slow", slow);
    coordinator.request_stop();
    let options = JoinOptions { grace: Duration::ZERO, ..JoinOptions::default() };
    let error = coordinator.join_with(&options).unwrap_err();
    assert_eq!(error.message, "Coordinator stopped with threads still running: slow");
    coordinator.join_with(&JoinOptions { ignore_live_threads: true, ..options }).unwrap();
    drop(release);
    coordinator.join().unwrap();
}

#[test]
fn an_error_after_the_join_comes_back() {
    let coordinator = Coordinator::new();
    coordinator.request_stop();
    assert!(!coordinator.joined());
    coordinator.join().unwrap();
    assert!(coordinator.joined());
    assert_eq!(coordinator.request_stop_with(aborted!("late")), Err(aborted!("late")));
    assert_eq!(coordinator.request_stop_with(out_of_range!("a clean end")), Ok(()));
    coordinator.clear_stop();
    assert!(!coordinator.joined());
    coordinator.join().unwrap();
    // A clean end is one after the join too.
    assert_eq!(coordinator.request_stop_with(out_of_range!("a clean end")), Ok(()));
    assert!(coordinator.should_stop());
    coordinator.clear_stop();
    // Threads that are started afterwards are heard again.
    coordinator.join().unwrap();
    coordinator.spawn("next", |_| Err(aborted!("heard"))).unwrap();
    assert_eq!(coordinator.join().unwrap_err(), aborted!("heard"));
}

#[test]
fn a_grid_does_not_drift() {
    let (start, second) = (Instant::now(), Duration::from_secs(1));
    let mut schedule = Schedule::new(start, second);
    assert_eq!(schedule.pause(start), Duration::ZERO);
    assert_eq!(schedule.pause(start + second / 4), second * 3 / 4);
    // Work that took too long is begun again at once, and the schedule stays.
    assert_eq!(schedule.pause(start + second * 7 / 2), Duration::ZERO);
    assert_eq!(schedule.pause(start + second * 7 / 2), Duration::ZERO);
    assert_eq!(schedule.pause(start + second * 7 / 2), second / 2);
}

#[test]
fn a_looper_repeats_until_it_fails() {
    for interval in [None, Some(Duration::from_micros(10))] {
        let coordinator = Coordinator::new();
        let mut left = 3;
        let work = move || {
            left -= 1;
            if left == 0 { Err(aborted!("enough")) } else { Ok(()) }
        };
        Looper::start(&coordinator, "looper", interval, work).unwrap();
        assert_eq!(coordinator.join().unwrap_err(), aborted!("enough"));
    }
}

#[test]
fn queues_hand_out_what_they_were_given() {
    let graph = graph();
    let root = graph.root();
    let row = [PartialShape::new(&[2])];
    let fifo = Queue::fifo(&root, &[DType::F32]).capacity(10).shapes(&row).build();
    let rows = root.constant([[1f32, 2.], [3., 4.], [5., 6.]]);
    let (put, one) = (fifo.enqueue_many(&[rows]), fifo.dequeue().remove(0));
    let (two, rest) = (fifo.dequeue_many(&root.constant(1i32)).remove(0), fifo.dequeue_up_to(&root.constant(9i32)));
    let (size, close) = (fifo.size(), fifo.close(false));
    assert_eq!((one.shape(), two.shape()), (row[0].clone(), PartialShape::new(&[1, 2])));
    assert_eq!(put.name(), "fifo_queue_EnqueueMany");
    let session = Session::local(&graph);
    session.execute(&put).unwrap();
    assert_eq!(session.run::<[f32; 2]>(&one).unwrap(), [1., 2.]);
    assert_eq!(session.run::<Vec<[f32; 2]>>(&two).unwrap(), [[3., 4.]]);
    assert_eq!(session.run::<i32>(&size).unwrap(), 1);
    session.execute(&close).unwrap();
    assert_eq!(session.run::<Vec<[f32; 2]>>(&rest[0]).unwrap(), [[5., 6.]]);
    assert_eq!(session.run::<Tensor>(&one).unwrap_err().code, Code::OutOfRange);
    assert!(session.run::<bool>(&fifo.is_closed()).unwrap());
}

#[test]
fn queues_of_other_orders() {
    let graph = graph();
    let root = graph.root();
    let line = PartialShape::new(&[-1]);
    let padded = Queue::padding_fifo(&root, &[DType::I32], &[line]).build();
    let puts = [padded.enqueue(&[root.constant([1i32])]), padded.enqueue(&[root.constant([2i32, 3])])];
    let batch = padded.dequeue_many(&root.constant(2i32)).remove(0);
    let sorted = Queue::priority(&root, &[DType::STRING], &[PartialShape::scalar()]).build();
    let put = sorted.enqueue_many(&[root.constant([5i64, 2]), root.constant(["five", "two"])]);
    let first = sorted.dequeue();
    let shuffled = Queue::random_shuffle(&root, &[DType::I32], 0).shapes(&[PartialShape::scalar()]).seed(1).build();
    let fill = shuffled.enqueue_many(&[root.constant([3i32, 1, 2])]);
    let all = shuffled.dequeue_many(&root.constant(3i32)).remove(0);
    let session = Session::local(&graph);
    for put in puts.iter().chain([&put, &fill]) {
        session.execute(put).unwrap();
    }
    let (mut batch, all): (Vec<[i32; 2]>, Vec<i32>) = session.run((&batch, &all)).unwrap();
    batch.sort();
    assert_eq!(batch, [[1, 0], [2, 3]]);
    assert_eq!(all.iter().sum::<i32>(), 6);
    let (number, text): (i64, String) = session.run((&first[0], &first[1])).unwrap();
    assert_eq!((number, text.as_str()), (2, "two"));
}

#[test]
fn runners_fill_a_queue_until_the_input_ends() {
    let graph = graph();
    let root = graph.root();
    let builder = Variable::builder(&root, "count").dtype(DType::I32).kind(Kind::Reference).trainable(false);
    let counter = builder.build();
    let next = root.op("CountUpTo").input(counter.handle()).attr("limit", 100i64).output();
    let queue = Queue::fifo(&root, &[DType::I32]).capacity(3).build();
    let enqueue = || queue.enqueue(std::slice::from_ref(&next));
    let runner = QueueRunner::new(&queue, &[enqueue(), enqueue()]);
    runner.register();
    let value = queue.dequeue().remove(0);
    let session = Arc::new(Session::local(&graph));
    session.execute(&global_variables_initializer(&graph)).unwrap();
    let coordinator = Coordinator::new();
    start_queue_runners(&session, &coordinator).unwrap();
    let mut found = Vec::new();
    let end = loop {
        match session.run::<i32>(&value) {
            Ok(value) => found.push(value),
            Err(error) => break error,
        }
    };
    assert_eq!(end.code, Code::OutOfRange, "{end}");
    found.sort();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    coordinator.request_stop();
    coordinator.join().unwrap();
}

#[test]
fn a_stop_frees_runners_that_wait_for_room() {
    let graph = graph();
    let queue = Queue::fifo(&graph.root(), &[DType::I32]).capacity(1).build();
    let runner = QueueRunner::new(&queue, &[queue.enqueue(&[graph.root().constant(7i32)])]);
    let value = queue.dequeue().remove(0);
    let session = Arc::new(Session::local(&graph));
    let coordinator = Coordinator::new();
    runner.start(&session, &coordinator).unwrap();
    assert_eq!(session.run::<i32>(&value).unwrap(), 7);
    coordinator.request_stop();
    coordinator.join().unwrap();
}

#[test]
fn runners_start_once_in_a_session() {
    let graph = graph();
    let queue = Queue::fifo(&graph.root(), &[DType::I32]).capacity(1).name("q").build();
    QueueRunner::new(&queue, &[queue.enqueue(&[graph.root().constant(7i32)])]).register();
    let sessions = [0, 1].map(|_| Arc::new(Session::local(&graph)));
    let coordinator = Coordinator::new();
    let start = |session: &Arc<Session>| {
        start_queue_runners(session, &coordinator).unwrap();
        coordinator.threads()
    };
    let one = ["QueueRunnerThread-q-q_enqueue", "QueueRunnerThread-q-close_on_stop"];
    assert_eq!(start(&sessions[0]), one);
    assert_eq!(start(&sessions[0]), one);
    assert_eq!(start(&sessions[1]), one.repeat(2));
    assert_eq!(start(&sessions[1]), one.repeat(2));
    coordinator.request_stop();
    coordinator.join().unwrap();
    // Those have ended: there may be others in their place.
    assert_eq!(start(&sessions[0]), one);
    coordinator.join().unwrap();
}

#[test]
fn runners_are_written_as_tensorflow_writes_them() {
    let graph = graph();
    let queue = Queue::fifo(&graph.root(), &[DType::I32]).name("q").build();
    QueueRunner::new(&queue, &[queue.enqueue(&[graph.root().constant(7i32)])]).register();
    let def = queue_runners(&graph).unwrap().remove(0).to_def();
    // Written by TensorFlow for the same graph.
    let bytes = b"\n\x01q\x12\tq_enqueue\x1a\x07q_Close\"\tq_Close_1*\x01\x0b";
    assert_eq!(def.encode()[..], bytes[..]);
    assert_eq!(QueueRunnerDef::decode(bytes).unwrap(), def);
    assert!(QueueRunnerDef::decode(b"\xff").is_err());
}

#[test]
fn a_stop_reaches_other_processes() {
    let cluster = ClusterSpec::parse("ps=127.0.0.1:0").unwrap();
    let server = Server::start(ServerOptions::new(cluster, Task { job: "ps".to_string(), index: 0 })).unwrap();
    let coordinators: Vec<(Coordinator, Arc<Session>)> = (0..3)
        .map(|_| {
            let graph = graph();
            let stop = SharedStop::new(&graph.root().on("/job:ps/task:0"), "stop_of_run_1");
            let session = Arc::new(Session::connect(server.target(), &graph).unwrap());
            let coordinator = Coordinator::new();
            stop.join(&session, &coordinator).unwrap();
            (coordinator, session)
        })
        .collect();
    coordinators[1].0.request_stop_with(aborted!("one has had enough")).unwrap();
    assert!(coordinators.iter().all(|(coordinator, _)| coordinator.wait_for_stop(None)));
    let ends: Vec<_> = coordinators.iter().map(|(coordinator, _)| coordinator.join()).collect();
    assert_eq!(ends, [Ok(()), Err(aborted!("one has had enough")), Ok(())]);
}
