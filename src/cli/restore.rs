//! `wharf restore`: a data folder from a backup file.

use std::path::PathBuf;
use std::process::ExitCode;

use super::error::CliError;
use super::output;
use crate::events::backup::BackupError;
use crate::events::backup::restore::{RestoreError, restore};
use crate::ids::shown;

/// Make a data folder from a backup file.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The backup file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The data folder: a new one, or an empty one
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// When the file is no whole backup, or the folder is not empty.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    let at = |path: &PathBuf| shown(&path.display().to_string(), 200);
    let (about, end) = restore(&args.file, &args.dir).map_err(|error| {
        let what = match &error {
            RestoreError::Backup(_) => format!("{}: {error}", at(&args.file)),
            RestoreError::NotEmpty(_) | RestoreError::Store(_) | RestoreError::Io(_) => format!("{}: {error}", at(&args.dir)),
        };
        match &error {
            RestoreError::Backup(BackupError::Io(_)) => CliError::refused(what, "look at the disk"),
            RestoreError::Backup(BackupError::Newer(_)) => CliError::input(what, "use the newer version"),
            RestoreError::Backup(BackupError::Part) => CliError::input(what, "wharf log --dir reads it in place"),
            RestoreError::Backup(_) => CliError::input(what, "take another copy of it"),
            RestoreError::NotEmpty(_) => CliError::input(what, "name a new folder"),
            RestoreError::Store(_) | RestoreError::Io(_) => CliError::refused(what, "look at the disk"),
        }
        .because(error)
    })?;
    let build = about.build.map(|build| format!(", written by {build}")).unwrap_or_default();
    output::print(&format!(
        "{}: {} records in {} blocks{build}; log {} to {}\n",
        at(&args.dir),
        end.records,
        end.blocks,
        end.log,
        end.last
    ))?;
    Ok(ExitCode::SUCCESS)
}
