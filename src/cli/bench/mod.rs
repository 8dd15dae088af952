//! `wharf bench`: what this machine and this disk can do, measured beside the limit in one run, for an operator who wants to know
//! whether they are good enough.

mod figures;
mod log;
mod place;
mod process;
mod react;
mod rig;
mod sessions;
mod timed_log;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::error::CliError;
use super::log::Format;

/// Measure this machine and disk beside the limit.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Durable appends beside a plain file on the same disk, and opening, replaying and verifying what was appended
    Log(log::Args),
    /// From a pod's change to the API write that it asks for, beside polling; and what an idle daemon costs
    React(react::Args),
    /// From a call for a session to its API writes, and from ready to the answer, beside polling; and what suspended sessions cost
    Sessions(sessions::Args),
    #[command(name = log::REPLAY)]
    Replay(log::ReplayArgs),
    #[command(name = sessions::OPEN)]
    Open(sessions::OpenArgs),
}

/// What every measurement is told.
#[derive(Debug, clap::Args)]
struct Options {
    /// A new or empty folder on the disk to measure; without it a temporary one, which is removed again
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How much; small ends in under 40 seconds
    #[arg(long, value_enum, default_value = "small")]
    size: Size,
    /// How
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Size {
    /// Whether it works, and about how well
    Small,
    /// What the limits are about
    Full,
}

/// Runs the command.
///
/// # Errors
/// When the folder cannot be measured, or what is measured does not come to its end.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    match &args.what {
        What::Log(args) => log::run(args),
        What::React(args) => react::run(args),
        What::Sessions(args) => sessions::run(args),
        What::Replay(args) => log::replay(args),
        What::Open(args) => sessions::open(args),
    }
}
