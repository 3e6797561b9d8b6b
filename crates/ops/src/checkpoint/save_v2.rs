//! How SaveV2 writes: one tensor after the other, and those of other tasks piece by piece, so that it never holds one.

use super::args::{named_slices, prefix, slice_of};
use super::systems;
use io::{BundleWriter, FileSystems};
use op::{Done, Far, Inputs, Kernel, Opened, Opening, Outputs, Pieces, Setup, StepEnv, later};
use parking_lot::Mutex;
use status::{Error, Result, invalid};
use std::collections::VecDeque;
use std::sync::Arc;
use tensor::{Bytes, DType, Shape, Tensor};

/// Prefix, names and slices come before the tensors.
const FIRST: usize = 3;
/// So many tensors are asked for before their turn.
const AHEAD: usize = 8;

pub(super) fn save_v2_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    let kernel = later(move |ctx, inputs, done| {
        let (systems, env) = (systems.clone(), ctx.env.clone());
        (ctx.env.spawn)(Box::new(move || match begin(&systems, inputs) {
            Ok((writer, left)) => Saving { writer, left, env, done }.go_on(),
            Err(error) => done(Err(error)),
        }));
    });
    Ok(kernel.pulling(FIRST))
}

fn begin(systems: &FileSystems, mut inputs: Inputs) -> Result<(BundleWriter, VecDeque<Item>)> {
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
    Ok((BundleWriter::create(systems, &prefix)?, items))
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

impl Saving {
    /// Writes until it has to wait.
    fn go_on(mut self) {
        self.ask_ahead();
        while let Some(Item { name, slice, value }) = self.left.pop_front() {
            let written = match (self.env.cancel.reason(), value) {
                (Some(reason), _) => Err(reason),
                (None, Source::Here(tensor)) => self.add(&name, &slice, &tensor),
                (None, Source::Far(asked)) => {
                    let take = move |opened| self.later(move |saving| saving.take(&name, &slice, opened));
                    return asked.wait(Box::new(take));
                }
            };
            if let Err(error) = written {
                return self.fail(error);
            }
        }
        let Saving { writer, done, .. } = self;
        done(writer.finish().map(|()| Outputs::new()));
    }

    /// Asks for tensors before their turn, since asking takes time; what is there of a large one waits for its turn.
    fn ask_ahead(&self) {
        for item in self.left.iter().take(AHEAD) {
            if let Source::Far(asked) = &item.value {
                asked.ask();
            }
        }
    }

    /// Goes on where files may be written: what was waited for came on a thread that must not wait itself.
    fn later(self, go_on: impl FnOnce(Saving) + Send + 'static) {
        let spawn = self.env.spawn.clone();
        spawn(Box::new(move || go_on(self)));
    }

    /// What was left of the checkpoint is gone before the step hears of the error.
    fn fail(self, error: Error) {
        let Saving { writer, done, .. } = self;
        drop(writer);
        done(Err(error));
    }

    /// A tensor of another task is there.
    fn take(mut self, name: &str, slice: &str, opened: Result<Option<Opened>>) {
        let begun = match opened {
            Ok(Some(Opened::Whole(tensor))) => self.add(name, slice, &tensor).map(|()| None),
            Ok(Some(Opened::Pieces(dtype, shape, pieces))) => {
                self.begin(name, slice, dtype, &shape).map(|()| Some(pieces))
            }
            // One tensor is dead, and so the op is.
            Ok(None) => return drop_all(self),
            Err(error) => Err(error),
        };
        match begun {
            Ok(None) => self.go_on(),
            Ok(Some(pieces)) => self.pull(pieces),
            Err(error) => self.fail(error),
        }
    }

    fn pull(self, pieces: Arc<dyn Pieces>) {
        let next = pieces.clone();
        next.next(Box::new(move |piece| self.later(|saving| saving.append(pieces, piece))));
    }

    fn append(mut self, pieces: Arc<dyn Pieces>, piece: Result<Option<Bytes>>) {
        let more = match (self.env.cancel.reason(), piece) {
            (Some(reason), _) => Err(reason),
            (None, Ok(Some(bytes))) => self.writer.append(&bytes).map(|()| true),
            (None, Ok(None)) => self.writer.end().map(|()| false),
            (None, Err(error)) => Err(error),
        };
        match more {
            Ok(true) => self.pull(pieces),
            Ok(false) => self.go_on(),
            Err(error) => self.fail(error),
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

/// Ends without a checkpoint.
fn drop_all(saving: Saving) {
    let Saving { writer, done, .. } = saving;
    drop(writer);
    done(Ok(Outputs::new()));
}
