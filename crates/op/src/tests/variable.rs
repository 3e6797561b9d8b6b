//! Variables: values, snapshots, and the observer of a device.

use crate::{OnceCallback, Resources, Variable, VariableKey, VariableObserver};
use parking_lot::Mutex;
use status::{Code, Error};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use tensor::{DType, Tensor};

#[test]
fn a_read_is_a_snapshot() {
    let variable = Variable::new("v", DType::I64);
    assert_eq!(variable.read().unwrap_err().message, "Attempting to use uninitialized value v");
    variable.assign(Tensor::vector(&[1i64, 2]));
    let before = variable.read().unwrap();
    variable
        .update(|value| {
            let _: () = value.values_mut::<i64>()?.fill(7);
            Ok(())
        })
        .unwrap();
    assert_eq!(before.values::<i64>().unwrap(), [1, 2]);
    assert_eq!(variable.read().unwrap().values::<i64>().unwrap(), [7, 7]);
    assert_eq!((variable.elements(), variable.try_shape().unwrap().rank()), (2, 1));
}

#[test]
fn counters_start_at_zero_and_ignore_other_values() {
    let counter = Variable::counter("c");
    counter.count(2);
    counter.count(3);
    assert_eq!(counter.counted(), 5);
    counter.assign(Tensor::vector(&[1i64, 2]));
    assert_eq!(counter.counted(), 0);
}

#[test]
fn waiting_ops_are_called_with_the_first_value() {
    let (variable, called) = (Variable::new("v", DType::I64), Arc::new(AtomicBool::new(false)));
    let flag = called.clone();
    variable.when_initialized(OnceCallback::new(move || flag.store(true, Ordering::Relaxed)));
    assert!(!called.load(Ordering::Relaxed) && !variable.is_initialized());
    variable.assign(Tensor::scalar(1i64));
    assert!(called.load(Ordering::Relaxed));
}

/// One call of the observer.
#[derive(Debug, PartialEq)]
enum Event {
    Added,
    Changed(Option<Vec<usize>>),
    Removed,
    Cleared(String),
}

/// Records its calls. It restores the value of an added variable once the sender of `restore` allows it or is dropped.
struct Recorder {
    restore: Mutex<mpsc::Receiver<()>>,
    events: Mutex<Vec<Event>>,
}

impl VariableObserver for Recorder {
    fn added(&self, _: &VariableKey, variable: &Arc<Variable>) {
        let _ = self.restore.lock().recv();
        (0..1000).for_each(|_| std::thread::yield_now()); // time for another thread to overtake this one
        variable.restore(|_| Some(Tensor::vector(&[0i64; 4])));
        self.events.lock().push(Event::Added);
    }

    fn changed(&self, _: &VariableKey, _: &Variable, _: Option<&Tensor>, rows: Option<&[usize]>) {
        self.events.lock().push(Event::Changed(rows.map(<[usize]>::to_vec)));
    }

    fn removed(&self, _: &VariableKey, _: &Variable) {
        self.events.lock().push(Event::Removed);
    }

    fn cleared(&self, container: &str) {
        self.events.lock().push(Event::Cleared(container.to_string()));
    }

    fn failure(&self) -> Option<Error> {
        None
    }
}

fn observed_device() -> (Resources, mpsc::Sender<()>, Arc<Recorder>) {
    let (allow, restore) = mpsc::channel();
    let recorder = Arc::new(Recorder { restore: Mutex::new(restore), events: Mutex::default() });
    let device = Resources::new("localhost");
    device.observe_variables(recorder.clone());
    (device, allow, recorder)
}

fn variable(device: &Resources) -> Arc<Variable> {
    let variable = device.get_or_create("", "a", || Ok(Variable::new("a", DType::I64))).unwrap();
    device.observe_variable(false, "", "a", &variable);
    variable
}

#[test]
fn a_second_thread_waits_until_the_value_is_restored() {
    let (device, allow, _) = observed_device();
    std::thread::scope(|scope| {
        scope.spawn(|| variable(&device));
        while !device.has_container("") {
            std::thread::yield_now();
        }
        allow.send(()).unwrap();
        assert!(variable(&device).is_initialized());
    });
}

#[test]
fn an_observer_gets_each_row_once_and_no_update_that_changed_nothing() {
    let (device, allow, recorder) = observed_device();
    drop(allow);
    let variable = variable(&device);
    variable.update_rows(|_| Ok(vec![2; 1_000_000].into_iter().chain([1]).collect())).unwrap();
    variable.lock().take();
    assert_eq!(variable.update(|_| Ok(())).unwrap_err().code, Code::FailedPrecondition);
    assert_eq!(*recorder.events.lock(), [Event::Added, Event::Changed(Some(vec![1, 2])), Event::Changed(None)]);
}

#[test]
fn an_observer_learns_of_removed_variables_and_cleared_containers() {
    let (device, allow, recorder) = observed_device();
    drop(allow);
    variable(&device);
    assert!(device.remove_any("", "a"));
    variable(&device);
    device.clear("");
    let cleared = Event::Cleared("localhost".to_string());
    assert_eq!(*recorder.events.lock(), [Event::Added, Event::Removed, Event::Added, cleared]);
}

#[test]
fn a_variable_that_is_not_on_the_device_is_not_observed() {
    let (device, allow, recorder) = observed_device();
    drop(allow);
    let stray = Arc::new(Variable::new("a", DType::I64));
    device.observe_variable(false, "", "a", &stray);
    stray.assign(Tensor::scalar(1i64));
    assert!(recorder.events.lock().is_empty());
}
