//! Journals that are compacted while variables change, and variables that change after they were removed.

use self::folder::Folder;
use crate::DurableVariables;
use op::{ANONYMOUS, COUNTERS, ReferenceVariable, Resources, Variable, VariableKey, VariableObserver};
use status::Code;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tensor::{DType, Shape, Tensor};

#[path = "../../io/src/tests/folder.rs"]
mod folder;

/// The number of the newest segment.
fn segments(folder: &Folder) -> u64 {
    let files = std::fs::read_dir(folder.path()).unwrap().flatten();
    let number = |name: String| name.strip_suffix(".journal").and_then(|number| number.parse().ok());
    files.filter_map(|file| number(file.file_name().to_string_lossy().into_owned())).max().unwrap_or(0)
}

/// A device with durable variables, whose journal is compacted as soon as possible. The former owner of the folder was
/// dropped, but its thread may hold the lock of the folder a moment longer.
fn device(folder: &Path) -> Resources {
    let mut tries = 0;
    loop {
        match DurableVariables::open_with(folder, 0) {
            Err(error) if error.code == Code::FailedPrecondition && tries < 1_000_000 => tries += 1,
            variables => {
                let resources = Resources::new("localhost");
                Arc::new(variables.unwrap()).attach(&resources).unwrap();
                return resources;
            }
        }
        std::thread::yield_now();
    }
}

const ROWS: usize = 40;

fn variable(device: &Resources, name: &str) -> Arc<Variable> {
    let dtype = DType::I64;
    let created = device.get_or_create("", name, || Ok(Variable::new(name, dtype).of_shape(Shape::new(&[ROWS, 3]))));
    let variable = created.unwrap();
    device.observe_variable(false, "", name, &variable);
    variable
}

fn zeros() -> Tensor {
    Tensor::zeros_of(DType::I64, [ROWS, 3]).unwrap()
}

/// Adds one to a row, or to all rows.
fn count(variable: &Variable, row: Option<usize>) {
    let Some(row) = row else { return variable.count(1) };
    let change = |value: &mut Tensor| {
        value.values_mut::<i64>()?[3 * row..3 * (row + 1)].iter_mut().for_each(|count| *count += 1);
        Ok(vec![row])
    };
    variable.update_rows(change).unwrap();
}

