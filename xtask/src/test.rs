//! All tests, with what they need, and one line at the end that says how many.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::sync::Mutex;
use std::thread;

use crate::tally::Tally;
use crate::{check, say, tools};

/// Checks, fetches what the tests need, runs them all.
///
/// # Errors
/// When a check does not hold, something cannot be had, or a test fails.
pub(crate) fn run() -> Result<(), String> {
    check::run()?;
    tools::debian_packages()?;
    let assets = tools::kube_assets()?;
    let schemathesis = tools::schemathesis()?;
    say::line(&format!("tests, with KUBEBUILDER_ASSETS={} SCHEMATHESIS={}", assets.display(), schemathesis.display()));
    let arguments = ["test", "--workspace", "--locked", "--no-fail-fast"];
    let started = tools::piped(&tools::cargo(), &arguments, &[("KUBEBUILDER_ASSETS", &assets), ("SCHEMATHESIS", &schemathesis)]);
    let mut child = started.map_err(|e| format!("cargo test: {e}"))?;
    let tally = Mutex::new(Tally::default());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| follow(stdout, &tally, |line| println!("{line}")));
        scope.spawn(|| follow(stderr, &tally, |line| eprintln!("{line}")));
    });
    let status = child.wait().map_err(|e| format!("cargo test: {e}"))?;
    let tally = tally.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    say::line("tests ended");
    // The last line of all, on stdout: what whoever reads the log looks for.
    let summary = writeln!(std::io::stdout(), "{tally}");
    summary.map_err(|e| format!("cannot say the result: {e}"))?;
    if !status.success() {
        return Err(format!("cargo test: {status}"));
    }
    if tally.is_empty() { Err("no test ran".to_owned()) } else { Ok(()) }
}

/// Repeats each line and counts by it. Lines that are not UTF-8 are repeated as well as they can be.
fn follow(output: Option<impl Read>, tally: &Mutex<Tally>, repeat: impl Fn(&str)) {
    let Some(output) = output else { return };
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        repeat(text);
        tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take(text);
        line.clear();
    }
}
