//! Locks for ops of several steps, which get them in the order of their requests.

use graph::{Output, Scope};
use op::shapes::{none, scalar};
use op::{CancelToken, Ctx, Done, Grad, Home, Inputs, Kernel, Op, PLAIN, Resource, Setup, StepEnv};
use op::{handle_of, later, many, outputs, source};
use parking_lot::Mutex as Guard;
use status::{Result, cancelled, internal, invalid};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use tensor::{Shape, Tensor, Variant, VariantData, VariantObject};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "MutexV2() -> resource: resource; container: string = \"\"; shared_name: string = \"\"; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: mutex_kernel,
        facts: PLAIN,
    },
    Op {
        def: "MutexLock(mutex: resource) -> mutex_lock: variant; stateful",
        shape: scalar,
        grad: Grad::Stop,
        kernel: lock_kernel,
        facts: PLAIN,
    },
    Op {
        def: "ConsumeMutexLock(mutex_lock: variant); stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: consume_kernel,
        facts: PLAIN,
    },
];

/// A mutex that all nodes with this name share.
pub fn mutex(scope: &Scope, shared_name: &str) -> Output {
    scope.op("MutexV2").attr("shared_name", shared_name).output()
}

/// Waits for a mutex; it is held for as long as the result is alive.
pub fn mutex_lock(mutex: &Output) -> Output {
    mutex.scope().op("MutexLock").input(mutex).output()
}

/// The owner of a mutex, and the ops that wait for it.
#[derive(Default)]
struct Mutex(Guard<State>);

#[derive(Default)]
struct State {
    locked: bool,
    next: u64,
    waiting: VecDeque<Waiter>,
}

/// One op that waits.
struct Waiter {
    number: u64,
    done: Done,
    env: Arc<StepEnv>,
    token: CancelToken,
}

impl Resource for Mutex {
    const TYPE_NAME: &'static str = "N10tensorflow12_GLOBAL__N_15MutexE";
}

/// Holds a mutex; dropping the last copy passes it to the next waiter.
struct Lock(Arc<Mutex>);

impl Drop for Lock {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.0.lock();
            let next = state.waiting.pop_front();
            state.locked = next.is_some();
            next
        };
        if let Some(waiter) = next {
            waiter.env.cancel.deregister(waiter.token);
            let (mutex, done) = (self.0.clone(), waiter.done);
            // On another thread: the lock may be dropped deep inside the executor, and many waiters would nest.
            (waiter.env.spawn)(Box::new(move || done(grant(&mutex))));
        }
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Variant<type: SharedLockReleaser>")
    }
}

impl VariantObject for Lock {
    fn encode(&self) -> Result<VariantData> {
        Err(internal!("The lock of a mutex cannot leave its task"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn grant(mutex: &Arc<Mutex>) -> Result<op::Outputs> {
    let lock = Variant::Object(Arc::new(Lock(mutex.clone())));
    Ok(outputs![Tensor::from_variants(Shape::scalar(), vec![lock])?])
}

/// Acquires the mutex, now or when it is free.
fn acquire(mutex: &Arc<Mutex>, env: &Arc<StepEnv>, done: Done) {
    let mut state = mutex.0.lock();
    if !state.locked {
        state.locked = true;
        drop(state);
        return done(grant(mutex));
    }
    let number = state.next;
    state.next += 1;
    let weak = Arc::downgrade(mutex);
    let registered = env.cancel.register(move |_| {
        if let Some(mutex) = weak.upgrade() {
            give_up(&mutex, number);
        }
    });
    match registered {
        Ok(token) => state.waiting.push_back(Waiter { number, done, env: env.clone(), token }),
        Err(_) => {
            drop(state);
            done(Err(cancelled!("Lock acquisition cancelled.")));
        }
    }
}

fn give_up(mutex: &Mutex, number: u64) {
    let waiter = {
        let mut state = mutex.0.lock();
        let place = state.waiting.iter().position(|waiter| waiter.number == number);
        place.and_then(|place| state.waiting.remove(place))
    };
    if let Some(waiter) = waiter {
        (waiter.done)(Err(cancelled!("Lock acquisition cancelled.")));
    }
}

fn mutex_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let (container, name) = (setup.string("container")?, setup.string("shared_name")?);
    let handle = Home::of(setup).handle::<Mutex>(&container, &name, Vec::new());
    let tensor = Tensor::from_handles(Shape::scalar(), vec![handle])?;
    Ok(source(move |_| Ok(tensor.clone())).free())
}

fn lock_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let home = Home::of(setup);
    let find = move |inputs: &mut Inputs| {
        let handle = inputs.tensor(0)?;
        home.find_or_create(handle_of(&handle)?, || Ok(Mutex::default()))
    };
    Ok(later(move |ctx: &Ctx<'_>, mut inputs, done| match find(&mut inputs) {
        Ok(mutex) => acquire(&mutex, ctx.env, done),
        Err(error) => done(Err(error)),
    }))
}

fn consume_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let lock = inputs.tensor(0)?;
        let [variant] = lock.variants()? else {
            return Err(invalid!("Expected input to be a scalar, saw shape: {}", lock.shape()));
        };
        match variant {
            Variant::Object(object) if variant.object::<Lock>().is_some() => match Arc::strong_count(object) {
                1 => Ok(outputs![]),
                count => Err(invalid!("Expected use count of lock to be 1, but saw: {count}")),
            },
            other => {
                Err(invalid!("Expected input to contain a SharedLockReleaser object, but saw variant: '{other:?}'"))
            }
        }
    })
    .free())
}
