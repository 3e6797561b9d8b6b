//! Automation of this repository, in Rust: `cargo xtask <task>`.

fn main() {
    eprintln!("no task given");
}
