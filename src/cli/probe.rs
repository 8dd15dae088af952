//! `wharf probe-log`: opens a log under a limit of memory and says whether that can be done. Asked by `wharf run` alone.

use std::path::PathBuf;
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::error::CliError;
use crate::events::log::OpenError;
use crate::events::sled_log::SledLog;

/// Open a log and end; exit code 1 says that it is damaged, 3 that it does not open for another reason
#[derive(Debug, clap::Args)]
#[command(hide = true)]
pub struct Args {
    /// The log's folder
    log: PathBuf,
    /// The most memory that opening it may take, bytes
    memory: u64,
}

/// Runs the command. What kills the process instead of ending it says as much.
///
/// # Errors
/// When the log does not open, and another place or time could change that.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let limit = Rlimit { current: Some(args.memory), maximum: Some(args.memory) };
    // What is mapped privately and can be written: reserved addresses do not count.
    setrlimit(Resource::Data, limit).map_err(|error| CliError::refused(format!("memory cannot be limited: {error}"), ""))?;
    // A thread that panics can leave the one that opens waiting for ever.
    std::panic::set_hook(Box::new(|panic| {
        super::output::note(&panic.to_string());
        std::process::abort();
    }));
    match SledLog::open_for_reading(&args.log) {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(OpenError::Missing) => Ok(ExitCode::SUCCESS),
        Err(error @ OpenError::Damaged { .. }) => {
            super::output::note(&error.to_string());
            Ok(ExitCode::from(1))
        }
        Err(error) => Err(CliError::refused(error.to_string(), "").because(error)),
    }
}
