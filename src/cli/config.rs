//! `wharf config`: the settings as they would be, and whether a daemon may start with them.

use std::path::PathBuf;
use std::process::ExitCode;

use super::error::CliError;
use super::output;
use crate::config::check::{Cluster, check};
use crate::config::load::{BadSettings, Origins};
use crate::config::{Settings, document};
use crate::telemetry;

/// Print the settings or check them.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Say whether a daemon could start with the settings
    Check(SettingsArgs),
    /// Print the settings as they would be
    Print(SettingsArgs),
    /// Print a commented file with every setting, its unit and its default
    Default,
}

/// Where settings come from: a file, then `WHARF_SECTION_KEY` variables, then flags.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SettingsArgs {
    /// The settings file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Set one: section.key=value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

impl SettingsArgs {
    /// The settings, each value allowed by itself.
    ///
    /// # Errors
    /// Usage: the file cannot be read, or every bad key and value.
    pub fn settings(&self) -> Result<Settings, CliError> {
        let unread = |BadSettings(reasons)| CliError::input(reasons.join("; "), "--config names the settings file");
        let origins = Origins::of_process(self.config.as_deref(), &self.sets).map_err(unread)?;
        origins.settings().map_err(bad_settings)
    }

    /// Whether a daemon may start with them at all.
    ///
    /// # Errors
    /// Usage, with every reason.
    pub fn must_be_usable(&self, cluster: Cluster) -> Result<(), CliError> {
        check(&self.settings()?, cluster).map(|_| ()).map_err(bad_settings)
    }

    /// The settings, if a daemon may start with them; warnings are said on stderr.
    ///
    /// # Errors
    /// Usage, with every reason.
    pub fn checked(&self, cluster: Cluster) -> Result<Settings, CliError> {
        let settings = self.settings()?;
        telemetry::check(&settings.telemetry).map_err(|error| bad_filter(&error))?;
        for warning in check(&settings, cluster).map_err(bad_settings)? {
            output::note(&format!("wharf: warning: {warning}"));
        }
        Ok(settings)
    }
}

/// A filter of log lines that cannot be read.
pub(super) fn bad_filter(error: &impl std::fmt::Display) -> CliError {
    CliError::input(format!("telemetry.filter: {error}"), "wharf config default shows one")
}

/// Runs the command.
///
/// # Errors
/// When the settings cannot be read, or none may start with them.
pub fn run(args: &Args) -> Result<ExitCode, CliError> {
    match &args.what {
        What::Default => output::print(&document::commented(&Settings::default()))?,
        What::Print(settings) => output::print(&document::plain(&settings.settings()?))?,
        What::Check(settings) => {
            settings.checked(Cluster::Real)?;
            output::print("a daemon could start with these settings\n")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn bad_settings(bad: BadSettings) -> CliError {
    let BadSettings(reasons) = bad;
    let count = reasons.len();
    let advice = "wharf config default prints what is allowed";
    match <[String; 1]>::try_from(reasons) {
        Ok([only]) => CliError::input(only, advice),
        Err(all) => CliError::input(format!("{count} settings cannot be used; {advice}\n  {}", all.join("\n  ")), ""),
    }
}
