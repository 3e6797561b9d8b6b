//! One step with hooks around it: the requests of the user and of all hooks run together, and each gets its own
//! values.

use super::{RunArgs, RunContext, RunValues, SessionRunHook};
use checkpoint::step_number;
use graph::Fetch;
use session::{Feeds, FetchAs, Fetches, RunOptions, Session, Values};
use status::{Result, invalid};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tensor::Tensor;

/// The fetches of the user, of each hook, and of the step counter.
struct AllFetches<'a, F> {
    user: &'a F,
    hooks: &'a [RunArgs],
    counter: Option<&'a Fetch>,
}

impl<F: Fetches> Fetches for AllFetches<'_, F> {
    fn ask(&self, asked: &mut Vec<Fetch>) {
        self.user.ask(asked);
        asked.extend(self.hooks.iter().flat_map(|args| args.fetches.iter().cloned()));
        asked.extend(self.counter.cloned());
    }
}

type StepValues<V> = (V, Vec<Vec<Option<Tensor>>>, Option<Tensor>);

impl<F: FetchAs<V>, V> FetchAs<StepValues<V>> for AllFetches<'_, F> {
    fn answer(&self, values: &mut Values) -> Result<StepValues<V>> {
        let user = self.user.answer(values)?;
        let mut hooks = Vec::with_capacity(self.hooks.len());
        for args in self.hooks {
            hooks.push(args.fetches.iter().map(|fetch| one(fetch, values)).collect::<Result<_>>()?);
        }
        let counter = self.counter.map(|fetch| one(fetch, values)).transpose()?;
        Ok((user, hooks, counter.flatten()))
    }
}

fn one(fetch: &Fetch, values: &mut Values) -> Result<Option<Tensor>> {
    match fetch {
        Fetch::Value(_) => values.take::<Tensor>().map(Some),
        Fetch::Target(_) => values.take::<()>().map(|()| None),
    }
}

/// Runs a step with hooks around it; also gives the value of the step counter.
pub(super) fn run_hooked<V, F: FetchAs<V>>(
    session: &Session,
    hooks: &mut [Box<dyn SessionRunHook>],
    stop: &AtomicBool,
    fetches: &F,
    (feeds, options): (&Feeds, &RunOptions),
    counter: Option<&Fetch>,
) -> Result<(V, Option<i64>)> {
    let mut original = RunArgs { feeds: feeds.clone(), options: options.clone(), ..RunArgs::default() };
    fetches.ask(&mut original.fetches);
    let context = RunContext::new(session, &original, stop);
    let asked = hooks.iter_mut().map(|hook| hook.before_run(&context)).collect::<Result<Vec<RunArgs>>>()?;
    let (feeds, options) = merged(&original, &asked)?;
    let all = AllFetches { user: fetches, hooks: &asked, counter };
    let ((user, answers, counter), metadata) = session.run_with_options(all, feeds, options)?;
    let metadata = Arc::new(metadata);
    for (hook, values) in hooks.iter_mut().zip(answers) {
        hook.after_run(&context, &RunValues { values, metadata: metadata.clone() })?;
    }
    let counter = counter.map(|tensor| step_number(&tensor)).transpose()?;
    Ok((user, counter))
}

/// All feeds and options together. It is an error if two of them feed the same tensor, since the order of hooks would
/// decide.
fn merged(original: &RunArgs, hooks: &[RunArgs]) -> Result<(Feeds, RunOptions)> {
    let users: BTreeSet<&str> = original.feeds.names().collect();
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    let (mut feeds, mut options) = (original.feeds.clone(), original.options.clone());
    for args in hooks {
        for name in args.feeds.names() {
            if !taken.insert(name) {
                return Err(invalid!("Same tensor is fed by two hooks. ({name})"));
            }
            if users.contains(name) {
                return Err(invalid!("Same tensor is fed by a SessionRunHook and user. ({name})"));
            }
        }
        feeds = feeds.and(args.feeds.clone());
        options.timeout = options.timeout.max(args.options.timeout);
        options.trace |= args.options.trace;
        options.partition_graphs |= args.options.partition_graphs;
    }
    Ok((feeds, options))
}
