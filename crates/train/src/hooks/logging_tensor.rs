//! Logs values every so often.

use super::{Every, Timer};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::{Graph, Output};
use session::{Feeds, Session};
use status::Result;
use tensor::Tensor;

/// What a line is written to.
type Sink = Box<dyn FnMut(&str) + Send>;

/// Logs values every so often: `loss = 0.5, accuracy = 0.9 (1.203 sec)`. Steps are those of this session, not those of
/// the step counter.
pub struct LoggingTensor {
    tensors: Vec<(String, Output)>,
    timer: Option<Timer>,
    at_end: bool,
    iteration: i64,
    asked: bool,
    sink: Sink,
}

impl LoggingTensor {
    /// Values under tags; every so often, or only at the end.
    pub fn new<'a>(
        tensors: impl IntoIterator<Item = (&'a str, &'a Output)>,
        every: impl Into<Option<Every>>,
    ) -> LoggingTensor {
        LoggingTensor {
            tensors: tensors.into_iter().map(|(tag, tensor)| (tag.to_string(), tensor.clone())).collect(),
            timer: every.into().map(Timer::new),
            at_end: false,
            iteration: 0,
            asked: false,
            sink: Box::new(|line| tracing::info!("{line}")),
        }
    }

    /// Logs once more after the last step.
    pub fn at_end(mut self) -> LoggingTensor {
        self.at_end = true;
        self
    }

    /// Writes lines to this, in place of the log.
    pub fn sink(mut self, sink: impl FnMut(&str) + Send + 'static) -> LoggingTensor {
        self.sink = Box::new(sink);
        self
    }

    fn outputs(&self) -> Vec<&Output> {
        self.tensors.iter().map(|(_, tensor)| tensor).collect()
    }

    fn log(&mut self, values: &[Tensor]) {
        let passed = self.timer.as_mut().and_then(|timer| timer.done(self.iteration));
        let told: Vec<String> =
            self.tensors.iter().zip(values).map(|((tag, _), value)| format!("{tag} = {}", shown(value))).collect();
        let told = told.join(", ");
        match passed {
            Some((_, time)) => (self.sink)(&format!("{told} ({:.3} sec)", time.as_secs_f64())),
            None => (self.sink)(&told),
        }
    }
}

impl SessionRunHook for LoggingTensor {
    fn begin(&mut self, _: &Graph) -> Result<()> {
        self.iteration = 0;
        if let Some(timer) = &mut self.timer {
            timer.reset();
        }
        Ok(())
    }

    fn before_run(&mut self, _: &RunContext<'_>) -> Result<RunArgs> {
        self.asked = self.timer.as_ref().is_some_and(|timer| timer.is_due(self.iteration));
        Ok(if self.asked { RunArgs::fetch(self.outputs()) } else { RunArgs::nothing() })
    }

    fn after_run(&mut self, _: &RunContext<'_>, values: &RunValues) -> Result<()> {
        if self.asked {
            let values = (0..values.len()).map(|place| values.get(place)).collect::<Result<Vec<Tensor>>>()?;
            self.log(&values);
        }
        self.iteration += 1;
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        if !self.at_end {
            return Ok(());
        }
        let values: Vec<Tensor> = session.run(self.outputs(), Feeds::new())?;
        self.log(&values);
        Ok(())
    }
}

/// A number as a number, anything else as its elements.
fn shown(value: &Tensor) -> String {
    macro_rules! numbers {
        ($($T:ty),*) => {$(
            if let Ok(values) = value.values::<$T>() {
                return match (value.shape().rank(), values) {
                    (0, [value]) => format!("{value:?}"),
                    _ => format!("{values:?}"),
                };
            }
        )*};
    }
    numbers!(f32, f64, i64, i32, bool, u8);
    match value.strings() {
        Ok(texts) => texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>().join(" "),
        Err(_) => format!("{value:?}"),
    }
}
