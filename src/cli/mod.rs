//! The command line: one file a command, data on stdout, everything else on stderr.
//!
//! Exit codes: 0 done, 1 the answer is no, 2 usage or unreadable input, 3 the other side or the disk refused or is not there.

pub mod backup;
pub mod bench;
pub mod config;
pub mod demo;
mod download;
pub mod erase;
pub mod error;
mod follow;
pub mod log;
pub mod output;
pub mod plan;
mod points;
pub mod probe;
pub mod remote;
pub mod replay;
pub mod restore;
pub mod run;
mod seen;
pub mod sessions;
pub mod sim;
mod source;
pub mod status;
pub mod verify;
mod when;
pub mod why;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::error::CliError;

/// Runs untrusted code on Kubernetes and can say, for everything it ever did, why.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, disable_help_subcommand = true)]
pub struct Cli {
    /// Say the whole chain of causes of an error.
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Demo(demo::Args),
    Config(config::Args),
    Log(log::Args),
    Replay(replay::Args),
    Why(why::Args),
    Status(status::Args),
    Verify(verify::Args),
    Plan(plan::Args),
    Sim(sim::Args),
    Bench(bench::Args),
    Erase(erase::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Sessions(sessions::Args),
    #[command(name = crate::run::rescue::PROBE)]
    Probe(probe::Args),
}

/// What the commands are for, in the order of the help. One that is not built in is not shown.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run", &["run", "demo", "config"]),
    ("Look", &["log", "replay", "why", "timeline", "status"]),
    ("Prove", &["verify", "whatif", "plan", "sim", "bench"]),
    ("Keep", &["backup", "restore", "erase"]),
    ("Act", &["sessions", "apps", "freeze", "thaw", "adopt"]),
];

/// Parses the process's arguments and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    dispatch(std::env::args_os())
}

fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = command().try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            // Help that nobody reads to its end is no failure.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    let done = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Erase(args) => erase::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Probe(args) => probe::run(&args),
    };
    done.unwrap_or_else(|error| error.tell(cli.verbose))
}

/// Runs what a command has to wait for, on this thread.
///
/// # Errors
/// The command's own, or that no runtime can be made.
fn wait_for<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| CliError::refused("no runtime can be made", "free some threads or files").because(e))?.block_on(work)
}

/// The whole command, its help in groups.
fn command() -> clap::Command {
    let command = Cli::command();
    let mut template = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        let there: Vec<_> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if there.is_empty() {
            continue;
        }
        template.push_str(&format!("\n{group}:\n"));
        for command in there {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            template.push_str(&format!("  {:<10}{about}\n", command.get_name()));
        }
    }
    template.push_str("\nOptions:\n{options}\n");
    command.help_template(template)
}

#[cfg(test)]
mod tests;