#[test]
fn a_journal_that_is_compacted_during_updates_loses_nothing() {
    let folder = Folder::new();
    let names = ["a", "b", "c"];
    let read = |device: &Resources| names.map(|name| variable(device, name).read().unwrap());
    let mut last = {
        let device = device(folder.path());
        names.iter().for_each(|name| variable(&device, name).assign(zeros()));
        read(&device)
    };
    for _ in 0..3 {
        let device = device(folder.path());
        let found = read(&device);
        names.iter().zip(last.iter().zip(&found)).for_each(|(name, (last, found))| {
            assert_eq!(last.values::<i64>().unwrap(), found.values::<i64>().unwrap(), "{name}");
        });
        let (enough, goal) = (AtomicBool::new(false), segments(&folder) + 3);
        std::thread::scope(|scope| {
            for (number, name) in names.iter().enumerate() {
                let (variable, enough) = (variable(&device, name), &enough);
                scope.spawn(move || {
                    for step in 0.. {
                        count(&variable, (step % 10 > number).then_some(step % ROWS));
                        if enough.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            while segments(&folder) < goal {
                std::thread::yield_now();
            }
            enough.store(true, Ordering::Relaxed);
        });
        assert!(device.observer_failure().is_none());
        last = read(&device);
    }
}

#[test]
fn rows_that_change_after_their_variable_was_removed_are_not_stored() {
    let ends: [fn(&Resources); 2] = [|device| device.clear(""), |device| assert!(device.remove::<Variable>("", "a"))];
    for number in 0..4 {
        let (end, again) = (ends[number / 2], number % 2 == 1);
        let folder = Folder::new();
        {
            let device = device(folder.path());
            let late = variable(&device, "a");
            late.assign(zeros());
            end(&device);
            // Another variable may have its name by now.
            if again {
                variable(&device, "a").assign(zeros());
            }
            count(&late, Some(3));
            assert!(device.observer_failure().is_none());
        }
        let found = device(folder.path()).get::<Variable>("", "a");
        let found = found.map(|variable| variable.read().unwrap().values::<i64>().unwrap().to_vec());
        assert_eq!(found, again.then(|| vec![0; 3 * ROWS]));
    }
}

#[test]
fn a_reference_variable_is_restored_with_any_shape() {
    let folder = Folder::new();
    let reference = |device: &Resources| {
        let create = || ReferenceVariable(Arc::new(Variable::new("a", DType::I64).of_shape(Shape::new(&[ROWS, 3]))));
        let reference = device.get_or_create("", "a", || Ok(create())).unwrap();
        device.observe_variable(true, "", "a", &reference.0);
        reference.0.clone()
    };
    reference(&device(folder.path())).assign(Tensor::vector(&[1i64, 2]));
    for _ in 0..2 {
        let found = reference(&device(folder.path())).read().unwrap();
        assert_eq!(found.values::<i64>().unwrap(), [1, 2]);
    }
}

#[test]
fn variables_that_cannot_be_found_by_name_are_not_stored() {
    let folder = Folder::new();
    let create = |device: &Resources, container: &str| {
        let created = device.get_or_create(container, "7", || Ok(Variable::new("7", DType::I64))).unwrap();
        device.observe_variable(false, container, "7", &created);
        created.assign(Tensor::scalar(1i64));
    };
    {
        let device = device(folder.path());
        [COUNTERS, ANONYMOUS, "kept"].iter().for_each(|container| create(&device, container));
        // It is removed before it is observed.
        let late = device.get_or_create("late", "a", || Ok(Variable::new("a", DType::I64))).unwrap();
        device.clear("late");
        device.observe_variable(false, "late", "a", &late);
        late.assign(Tensor::scalar(1i64));
    }
    let device = device(folder.path());
    let found = [COUNTERS, ANONYMOUS, "kept", "late"].map(|container| device.has_container(container));
    assert_eq!(found, [false, false, true, false]);
}

#[test]
fn a_reference_variable_that_is_removed_through_a_handle_is_not_stored() {
    let folder = Folder::new();
    let reference = |device: &Resources| {
        let create = || Ok(ReferenceVariable(Arc::new(Variable::new("a", DType::I64))));
        let reference = device.get_or_create("", "a", create).unwrap();
        device.observe_variable(true, "", "a", &reference.0);
        reference.0.clone()
    };
    {
        let device = device(folder.path());
        reference(&device).assign(Tensor::scalar(1i64));
        assert!(device.remove_any("", "a"));
    }
    assert!(!reference(&device(folder.path())).is_initialized());
}

#[test]
fn a_variable_does_not_inherit_from_one_whose_removal_is_reported_late() {
    let folder = Folder::new();
    let key = VariableKey { reference: false, container: "c".to_string(), name: "a".to_string() };
    {
        let variables = DurableVariables::open(folder.path()).unwrap();
        let [first, second] = [(); 2].map(|()| Arc::new(Variable::new("a", DType::I64)));
        first.assign(Tensor::scalar(1i64));
        variables.added(&key, &first);
        variables.added(&key, &second);
    }
    assert_eq!(DurableVariables::open(folder.path()).unwrap().unclaimed().0, 0);
}

#[test]
fn an_update_of_all_rows_is_stored_as_a_value() {
    let folder = Folder::new();
    {
        let variable = variable(&device(folder.path()), "a");
        variable.assign(zeros());
        let change = |value: &mut Tensor| {
            value.values_mut::<i64>()?.fill(7);
            Ok((0..ROWS).collect())
        };
        variable.update_rows(change).unwrap();
    }
    let found = variable(&device(folder.path()), "a").read().unwrap();
    assert_eq!(found.values::<i64>().unwrap(), [7; 3 * ROWS]);
}

#[test]
fn counters_of_a_device_are_not_restored() {
    let folder = Folder::new();
    let key = VariableKey { reference: false, container: COUNTERS.to_string(), name: "steps".to_string() };
    let variables = DurableVariables::open(folder.path()).unwrap();
    variables.added(&key, &Arc::new(Variable::counter("steps")));
    drop(variables);
    let resources = Resources::new("localhost");
    resources.create(COUNTERS, "steps", Arc::new(Variable::counter("steps"))).unwrap();
    Arc::new(DurableVariables::open(folder.path()).unwrap()).attach(&resources).unwrap();
}
