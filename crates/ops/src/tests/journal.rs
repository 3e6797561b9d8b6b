//! A journal that is written anew while variables change, and of variables that change after their end.

use crate::state::journal::JournalKeeper;
use op::{ANONYMOUS, COUNTERS, Keeper, ReferenceVariable, Resources, Variable, VariableKey};
use parking_lot::Mutex;
use status::{Code, Error};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use tensor::{DType, Shape, Tensor};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("flowgrid-keeper-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }

    /// How often a segment was begun.
    fn segments(&self) -> u64 {
        let files = std::fs::read_dir(&self.0).unwrap().flatten();
        let number = |name: String| name.strip_suffix(".journal").and_then(|number| number.parse().ok());
        files.filter_map(|file| number(file.file_name().to_string_lossy().into_owned())).max().unwrap_or(0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A device whose variables are kept, and whose journal is written anew as soon as it can be. The former owner of the
/// folder is gone, but its thread may have the lock a moment longer.
fn device(folder: &Path) -> Resources {
    let mut tries = 0;
    loop {
        match JournalKeeper::with_slack(folder, 0) {
            Err(error) if error.code == Code::FailedPrecondition && tries < 1_000_000 => tries += 1,
            keeper => {
                let resources = Resources::new("localhost");
                resources.keep_variables(Arc::new(keeper.unwrap())).unwrap();
                return resources;
            }
        }
        std::thread::yield_now();
    }
}

const ROWS: usize = 40;

fn variable(device: &Resources, name: &str) -> Arc<Variable> {
    let dtype = DType::I64;
    let made = device.get_or_create("", name, || Ok(Variable::new(name, dtype).of_shape(Shape::new(&[ROWS, 3]))));
    let variable = made.unwrap();
    device.adopt(false, "", name, &variable);
    variable
}

fn zeros() -> Tensor {
    Tensor::zeros_of(DType::I64, [ROWS, 3]).unwrap()
}

/// Counts on in a row, or in all of them.
fn count(variable: &Variable, row: Option<usize>) {
    let Some(row) = row else { return variable.count(1) };
    let change = |value: &mut Tensor| {
        value.values_mut::<i64>()?[3 * row..3 * (row + 1)].iter_mut().for_each(|count| *count += 1);
        Ok(vec![row])
    };
    variable.update_rows(change).unwrap();
}

#[test]
fn a_journal_that_is_written_anew_under_updates_loses_nothing() {
    let folder = Folder::new("live");
    let names = ["a", "b", "c"];
    let read = |device: &Resources| names.map(|name| variable(device, name).read().unwrap());
    let mut last = {
        let device = device(&folder.0);
        names.iter().for_each(|name| variable(&device, name).assign(zeros()));
        read(&device)
    };
    for _ in 0..3 {
        let device = device(&folder.0);
        let found = read(&device);
        names.iter().zip(last.iter().zip(&found)).for_each(|(name, (last, found))| {
            assert_eq!(last.values::<i64>().unwrap(), found.values::<i64>().unwrap(), "{name}");
        });
        let (enough, goal) = (AtomicBool::new(false), folder.segments() + 3);
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
            while folder.segments() < goal {
                std::thread::yield_now();
            }
            enough.store(true, Ordering::Relaxed);
        });
        assert!(device.keeping_failed().is_none());
        last = read(&device);
    }
}

#[test]
fn rows_that_change_after_the_end_of_their_variable_are_not_kept() {
    let ends: [fn(&Resources); 2] = [|device| device.clear(""), |device| assert!(device.remove::<Variable>("", "a"))];
    for number in 0..4 {
        let (end, again) = (ends[number / 2], number % 2 == 1);
        let folder = Folder::new(&format!("late-{number}"));
        {
            let device = device(&folder.0);
            let late = variable(&device, "a");
            late.assign(zeros());
            end(&device);
            // Another variable may have its name by now.
            if again {
                variable(&device, "a").assign(zeros());
            }
            count(&late, Some(3));
            assert!(device.keeping_failed().is_none());
        }
        let found = device(&folder.0).get::<Variable>("", "a");
        let found = found.map(|variable| variable.read().unwrap().values::<i64>().unwrap().to_vec());
        assert_eq!(found, again.then(|| vec![0; 3 * ROWS]));
    }
}

#[test]
fn a_reference_has_its_value_again_whatever_shape_it_was_made_for() {
    let folder = Folder::new("shape");
    let reference = |device: &Resources| {
        let made = || ReferenceVariable(Arc::new(Variable::new("a", DType::I64).of_shape(Shape::new(&[ROWS, 3]))));
        let reference = device.get_or_create("", "a", || Ok(made())).unwrap();
        device.adopt(true, "", "a", &reference.0);
        reference.0.clone()
    };
    reference(&device(&folder.0)).assign(Tensor::vector(&[1i64, 2]));
    for _ in 0..2 {
        let found = reference(&device(&folder.0)).read().unwrap();
        assert_eq!(found.values::<i64>().unwrap(), [1, 2]);
    }
}

#[test]
fn variables_that_nobody_can_find_again_are_not_kept() {
    let folder = Folder::new("unfound");
    let made = |device: &Resources, container: &str| {
        let made = device.get_or_create(container, "7", || Ok(Variable::new("7", DType::I64))).unwrap();
        device.adopt(false, container, "7", &made);
        made.assign(Tensor::scalar(1i64));
    };
    {
        let device = device(&folder.0);
        [COUNTERS, ANONYMOUS, "kept"].iter().for_each(|container| made(&device, container));
        // It is gone before the keeper hears of it.
        let late = device.get_or_create("late", "a", || Ok(Variable::new("a", DType::I64))).unwrap();
        device.clear("late");
        device.adopt(false, "late", "a", &late);
        late.assign(Tensor::scalar(1i64));
    }
    let device = device(&folder.0);
    let found = [COUNTERS, ANONYMOUS, "kept", "late"].map(|container| device.has_container(container));
    assert_eq!(found, [false, false, true, false]);
}

#[test]
fn a_reference_that_is_removed_with_a_handle_of_its_name_is_not_kept() {
    let folder = Folder::new("both");
    let reference = |device: &Resources| {
        let made = || Ok(ReferenceVariable(Arc::new(Variable::new("a", DType::I64))));
        let reference = device.get_or_create("", "a", made).unwrap();
        device.adopt(true, "", "a", &reference.0);
        reference.0.clone()
    };
    {
        let device = device(&folder.0);
        reference(&device).assign(Tensor::scalar(1i64));
        assert!(device.remove_any("", "a"));
    }
    assert!(!reference(&device(&folder.0)).is_initialized());
}

#[test]
fn a_variable_does_not_inherit_from_one_whose_end_the_keeper_has_not_heard_of() {
    let folder = Folder::new("heir");
    let key = VariableKey { reference: false, container: "c".to_string(), name: "a".to_string() };
    {
        let keeper = JournalKeeper::open(&folder.0).unwrap();
        let [first, second] = [(); 2].map(|()| Arc::new(Variable::new("a", DType::I64)));
        first.assign(Tensor::scalar(1i64));
        keeper.adopt(&key, &first);
        keeper.adopt(&key, &second);
    }
    assert_eq!(JournalKeeper::open(&folder.0).unwrap().held().0, 0);
}

/// Notes what it is told, and gives a variable its value when somebody else asks for that variable.
struct Slow {
    asked: Mutex<mpsc::Receiver<()>>,
    notes: Mutex<Vec<Option<Vec<usize>>>>,
}

impl Keeper for Slow {
    fn adopt(&self, _: &VariableKey, variable: &Arc<Variable>) {
        let _ = self.asked.lock().recv();
        (0..1000).for_each(|_| std::thread::yield_now()); // the other one would be through by now
        variable.recall(|_| Some(zeros()));
    }

    fn note(&self, _: &VariableKey, _: &Variable, _: Option<&Tensor>, rows: Option<&[usize]>) {
        self.notes.lock().push(rows.map(<[usize]>::to_vec));
    }

    fn lose(&self, _: &VariableKey, _: &Variable) {}

    fn forget(&self, _: &str) {}

    fn orphans(&self) -> Vec<(VariableKey, Tensor)> {
        Vec::new()
    }

    fn failure(&self) -> Option<Error> {
        None
    }
}

fn slow_device() -> (Resources, mpsc::Sender<()>, Arc<Slow>) {
    let (ask, asked) = mpsc::channel();
    let keeper = Arc::new(Slow { asked: Mutex::new(asked), notes: Mutex::default() });
    let device = Resources::new("localhost");
    device.keep_variables(keeper.clone()).unwrap();
    (device, ask, keeper)
}

#[test]
fn who_comes_second_waits_for_the_value_that_was_kept() {
    let (device, ask, _) = slow_device();
    std::thread::scope(|scope| {
        scope.spawn(|| variable(&device, "a"));
        while !device.has_container("") {
            std::thread::yield_now();
        }
        ask.send(()).unwrap();
        assert!(variable(&device, "a").is_initialized());
    });
}

#[test]
fn a_keeper_hears_of_each_row_once_and_of_no_update_that_found_nothing() {
    let (device, ask, keeper) = slow_device();
    drop(ask);
    let variable = variable(&device, "a");
    variable.update_rows(|_| Ok(vec![2; 1_000_000].into_iter().chain([1]).collect())).unwrap();
    variable.lock().take();
    assert_eq!(variable.update(|_| Ok(())).unwrap_err().code, Code::FailedPrecondition);
    assert_eq!(*keeper.notes.lock(), [Some(vec![1, 2]), None]);
}

#[test]
fn rows_that_are_all_rows_are_a_value() {
    let folder = Folder::new("all-rows");
    {
        let variable = variable(&device(&folder.0), "a");
        variable.assign(zeros());
        let change = |value: &mut Tensor| {
            value.values_mut::<i64>()?.fill(7);
            Ok((0..ROWS).collect())
        };
        variable.update_rows(change).unwrap();
    }
    let found = variable(&device(&folder.0), "a").read().unwrap();
    assert_eq!(found.values::<i64>().unwrap(), [7; 3 * ROWS]);
}

#[test]
fn a_device_that_counts_takes_no_counters_from_a_journal() {
    let folder = Folder::new("counters");
    let key = VariableKey { reference: false, container: COUNTERS.to_string(), name: "steps".to_string() };
    let keeper = Arc::new(JournalKeeper::open(&folder.0).unwrap());
    keeper.adopt(&key, &Arc::new(Variable::counter("steps")));
    drop(keeper);
    let resources = Resources::new("localhost");
    resources.create(COUNTERS, "steps", Arc::new(Variable::counter("steps"))).unwrap();
    resources.keep_variables(Arc::new(JournalKeeper::open(&folder.0).unwrap())).unwrap();
}
