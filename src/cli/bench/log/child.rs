//! What a replay keeps resident, measured in a process that does nothing else: whoever has just written a log holds a part of it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cli::bench::process::peak_resident_bytes;
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::run::failed;
use crate::events::sled_log::SledLog;
use crate::ids::Seq;
use crate::run::recover::{Recovered, fold_on};
use crate::run::serve::ServeError;

/// The subcommand of `wharf bench` that the child is started with.
pub(in crate::cli::bench) const REPLAY: &str = "replay-log";

/// Replay a log and print the most that was resident, bytes
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub(in crate::cli::bench) struct Args {
    /// The log's folder
    log: PathBuf,
}

/// The child's side.
pub(in crate::cli::bench) fn run(args: &Args) -> Result<ExitCode, CliError> {
    let reader = SledLog::open_for_reading(&args.log).map_err(|error| failed(ServeError::Open(error)))?;
    let mut recovered = Recovered::default();
    fold_on(&mut recovered, &*reader, Seq(1), reader.head()).map_err(|error| CliError::refused(error.to_string(), "report it"))?;
    if let Some(bytes) = peak_resident_bytes() {
        output::print(&format!("{bytes}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The parent's side: bytes; `None` when the system does not tell.
pub(super) fn resident_bytes(program: &Path, log: &Path) -> Result<Option<u64>, CliError> {
    let child = Command::new(program).args(["bench", REPLAY]).arg(log).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !child.status.success() {
        return Err(CliError::refused("the log could not be replayed", "report it"));
    }
    Ok(String::from_utf8_lossy(&child.stdout).trim().parse().ok())
}
