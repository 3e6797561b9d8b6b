//! Automation of this repository, in Rust: `cargo xtask <task>`.
#![forbid(unsafe_code)]

mod browser;
mod python;
mod test;

#[cfg(test)]
mod tests;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const HELP: &str = "\
usage: cargo xtask <task>

  test             run all tests: Rust, conformance cases, real TensorFlow clients and servers
  test NAME        only Rust tests whose name contains NAME
  soak             many faults in training, many clients, many kills of a ps with a journal and of savers, and a tensor
                   of 2.2 GB (it takes 8 GB of memory)
  python           install TensorFlow into the cache and print the path of its interpreter
  screenshots      draw the pictures of docs/images anew: TensorBoard on a run of the demo
  builders         write the raw builders of ops from the rows
  cases --update   let real TensorFlow write the expected part of all conformance cases
  cases --update F only those of the files F…
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        ["test", ref filter @ ..] => test::run(filter),
        ["soak"] => test::soak(),
        ["screenshots"] => test::screenshots(),
        ["python"] => {
            println!("{}", python::interpreter()?.display());
            Ok(())
        }
        ["builders"] => test::write_builders(),
        ["cases", "--update", ref files @ ..] => test::update_cases(files),
        _ => {
            eprint!("{HELP}");
            bail!("unknown task: {}", args.join(" "))
        }
    }
}

/// The root of the checkout.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// Runs a command; an error if it fails.
fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if !status.success() {
        bail!("{shown} ended with {status}");
    }
    Ok(())
}
