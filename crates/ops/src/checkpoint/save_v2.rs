//! How SaveV2 writes: one tensor after the other, and those of other tasks piece by piece, so that it never holds one.

use super::args::{named_slices, prefix, slice_of};
use super::pace::Doing;
use super::systems;
use io::{BundleWriter, FileSystems};
use op::{Done, Far, Inputs, Kernel, Opened, Opening, Outputs, Pieces, Resources, Setup, StepEnv, later};
use parking_lot::Mutex;
use status::{Result, invalid};
use std::collections::VecDeque;
use std::sync::Arc;
use tensor::{Bytes, DType, Shape, Tensor};

/// Prefix, names and slices come before the tensors.
const FIRST: usize = 3;
/// The number of tensors requested ahead of their turn; of each, at most the flow-control window arrives early.
const AHEAD: usize = 16;

pub(super) fn save_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (systems, resources) = (systems(setup)?, setup.resources().clone());
    let kernel = later(move |ctx, inputs, done| {
        let (systems, resources, env) = (systems.clone(), resources.clone(), ctx.env.clone());
        (ctx.env.spawn)(Box::new(move || match begin(&systems, &resources, inputs) {
            Ok((writer, left)) => Saving { writer, left, env, done }.start(),
            Err(error) => done(Err(error)),
        }));
    });
    Ok(kernel.pulling(FIRST))
}

fn begin(systems: &FileSystems, resources: &Resources, mut inputs: Inputs) -> Result<(BundleWriter, VecDeque<Item>)> {
    let prefix = prefix(&inputs.tensor(0)?)?;
    let named = named_slices(&inputs.tensor(1)?, &inputs.tensor(2)?)?;
    let tensors = inputs.len() - FIRST;
    if named.len() != tensors {
        return Err(invalid!("Got {} tensor names but {tensors} tensors.", named.len()));
    }
    let item = |(place, (name, slice)): (usize, (String, String))| {
        let value = match inputs.far(FIRST + place) {
            Some(far) => Source::Far(Asked::new(far)),
            None => Source::Here(inputs.tensor(FIRST + place)?),
        };
        Ok(Item { name, slice, value })
    };
    let items = named.into_iter().enumerate().map(item).collect::<Result<_>>()?;
    let writer = BundleWriter::create(systems, &prefix)?;
    Ok((writer.watched(Doing::Saving.watch(resources, &prefix)), items))
}

/// A tensor to save: its name, the slice that it is of another or nothing, and where it is.
struct Item {
    name: String,
    slice: String,
    value: Source,
}

enum Source {
    Here(Tensor),
    Far(Asked),
}

/// A tensor of another task: not asked for yet, or asked for, and maybe there already.
struct Asked(Arc<Mutex<Answer>>);

enum Answer {
    Unasked(Far),
    None,
    Here(Result<Option<Opened>>),
    Wanted(Opening),
}

impl Asked {
    fn new(far: Far) -> Asked {
        Asked(Arc::new(Mutex::new(Answer::Unasked(far))))
    }

    /// Asks for it, unless it was asked for before.
    fn ask(&self) {
        let far = match &mut *self.0.lock() {
            answer @ Answer::Unasked(_) => std::mem::replace(answer, Answer::None),
            _ => return,
        };
        let place = self.0.clone();
        if let Answer::Unasked(far) = far {
            far.open(Box::new(move |opened| answer(&place, opened)));
        }
    }

    /// The answer, if it is there.
    fn now(&self) -> Option<Result<Option<Opened>>> {
        let mut answer = self.0.lock();
        match std::mem::replace(&mut *answer, Answer::None) {
            Answer::Here(opened) => Some(opened),
            other => {
                *answer = other;
                None
            }
        }
    }

    /// Calls `done` with the answer, at once or when it comes.
    fn wait(self, done: Opening) {
        self.ask();
        let mut answer = self.0.lock();
        match std::mem::replace(&mut *answer, Answer::None) {
            Answer::Here(opened) => {
                drop(answer);
                done(opened);
            }
            _ => *answer = Answer::Wanted(done),
        }
    }
}

/// Gives an answer to the one who waits for it, or keeps it.
fn answer(place: &Mutex<Answer>, opened: Result<Option<Opened>>) {
    let mut answer = place.lock();
    match std::mem::replace(&mut *answer, Answer::None) {
        Answer::Wanted(done) => {
            drop(answer);
            done(opened);
        }
        _ => *answer = Answer::Here(opened),
    }
}

/// A checkpoint that is being written. Whatever it waits for, it holds no thread meanwhile.
struct Saving {
    writer: BundleWriter,
    left: VecDeque<Item>,
    env: Arc<StepEnv>,
    done: Done,
}

