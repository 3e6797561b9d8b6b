//! Standard output. Every line that the program prints goes through here, so that a closed pipe ends it quietly.

use anyhow::{Context, Result};
use std::fmt::{self, Arguments, Display, Formatter};
use std::io::{self, Write};

/// The exit code after a closed pipe: what a shell reports of a program that SIGPIPE ended, 128 + 13.
pub const CLOSED_PIPE: u8 = 141;

/// The reader of standard output, such as `head`, has ended. This is not an error of the program.
#[derive(Debug)]
pub struct ClosedPipe;

impl Display for ClosedPipe {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("standard output is closed")
    }
}

impl std::error::Error for ClosedPipe {}

/// Prints a line, as `println!` does, but returns an error where that would panic.
macro_rules! print_line {
    () => { $crate::output::line(format_args!("")) };
    ($($text:tt)*) => { $crate::output::line(format_args!($($text)*)) };
}
pub(crate) use print_line;

/// Writes a line to standard output. The error is [`ClosedPipe`] if nothing reads it any more.
pub fn line(text: Arguments<'_>) -> Result<()> {
    write_line(&mut io::stdout().lock(), text)
}

fn write_line(output: &mut impl Write, text: Arguments<'_>) -> Result<()> {
    match writeln!(output, "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ClosedPipe.into()),
        written => written.context("cannot write to standard output"),
    }
}

#[cfg(test)]
mod tests;
