//! SleepDataset: the elements of another dataset, each after a pause.

use crate::attrs::{DATASET, dataset_kernel, input_dataset, scalar};
use crate::timer::{Alarm, Timer};
use crate::{
    Cardinality, Dataset, DatasetRef, Input, Iterate, Next, Place, PollContext, Spec, StateReader, StateWriter,
};
use op::shapes;
use op::{Cancel, CancelToken, Grad, Kernel, Op, Setup};
use parking_lot::Mutex;
use status::{Result, cancelled, invalid};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "SleepDataset(input_dataset: variant, sleep_microseconds: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
    Op {
        def: "ExperimentalSleepDataset(input_dataset: variant, sleep_microseconds: int64) -> handle: variant; \
              output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
        shape: shapes::scalar,
        grad: Grad::Stop,
        kernel,
        facts: DATASET,
    },
];

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    dataset_kernel(setup, |_, inputs| {
        let microseconds: i64 = scalar(inputs, 1, "sleep_microseconds")?;
        let microseconds = u64::try_from(microseconds).map_err(|_| invalid!("`sleep_microseconds` must be >= 0"))?;
        Ok(Sleep { input: input_dataset(inputs, 0)?, pause: Duration::from_micros(microseconds) })
    })
}

struct Sleep {
    input: DatasetRef,
    pause: Duration,
}

impl Dataset for Sleep {
    fn kind(&self) -> &'static str {
        "Sleep"
    }

    fn spec(&self) -> &Spec {
        self.input.spec()
    }

    fn inputs(&self) -> Vec<DatasetRef> {
        vec![self.input.clone()]
    }

    fn iterate(self: Arc<Self>, place: &Place) -> Result<Box<dyn Iterate>> {
        let alarm = Arc::new(Mutex::new(None));
        let (rings, cancel) = (alarm.clone(), place.pipeline.cancel().clone());
        // the alarm keeps the pipeline, which would else be kept until the time has come
        let token = cancel.register(move |_| drop(rings.lock().take())).ok();
        let (input, slept) = (place.input(&self.input)?, false);
        let timer = Timer::of(place.pipeline.home().resources())?;
        Ok(Box::new(SleepIterator {
            input,
            pause: self.pause,
            timer,
            alarm,
            slept,
            cancel,
            token,
            prefix: place.prefix.clone(),
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }
}

struct SleepIterator {
    input: Input,
    pause: Duration,
    timer: Arc<Timer>,
    alarm: Arc<Mutex<Option<Alarm>>>,
    /// The pause before the next element is over.
    slept: bool,
    cancel: Arc<Cancel>,
    token: Option<CancelToken>,
    prefix: Arc<str>,
}

impl SleepIterator {
    fn poll_pause(&mut self, ctx: &PollContext<'_>) -> Poll<Result<()>> {
        if self.cancel.is_cancelled() {
            return Poll::Ready(Err(cancelled!("Operation was cancelled")));
        }
        let mut held = self.alarm.lock();
        let alarm = held.get_or_insert_with(|| self.timer.alarm(self.pause, ctx.waker));
        if !alarm.has_rung() {
            alarm.wake(ctx.waker);
            return Poll::Pending;
        }
        let rung = held.take();
        drop(held);
        drop(rung);
        Poll::Ready(Ok(()))
    }
}

impl Drop for SleepIterator {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            self.cancel.deregister(token);
        }
    }
}

impl Iterate for SleepIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if !self.slept {
            ready!(self.poll_pause(ctx))?;
            self.slept = true;
        }
        let next = ready!(self.input.poll_next(ctx));
        self.slept = false;
        Poll::Ready(next)
    }

    fn inputs(&mut self) -> Vec<&mut dyn Iterate> {
        self.input.as_list()
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        super::saved::write_input(writer, &self.prefix, &self.input)
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        super::saved::read_input(reader, &self.prefix, &mut self.input)
    }
}
