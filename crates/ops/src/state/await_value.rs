//! Waits until a variable has its first value, for clients that would poll otherwise.

use graph::AttrValue;
use op::{Ctx, Done, Home, OnceCallback, Setup, StepEnv, Variable, outputs};
use parking_lot::Mutex;
use std::sync::Arc;
use tensor::{ResourceHandle, Tensor};

/// A node that checks whether a variable is initialized waits until it is, if the node has this attribute. Servers that do
/// not know the attribute answer at once.
pub const WAIT: &str = "_flowgrid_wait";

/// True if a node has the attribute.
pub(super) fn is_waiting(setup: &Setup<'_>) -> bool {
    matches!(setup.find(WAIT), Some(AttrValue::Bool(true)))
}

/// Answers when the variable that a handle names has a value. The variable need not exist yet.
pub(super) fn await_named(ctx: &Ctx<'_>, home: &Home, handle: &ResourceHandle, done: Done) {
    Waiting::begin(ctx.env, done).for_named(home.clone(), handle.clone());
}

/// Answers when a variable has a value.
pub(super) fn await_variable(ctx: &Ctx<'_>, variable: &Arc<Variable>, done: Done) {
    Waiting::begin(ctx.env, done).for_variable(variable);
}

/// An op that waits; its step may be cancelled.
#[derive(Clone)]
struct Waiting {
    env: Arc<StepEnv>,
    done: Arc<Mutex<Option<Done>>>,
    /// The callback that continues the op; withdrawn when the step is cancelled.
    call: Arc<Mutex<Option<OnceCallback>>>,
}

impl Waiting {
    fn begin(env: &Arc<StepEnv>, done: Done) -> Waiting {
        let waiting = Waiting { env: env.clone(), done: Arc::new(Mutex::new(Some(done))), call: Arc::default() };
        let (done, call) = (waiting.done.clone(), waiting.call.clone());
        let cancel = move |error: &status::Error| {
            let (done, call) = (done.lock().take(), call.lock().take());
            if let Some(call) = call {
                call.withdraw();
            }
            if let Some(done) = done {
                done(Err(error.clone()));
            }
        };
        if let Err(error) = env.cancel.register(cancel.clone()) {
            cancel(&error);
        }
        waiting
    }

    fn for_named(self, home: Home, handle: ResourceHandle) {
        match home.find::<Variable>(&handle) {
            Ok(variable) => self.for_variable(&variable),
            Err(_) => {
                let resources = home.resources_of(&handle).unwrap_or_else(|_| home.resources().clone());
                let (container, name) = (handle.container.clone(), handle.name.clone());
                let call = self.later(move |waiting| waiting.for_named(home, handle));
                resources.when_created::<Variable>(&container, &name, call);
            }
        }
    }

    fn for_variable(self, variable: &Variable) {
        if variable.is_initialized() {
            return self.answer();
        }
        variable.when_initialized(self.later(Waiting::answer));
    }

    /// Continues on another thread: the caller may hold locks.
    fn later(self, go_on: impl FnOnce(Waiting) + Send + 'static) -> OnceCallback {
        let slot = self.call.clone();
        let call = OnceCallback::new(move || {
            let spawn = self.env.spawn.clone();
            spawn(Box::new(move || go_on(self)));
        });
        *slot.lock() = Some(call.clone());
        call
    }

    fn answer(self) {
        let done = self.done.lock().take();
        if let Some(done) = done {
            done(Ok(outputs![Tensor::scalar(true)]));
        }
    }
}
