//! Packages for people who do not build Flowgrid: a tarball and a Python wheel, which carry the same program.

use crate::{cargo, output, python, root, target};
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the program to package when maturin starts this program in place of cargo.
pub const PROGRAM: &str = "FLOWGRID_DIST_PROGRAM";
/// The id of the package `flowgrid-cli`, set together with `PROGRAM`.
const PACKAGE_ID: &str = "FLOWGRID_DIST_PACKAGE_ID";
/// The cargo that is meant when this program stands in for it, set together with `PROGRAM`.
const REAL_CARGO: &str = "FLOWGRID_DIST_CARGO";

/// The name of the program in the packages, and so of the command that they install.
const NAME: &str = "flowgrid";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Files that lie beside the program in the tarball.
const TEXTS: [&str; 3] = ["README.md", "LICENSE", "CHANGELOG.md"];

/// The options of `cargo xtask dist`.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    /// A program that is already built.
    pub program: Option<PathBuf>,
    /// Where the packages go.
    pub out: Option<PathBuf>,
    /// Cargo features of the program.
    pub features: String,
}

impl Options {
    /// Reads the words after `dist`.
    pub fn parse(mut words: &[&str]) -> Result<Options> {
        let mut options = Options::default();
        while let [name, rest @ ..] = words {
            let [value, rest @ ..] = rest else { bail!("{name} needs a value") };
            match *name {
                "--program" => options.program = Some(value.into()),
                "--out" => options.out = Some(value.into()),
                "--features" => options.features = (*value).to_string(),
                _ => bail!("unknown option {name}; expected --features, --program or --out"),
            }
            words = rest;
        }
        Ok(options)
    }
}

/// Builds the program, unless one is given, and packages it.
pub fn run(words: &[&str]) -> Result<()> {
    let options = Options::parse(words)?;
    let program = match options.program {
        Some(program) => program.canonicalize().with_context(|| format!("no program {}", program.display()))?,
        None => build(&options.features)?,
    };
    let out = options.out.unwrap_or_else(|| target().join("packages"));
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let staging = target().join("xtask-dist").join(std::process::id().to_string());
    let packed = package(&program, &staging, &out);
    fs::remove_dir_all(&staging).with_context(|| format!("cannot remove {}", staging.display()))?;
    packed
}

fn package(program: &Path, staging: &Path, out: &Path) -> Result<()> {
    let folder = staging.join(format!("flowgrid-{VERSION}-{}", host()?));
    stage(program, &folder)?;
    println!("{}", tarball(&folder, out)?.display());
    println!("{}", wheel(&folder.join(NAME), out)?.display());
    Ok(())
}

fn build(features: &str) -> Result<PathBuf> {
    let args = ["build", "--locked", "--profile", "dist", "--package", "flowgrid-cli", "--features", features];
    crate::run(cargo().args(args))?;
    Ok(target().join("dist").join(NAME))
}

/// Copies the program, its licence and what to read first to a folder.
fn stage(program: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let texts = TEXTS.map(|text| (root().join(text), text));
    for (file, name) in texts.into_iter().chain([(program.to_path_buf(), NAME)]) {
        fs::copy(&file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(())
}

/// `flowgrid-VERSION-HOST.tar.gz` with the staged folder.
fn tarball(folder: &Path, out: &Path) -> Result<PathBuf> {
    let name = folder.file_name().and_then(OsStr::to_str).context("the staged folder has no name")?;
    let archive = out.join(format!("{name}.tar.gz"));
    let parent = folder.parent().context("the staged folder has no parent")?;
    crate::run(Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(parent).arg(name))?;
    Ok(archive)
}

/// The platform that rustc builds for.
fn host() -> Result<String> {
    let about = output(Command::new("rustc").arg("-vV"))?;
    let line = about.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_string).context("rustc -vV names no host")
}

/// A wheel that installs the program as the command `flowgrid`.
///
/// maturin starts cargo to build the program, and reads from cargo's messages where it is. It is made to start this
/// program instead, which answers with the one that exists: the wheel holds the same bytes as the tarball, and a test
/// makes a wheel without a second build.
fn wheel(program: &Path, out: &Path) -> Result<PathBuf> {
    let folder = root().join("crates/cli");
    let mut maturin = Command::new(python::maturin()?);
    maturin.args(["build", "--quiet", "--profile", "dist", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    maturin.arg("--out").arg(out);
    maturin.env(REAL_CARGO, cargo().get_program()).env(PROGRAM, program);
    maturin.env(PACKAGE_ID, output(cargo().args(["pkgid", "--package", "flowgrid-cli"]))?.trim());
    maturin.env("CARGO", std::env::current_exe().context("the path of this program is unknown")?);
    crate::run(&mut maturin)?;
    newest_wheel(out)
}

fn newest_wheel(folder: &Path) -> Result<PathBuf> {
    let start = format!("flowgrid-{VERSION}-");
    let is_wheel = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with(&start) && name.ends_with(".whl")
    };
    let wheels = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_wheel);
    let newest = wheels.max_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    newest.with_context(|| format!("maturin wrote no wheel to {}", folder.display()))
}

/// Answers maturin's call of `cargo rustc` with the program that exists; other calls go to cargo.
pub fn act_as_cargo(program: &OsStr) -> Result<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|task| task == "rustc") {
        let program = program.to_str().context("the path of the program is not UTF-8")?;
        let package = std::env::var(PACKAGE_ID).with_context(|| format!("{PACKAGE_ID} is not set"))?;
        println!("{}", artifact_message(&package, program));
        return Ok(());
    }
    let real = std::env::var_os(REAL_CARGO).with_context(|| format!("{REAL_CARGO} is not set"))?;
    Err(Command::new(real).args(args).env_remove(PROGRAM).exec().into())
}

/// Cargo's message about a finished program, in the JSON of `--message-format json`.
pub fn artifact_message(package: &str, program: &str) -> String {
    let folder = root().join("crates/cli");
    let [package, program] = [package, program].map(quoted);
    let [manifest, source] = ["Cargo.toml", "src/main.rs"].map(|file| quoted(&folder.join(file).to_string_lossy()));
    format!(
        "{{\"reason\":\"compiler-artifact\",\"package_id\":{package},\"manifest_path\":{manifest},\"target\":{{\
         \"kind\":[\"bin\"],\"crate_types\":[\"bin\"],\"name\":\"flowgrid\",\"src_path\":{source},\
         \"edition\":\"2024\",\"doc\":false,\"doctest\":false,\"test\":true}},\"profile\":{{\"opt_level\":\"3\",\
         \"debuginfo\":0,\"debug_assertions\":false,\"overflow_checks\":false,\"test\":false}},\"features\":[],\
         \"filenames\":[{program}],\"executable\":{program},\"fresh\":true}}\n\
         {{\"reason\":\"build-finished\",\"success\":true}}"
    )
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04x}", control as u32)),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
