//! What this repository is checked with: `cargo xtask check` and `cargo xtask test`. Needs nothing but Rust and what it says it
//! fetches.

mod check;
mod say;
mod tally;
mod test;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  check   format, lints, and what is in the tree of crates
  test    check, then what the tests need, then all tests; this is what CI runs
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["check"] => check::run(),
        ["test"] => test::run(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say::line(&format!("failed: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// The checkout's root.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}
