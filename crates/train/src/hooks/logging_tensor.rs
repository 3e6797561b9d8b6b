//! Logs values at an interval.

use super::{Every, Timer};
use crate::monitored::{RunArgs, RunContext, RunValues, SessionRunHook};
use graph::{Graph, Output};
use session::Session;
use status::{Result, invalid};
use std::time::Duration;
use tensor::Tensor;

/// A function that receives the lines.
type Sink = Box<dyn FnMut(&str) + Send>;

/// A function that formats tags and values as a line.
type Formatter = Box<dyn FnMut(&[(&str, &Tensor)]) -> String + Send>;

/// Logs values at an interval: `loss = 0.5, accuracy = 0.9 (1.203 sec)`. Steps are those of this session, not of the
/// step counter.
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
    /// Logs values with tags at an interval, or only [at the end](LoggingTensor::at_end). It is an error of the
    /// session if neither is set.
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

    /// Sets the function that formats a line.
    pub fn formatter(mut self, formatter: impl FnMut(&[(&str, &Tensor)]) -> String + Send + 'static) -> LoggingTensor {
        self.formatter = Some(Box::new(formatter));
        self
    }

    /// Sets the function that receives the lines, in place of the log.
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

    /// Checks that there is a time to log.
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

/// The values with their tags, and the time since the last line.
fn line(tagged: &[(&str, &Tensor)], passed: Option<Duration>) -> String {
    let values: Vec<String> = tagged.iter().map(|(tag, value)| format!("{tag} = {}", shown(value))).collect();
    let time = passed.map_or(String::new(), |time| format!(" ({:.3} sec)", time.as_secs_f64()));
    values.join(", ") + &time
}

/// A number, or the elements of a tensor, as text.
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
