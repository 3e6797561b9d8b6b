//! Functions that call others one after the other.

use op::{Callable, Ctx, Done, Forks, Inputs, Outputs, StepEnv, Value};
use parking_lot::Mutex;
use status::{Result, internal};
use std::sync::Arc;
use tensor::Tensor;

/// What the functions of a chain get and return.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// Each gets the results of the one before it.
    Compose,
    /// All get the arguments, until one returns something other than true.
    All,
    /// The second gets the results of the first, which are followed by its own.
    Append,
}

/// Functions that are called one after the other.
pub(crate) struct Chain {
    functions: Arc<[Arc<dyn Callable>]>,
    join: Join,
}

impl Chain {
    pub(crate) fn new(functions: Vec<Arc<dyn Callable>>, join: Join) -> Chain {
        Chain { functions: functions.into(), join }
    }

    /// The functions, if they are joined in this way.
    pub(crate) fn functions(&self, join: Join) -> Option<&[Arc<dyn Callable>]> {
        (self.join == join).then_some(&*self.functions)
    }
}

impl Callable for Chain {
    fn call(&self, ctx: &Ctx<'_>, mut args: Inputs, done: Done) {
        let args = match (0..args.len()).map(|index| args.tensor(index)).collect() {
            Ok(args) => args,
            Err(error) => return done(Err(error)),
        };
        let (functions, join) = (self.functions.clone(), self.join);
        Progress { functions, join, next: 0, values: args, env: ctx.env.clone(), done }.run();
    }

    fn fork(&self, forks: &Forks) -> Result<Arc<dyn Callable>> {
        let functions = self.functions.iter().map(|function| function.fork(forks)).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(Chain::new(functions, self.join)))
    }

    fn has_op(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.functions.iter().any(|function| function.has_op(test))
    }
}

/// A call of a chain.
struct Progress {
    functions: Arc<[Arc<dyn Callable>]>,
    join: Join,
    /// The function to call next.
    next: usize,
    /// Its arguments.
    values: Vec<Tensor>,
    env: Arc<StepEnv>,
    done: Done,
}

/// What is known about one of the calls of a chain.
enum Link {
    Begun,
    Ended(Result<Outputs>),
    /// The call ends later, and then the chain goes on there.
    Waiting(Box<Progress>),
}

impl Progress {
    /// Calls the functions in a loop as long as they end at once, so that the stack does not grow with the chain.
    fn run(mut self) {
        while let Some(function) = self.functions.get(self.next).cloned() {
            let link = Arc::new(Mutex::new(Link::Begun));
            let place = link.clone();
            let inputs = self.values.iter().cloned().map(Value::Tensor).collect();
            let end = move |result| Progress::ended(&place, result);
            function.call(&Ctx { env: &self.env.clone(), frame: 0, iteration: 0 }, inputs, Box::new(end));
            let mut state = link.lock();
            match std::mem::replace(&mut *state, Link::Begun) {
                Link::Ended(result) => {
                    drop(state);
                    match self.advanced(result) {
                        Some(progress) => self = progress,
                        None => return,
                    }
                }
                _ => {
                    *state = Link::Waiting(Box::new(self));
                    return;
                }
            }
        }
        let results = self.values.into_iter().map(Value::Tensor).collect();
        (self.done)(Ok(results));
    }

    fn ended(link: &Mutex<Link>, result: Result<Outputs>) {
        let mut state = link.lock();
        match std::mem::replace(&mut *state, Link::Begun) {
            Link::Waiting(progress) => {
                drop(state);
                if let Some(progress) = progress.advanced(result) {
                    progress.run();
                }
            }
            _ => *state = Link::Ended(result),
        }
    }

    /// Takes the results of a function; none if the chain has ended.
    fn advanced(mut self, result: Result<Outputs>) -> Option<Progress> {
        let results: Result<Vec<Tensor>> = result.and_then(|outputs| outputs.into_iter().map(Value::read).collect());
        self.next += 1;
        match results {
            Err(error) => {
                (self.done)(Err(error));
                return None;
            }
            Ok(results) if self.join == Join::Append && self.next > 1 => self.values.extend(results),
            Ok(results) if self.join == Join::All => {
                let goes_on = self.next < self.functions.len() && is_true(&results);
                if !goes_on {
                    (self.done)(Ok(results.into_iter().map(Value::Tensor).collect()));
                    return None;
                }
            }
            Ok(results) => self.values = results,
        }
        Some(self)
    }
}

fn is_true(results: &[Tensor]) -> bool {
    matches!(results, [result] if matches!(result.values::<bool>(), Ok(&[true])))
}

/// Returns a part of its arguments.
pub(crate) enum Part {
    Last,
    AllButLast,
}

impl Callable for Part {
    fn call(&self, _: &Ctx<'_>, mut args: Inputs, done: Done) {
        let Some(last) = args.len().checked_sub(1) else {
            return done(Err(internal!("A function of a rewritten pipeline got no arguments")));
        };
        let range = match self {
            Part::Last => last..last + 1,
            Part::AllButLast => 0..last,
        };
        done(range.map(|index| args.take(index)).collect());
    }

    fn fork(&self, _: &Forks) -> Result<Arc<dyn Callable>> {
        Ok(Arc::new(match self {
            Part::Last => Part::Last,
            Part::AllButLast => Part::AllButLast,
        }))
    }
}
