//! Format, lints and the tree of crates. The repository's own rules are tests (tests/it/tidy.rs).

use crate::{say, tools};

/// Runs all of it.
///
/// # Errors
/// The first that does not hold.
pub(crate) fn run() -> Result<(), String> {
    let cargo = tools::cargo();
    say::line("format");
    tools::run(&cargo, &["fmt", "--all", "--check"])?;
    say::line("lints");
    tools::run(&cargo, &["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"])?;
    say::line("crates: bans, licenses, sources");
    tools::run(tools::cargo_deny()?, &["--log-level", "warn", "check", "bans", "licenses", "sources"])?;
    say::line("checks hold");
    Ok(())
}
