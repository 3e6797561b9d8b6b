//! Logs values every so often.

use super::{Every, Timer};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::{Graph, Output};
use session::Session;
use status::{Result, invalid};
use std::time::Duration;
use tensor::Tensor;

/// What a line is written to.
type Sink = Box<dyn FnMut(&str) + Send>;

/// What makes a line of values under their tags.
type Formatter = Box<dyn FnMut(&[(&str, &Tensor)]) -> String + Send>;

/// Logs values every so often: `loss = 0.5, accuracy = 0.9 (1.203 sec)`. Steps are those of this session, not those of
/// the step counter.
pub struct LoggingTensor {
    tensors: Vec<(String, Output)>,
    every: Option<Every>,
    timer: Option<Timer>,
    at_end: bool,
    iteration: i64,
    asked: bool,
    formatter: Option<Formatter>,
    sink: Sink,
}

impl LoggingTensor {
    /// Values under tags; every so often, or only [at the end](LoggingTensor::at_end). Neither is an error of the session.
    pub fn new<'a>(
        tensors: impl IntoIterator<Item = (&'a str, &'a Output)>,
        every: impl Into<Option<Every>>,
    ) -> LoggingTensor {
        let every = every.into();
        LoggingTensor {
            tensors: tensors.into_iter().map(|(tag, tensor)| (tag.to_string(), tensor.clone())).collect(),
            every,
            timer: every.map(Timer::new),
            at_end: false,
            iteration: 0,
            asked: false,
            formatter: None,
            sink: Box::new(|line| tracing::info!("{line}")),
        }
    }

    /// Logs once more after the last step.
    pub fn at_end(mut self) -> LoggingTensor {
        self.at_end = true;
        self
    }

    /// Makes lines with this, from the tags and their values.
    pub fn formatter(mut self, formatter: impl FnMut(&[(&str, &Tensor)]) -> String + Send + 'static) -> LoggingTensor {
        self.formatter = Some(Box::new(formatter));
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
        let tagged: Vec<(&str, &Tensor)> = self.tensors.iter().map(|(tag, _)| tag.as_str()).zip(values).collect();
        let line = match &mut self.formatter {
            Some(formatter) => formatter(&tagged),
            None => line(&tagged, passed.map(|(_, time)| time)),
        };
        (self.sink)(&line);
    }

    /// Whether it was said when to log.
    fn check(&self) -> Result<()> {
        match self.every {
            None if !self.at_end => {
                Err(invalid!("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided."))
            }
            Some(Every::Steps(steps)) if steps <= 0 => Err(invalid!("invalid every_n_iter={steps}.")),
            _ => Ok(()),
        }
    }
}

impl SessionRunHook for LoggingTensor {
    fn begin(&mut self, _: &Graph) -> Result<()> {
        self.check()?;
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
        let values: Vec<Tensor> = session.run(self.outputs())?;
        self.log(&values);
        Ok(())
    }
}

/// Values under their tags, and the time since the last line.
fn line(tagged: &[(&str, &Tensor)], passed: Option<Duration>) -> String {
    let told: Vec<String> = tagged.iter().map(|(tag, value)| format!("{tag} = {}", shown(value))).collect();
    let time = passed.map_or(String::new(), |time| format!(" ({:.3} sec)", time.as_secs_f64()));
    told.join(", ") + &time
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
