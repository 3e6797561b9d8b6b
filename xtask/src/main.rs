//! Automation of this repository: `cargo xtask <task>`.
#![forbid(unsafe_code)]

mod browser;
mod dist;
mod python;
mod release;
mod test;

#[cfg(test)]
mod tests;

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
usage: cargo xtask <task>

  test                run all tests: Rust, conformance cases, real TensorFlow clients and servers
  test NAME           run the Rust tests whose name contains NAME
  test --quick        run the Rust tests that need no Python and no compiler
  soak                run long tests on the release build: faults, many clients, kills of processes, a tensor of
                      2.2 GB (needs 8 GB of memory)
  cases --update      let TensorFlow write the expected part of all conformance cases
  cases --update F…   let TensorFlow write the expected part of the cases in the files F…
  bad-input           run every op with generated bad input, in a debug build; print counts and failures
  bad-input OP…       the same for these ops only
  builders            write what is generated from the rows of ops: the raw builders and docs/ops.md
  screenshots         draw the pictures of docs/images: TensorBoard on a run of the demo
  python              install TensorFlow into the cache and print the path of its interpreter
  dist                build the program with the profile `dist` and package it: a tarball and a Python wheel in
                      target/packages
    --features LIST     cargo features of the program, for instance s3,gs
    --program FILE      package this program instead of building one
    --out FOLDER        write the packages to this folder
  release-check       check what must hold before a release: publishing (dry run), licenses, packages
";

fn main() -> ExitCode {
    match task() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // On one line, and without the frames that `Debug` adds when RUST_BACKTRACE is set.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn task() -> Result<()> {
    if let Some(program) = std::env::var_os(dist::PROGRAM) {
        return dist::act_as_cargo(&program);
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        ["test", "--quick"] => test::run_quick(),
        ["test", ref filter @ ..] => test::run(filter),
        ["soak"] => test::soak(),
        ["cases", "--update", ref files @ ..] => test::update_cases(files),
        ["bad-input", ref ops @ ..] => test::bad_input(ops),
        ["builders"] => test::write_builders(),
        ["screenshots"] => test::screenshots(),
        ["python"] => {
            println!("{}", python::interpreter()?.display());
            Ok(())
        }
        ["dist", ref options @ ..] => dist::run(options),
        ["release-check"] => release::check(),
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

/// The folder of build results.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into)
}

/// A call of the cargo that started this program, at the root of the checkout.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root());
    command
}

/// Runs a command; an error if it fails.
fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    if !status.success() {
        bail!("{shown} failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns its standard output; an error if it fails.
fn output(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {shown} is not UTF-8"))
}
