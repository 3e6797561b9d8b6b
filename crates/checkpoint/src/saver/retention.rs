//! Which checkpoints are kept: the newest ones, and one per interval permanently. Knows no files and no clock.

/// The checkpoints that are kept, the oldest first.
#[derive(Debug)]
pub(crate) struct Retention {
    /// The number of checkpoints to keep; with zero all stay, and none is listed.
    most: usize,
    /// The interval in seconds after which one checkpoint is kept permanently.
    every: f64,
    next: f64,
    last: Vec<(String, f64)>,
}

impl Retention {
    /// An empty list; `every` and `now` are in seconds.
    pub fn new(most: usize, every: f64, now: f64) -> Retention {
        Retention { most, every, next: now + every, last: Vec::new() }
    }

    /// Adds a checkpoint written at `now`; gives those to delete.
    pub fn record(&mut self, path: &str, now: f64) -> Vec<String> {
        if self.most == 0 {
            return Vec::new();
        }
        self.last.retain(|(known, _)| known != path);
        self.last.push((path.to_string(), now));
        let mut deleted = Vec::new();
        while self.last.len() > self.most {
            let (path, time) = self.last.remove(0);
            match time > self.next {
                true => self.next += self.every,
                false => deleted.push(path),
            }
        }
        deleted
    }

    /// Takes over the checkpoints of an earlier program: paths and times, the oldest first.
    pub fn recover(&mut self, checkpoints: Vec<(String, f64)>) {
        self.last = checkpoints;
    }

    /// The paths, the oldest first.
    pub fn paths(&self) -> Vec<String> {
        self.last.iter().map(|(path, _)| path.clone()).collect()
    }
}
