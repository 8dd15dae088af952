//! `wharf bench sessions`: what the daemon itself adds to a session's creation, at rising rates, beside the seed's way; and what
//! suspended sessions cost at rest.

mod figures;
mod rates;
mod suspended;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use figures::Figures;
pub(super) use suspended::{Args as OpenArgs, OPEN, open};

use super::place::Place;
use super::{Options, Size};
use crate::cli::error::CliError;
use crate::cli::log::Format;
use crate::cli::output;
use crate::telemetry;

/// What it is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    options: Options,
}

/// How much is measured.
struct Amount {
    /// Creates a second, and for how long.
    rates: [(u32, Duration); 3],
    suspended: usize,
    /// What opens the log of suspended sessions alone, to see what they keep resident.
    program: Option<PathBuf>,
}

impl Amount {
    fn of(size: Size) -> Self {
        let (seconds, suspended) = match size {
            Size::Small => ([6, 4, 4], 5_000),
            Size::Full => ([60, 30, 30], 100_000),
        };
        let [one, twenty, hundred] = seconds.map(Duration::from_secs);
        Self { rates: [(1, one), (20, twenty), (100, hundred)], suspended, program: std::env::current_exe().ok() }
    }
}

/// Runs the measurement.
pub(super) fn run(Args { options }: &Args) -> Result<ExitCode, CliError> {
    let quiet = crate::config::Telemetry { filter: "error".to_owned(), ..crate::config::Telemetry::default() };
    telemetry::start(&quiet, output::is_terminal()).map_err(|error| CliError::input(error.to_string(), ""))?;
    let place = Place::new(options.dir.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::refused("no runtime can be made", "free some threads or files").because(error))?;
    let figures = runtime.block_on(measure(&Amount::of(options.size), &place))?;
    match options.format {
        Format::Text => output::print(&figures.text())?,
        Format::Json => {
            let json = serde_json::to_string(&figures).map_err(std::io::Error::from)?;
            output::print(&format!("{json}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(amount: &Amount, place: &Place) -> Result<Figures, CliError> {
    Ok(Figures {
        rates: rates::measure(&place.dir.join("rates"), &amount.rates).await?,
        suspended: suspended::measure(&place.dir.join("suspended"), amount.suspended, amount.program.as_deref()).await?,
        cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        file_system: place.file_system.clone(),
        synced: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn creates_are_measured_from_the_call_to_the_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let rates = rates::measure(folder.path(), &[(20, Duration::from_millis(500))]).await.expect("it ends");
        let [rate] = rates.as_slice() else { panic!("one rate: {rates:?}") };
        assert_eq!((rate.creates, rate.writes_per_create, rate.reads_per_create), (10, 3.0, 0.0));
        assert!(rate.own_p50_ms > 0.0 && rate.own_p50_ms <= rate.own_p99_ms, "{rate:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn sessions_that_were_written_are_suspended_when_they_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let suspended = suspended::measure(folder.path(), 20, None).await.expect("it ends");
        assert_eq!((suspended.count, suspended.rss_bytes_each), (20, None));
    }
}
