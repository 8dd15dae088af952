//! `wharf bench log`: durable appends beside a plain file on the same disk, and what reading the log costs.
//!
//! The same records go to both, the log through the daemon's own committer. They are made up (`life.rs`) outside what is timed.

mod append;
mod child;
mod figures;
mod life;
mod plain_file;
mod reading;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use append::{Bench, Rounds};
pub(super) use child::{Args as ReplayArgs, REPLAY, run as replay};
use figures::Figures;
use reading::Reading;

use super::place::Place;
use super::{Options, Size};
use crate::cli::error::CliError;
use crate::cli::log::Format;
use crate::cli::output;
use crate::cli::run::failed;
use crate::clock::{Clock, Entropy};
use crate::events::log::OpenOptions;
use crate::events::sled_log::SledLog;
use crate::ids::{BadName, Subject};
use crate::run::serve::ServeError;

/// Records a commit, one commit after the other.
const COMMITS: [usize; 3] = [1, 100, 1_000];
/// Records a commit of the log that is read: what a busy daemon's group commits hold.
const FILL: usize = 100;

/// What it is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    options: Options,
}

/// How much is measured.
struct Amount {
    rounds: Rounds,
    subjects: usize,
    /// Records of the log that is read.
    records: usize,
    /// What replays them alone, to see what that keeps resident.
    program: Option<PathBuf>,
}

impl Amount {
    fn of(size: Size) -> Self {
        let (count, span, records) = match size {
            Size::Small => (5, Duration::from_millis(400), 200_000),
            Size::Full => (15, Duration::from_secs(1), 1_000_000),
        };
        Self { rounds: Rounds { count, span }, subjects: 1_000, records, program: std::env::current_exe().ok() }
    }
}

/// Runs the measurement.
pub(super) fn run(Args { options }: &Args) -> Result<ExitCode, CliError> {
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
    let clock = Clock::real();
    let options = OpenOptions::new(Subject::daemon("bench").map_err(bad_name)?);
    let open = |name: &str| {
        let opened = SledLog::open(&place.dir.join(name), &clock, Entropy::os(), &options);
        opened.map(|(log, _)| log).map_err(|error| failed(ServeError::Open(error)))
    };

    let mut bench = Bench::new(&place.dir, open("read")?, &clock, amount.subjects)?;
    for _ in 0..amount.records.div_ceil(FILL) {
        bench.append(FILL).await?;
    }
    bench.close().await?;
    let read = place.dir.join("read");
    let resident = amount.program.as_ref().map(|program| child::resident_bytes(program, &read)).transpose()?.flatten();
    let reading = Reading::measure(&read, &clock, &options)?;
    std::fs::remove_dir_all(read)?;

    let mut bench = Bench::new(&place.dir, open("appended")?, &clock, amount.subjects)?;
    let mut append = Vec::new();
    for commit in COMMITS {
        append.push(bench.one_after_another(commit, amount.rounds).await?);
    }
    append.push(bench.all_at_once(amount.rounds).await?);
    bench.close().await?;
    std::fs::remove_dir_all(place.dir.join("appended"))?;

    Ok(Figures {
        append,
        records: reading.records,
        record_bytes: reading.bytes as f64 / reading.records.max(1) as f64,
        open_ms: reading.open_ms,
        replay: reading.replay,
        verify_records_per_s: reading.verify_records_per_s,
        disk_ratio: reading.stored_bytes as f64 / reading.bytes.max(1) as f64,
        blob_files: reading.blobs,
        rss_mb: resident.map(|bytes| bytes as f64 / 1e6),
        cores: std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        file_system: place.file_system.clone(),
        synced: true,
    })
}

fn bad_name(error: BadName) -> CliError {
    CliError::refused(error.to_string(), "report it")
}

fn not_appended(error: &dyn std::error::Error) -> CliError {
    CliError::refused(error.to_string(), "look at the disk")
}

#[cfg(test)]
mod tests {
    use super::life::Life;
    use super::*;
    use crate::app::react::committed_safely;
    use crate::app::rules::Rules;
    use crate::app::state::App;
    use crate::events::record::{Header, Record};
    use crate::ids::Seq;

    #[test]
    fn what_is_appended_folds_and_the_state_does_not_grow() {
        let reaction = Life::new(7).and_then(|mut life| life.reaction(13 * 200, Seq(1), 1_000)).expect("names");
        let mut app = App::default();
        for (seq, draft) in (1..).map(Seq).zip(reaction.drafts) {
            let kind = draft.event.kind();
            let header = Header {
                kind: kind.number(),
                kind_version: kind.version(),
                rules: reaction.rules,
                seq,
                subject: reaction.subject.clone(),
                subject_seq: seq.0,
                time_us: reaction.time_us,
                reaction: Seq(1),
                cause: draft.cause.resolved(Seq(1)),
                settings: reaction.settings,
            };
            assert!(committed_safely(&mut app, Rules::CURRENT, &[Record { header, event: draft.event }]));
        }
        let host = app.hosts.values().next().expect("one host");
        assert_eq!((app.hosts.len(), host.flights.len(), host.unrecorded.len()), (1, 0, 0));
        assert!(!host.gone_uids.is_empty() && host.pod.is_none(), "each life had its pod");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_tiny_amount_comes_to_its_end() {
        let place = Place::new(None).expect("a temporary folder");
        let amount = Amount { rounds: Rounds { count: 1, span: Duration::from_millis(20) }, subjects: 20, records: 3_000, program: None };
        let figures = measure(&amount, &place).await.expect("figures");
        let text = figures.text();
        let whats: Vec<_> = figures.append.iter().map(|append| (append.commit, append.subjects)).collect();
        assert_eq!(whats, [(1, 1), (100, 1), (1_000, 1), (1, 20)]);
        assert!(figures.append.iter().all(|append| append.ratio > 0.0 && append.fdatasyncs_per_commit >= 1.0), "{text}");
        // And the record that begins the log.
        assert_eq!((figures.records, figures.blob_files), (3_001, 0));
        assert!(figures.disk_ratio > 1.0 && figures.open_ms > 0.0 && figures.verify_records_per_s > 0.0, "{text}");
        assert!(std::fs::read_dir(&place.dir).expect("a folder").next().is_none(), "nothing is left behind");
    }
}
