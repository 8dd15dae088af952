//! What this repository is checked with: `cargo xtask check`, `cargo xtask test` and `cargo xtask planted`. Needs nothing but Rust and what it says it
//! fetches.

mod check;
mod patch;
mod planted;
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
  planted [NAME]
          plants each fault of hack/planted, or those named so, in a copy of the sources and lets the simulation find it
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["check"] => check::run(),
        ["test"] => test::run(),
        ["planted"] => planted::run(None),
        ["planted", name] => planted::run(Some(name)),
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