/// What is to be done after a tensor was taken up.
enum Step {
    Next,
    /// Its bytes follow.
    Pull(Arc<dyn Pieces>),
    /// It is dead, and so the op is.
    Dead,
}

impl Saving {
    fn start(self) {
        for item in self.left.iter().take(AHEAD) {
            if let Source::Far(asked) = &item.value {
                asked.ask();
            }
        }
        self.go_on();
    }

    /// Writes until it has to wait.
    fn go_on(mut self) {
        loop {
            self.ask_ahead();
            let Some(Item { name, slice, value }) = self.left.pop_front() else {
                let Saving { writer, done, .. } = self;
                return done(writer.finish().map(|()| Outputs::new()));
            };
            let step = match (self.env.cancel.reason(), value) {
                (Some(reason), _) => Err(reason),
                (None, Source::Here(tensor)) => self.add(&name, &slice, &tensor).map(|()| Step::Next),
                (None, Source::Far(asked)) => match asked.now() {
                    Some(opened) => self.take(&name, &slice, opened),
                    None => return self.wait(name, slice, asked),
                },
            };
            match self.follow(step) {
                Some(saving) => self = saving,
                None => return,
            }
        }
    }

    /// Asks for tensors before their turn, since asking takes time; what is there of a large one waits for its turn.
    fn ask_ahead(&self) {
        if let Some(Source::Far(asked)) = self.left.get(AHEAD - 1).map(|item| &item.value) {
            asked.ask();
        }
    }

    fn wait(self, name: String, slice: String, asked: Asked) {
        asked.wait(Box::new(move |opened| {
            self.later(move |mut saving| {
                let step = saving.take(&name, &slice, opened);
                if let Some(saving) = saving.follow(step) {
                    saving.go_on();
                }
            });
        }));
    }

    /// Goes on where files may be written: what was waited for came on a thread that must not wait itself.
    fn later(self, go_on: impl FnOnce(Saving) + Send + 'static) {
        let spawn = self.env.spawn.clone();
        spawn(Box::new(move || go_on(self)));
    }

    /// A tensor of another task is there.
    fn take(&mut self, name: &str, slice: &str, opened: Result<Option<Opened>>) -> Result<Step> {
        match opened? {
            Some(Opened::Whole(tensor)) => self.add(name, slice, &tensor).map(|()| Step::Next),
            Some(Opened::Pieces(dtype, shape, pieces)) => {
                self.begin(name, slice, dtype, &shape).map(|()| Step::Pull(pieces))
            }
            None => Ok(Step::Dead),
        }
    }

    /// Gives itself back if it can go on at once. What is left of a checkpoint that will not be is gone before the step
    /// hears of it.
    fn follow(self, step: Result<Step>) -> Option<Saving> {
        match step {
            Ok(Step::Next) => return Some(self),
            Ok(Step::Pull(pieces)) => self.pull(pieces),
            Ok(Step::Dead) => self.give_up(Ok(Outputs::new())),
            Err(error) => self.give_up(Err(error)),
        }
        None
    }

    fn give_up(self, outcome: Result<Outputs>) {
        let Saving { writer, done, .. } = self;
        drop(writer);
        done(outcome);
    }

    fn pull(self, pieces: Arc<dyn Pieces>) {
        let next = pieces.clone();
        next.next(Box::new(move |piece| {
            self.later(|mut saving| {
                let step = saving.append(pieces, piece);
                if let Some(saving) = saving.follow(step) {
                    saving.go_on();
                }
            });
        }));
    }

    fn append(&mut self, pieces: Arc<dyn Pieces>, piece: Result<Option<Bytes>>) -> Result<Step> {
        if let Some(reason) = self.env.cancel.reason() {
            return Err(reason);
        }
        match piece? {
            Some(bytes) => self.writer.append(&bytes).map(|()| Step::Pull(pieces)),
            None => self.writer.end().map(|()| Step::Next),
        }
    }

    fn add(&mut self, name: &str, slice: &str, tensor: &Tensor) -> Result<()> {
        if slice.is_empty() {
            return self.writer.add(name, tensor);
        }
        let (shape, slice) = slice_of(slice, tensor.shape())?;
        self.writer.add_slice(name, &shape, &slice, tensor)
    }

    fn begin(&mut self, name: &str, slice: &str, dtype: DType, shape: &Shape) -> Result<()> {
        if slice.is_empty() {
            return self.writer.begin(name, None, dtype, shape);
        }
        let (whole, slice) = slice_of(slice, shape)?;
        self.writer.begin(name, Some((&whole, &slice)), dtype, shape)
    }
}
